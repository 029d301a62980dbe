package detect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/detect"
)

// Pages whose lines are of one kind: what developers and clerks paste. Each line has numbers
// and names of its own.
func TestPagesOfOneKind(t *testing.T) {
	fruits := strings.Fields("apple pear plum cherry lemon mango grape melon peach berry fig kiwi lime olive date guava papaya quince banana orange")
	people := strings.Fields("Anna Ben Carla David Eva Frank Gina Hans Ida Jan Karl Lena Max Nora Otto Paul Rosa Sven Tina Udo")
	m := detect.Default()
	for kind, line := range map[string]func(i int) string{
		"JSON": func(i int) string {
			return fmt.Sprintf(`{"id": %d, "name": %q, "price": %d.50},`, i, fruits[i*7%20], i*37%90)
		},
		"CSV": func(i int) string {
			return fmt.Sprintf("2026-0%d-%d,%s,%s,%d.20", 1+i%9, 10+i*7%18, fruits[i*3%20], people[i*11%20], i*53%99)
		},
		"access log": func(i int) string {
			return fmt.Sprintf(`10.0.%d.%d - - [28/Nov/2026:10:%02d:%02d +0000] "GET /img/%s.png HTTP/1.1" 200 %d`, i%9, i*31%99, i%60, i*17%60, fruits[i*7%20], i*977%9999)
		},
		"log": func(i int) string {
			return fmt.Sprintf("2026-11-28 10:%02d INFO order %d of %s shipped", i%60, i*977%9999, people[i*11%20])
		},
		"to-do list": func(i int) string { return fmt.Sprintf("- [ ] call %s about the %s", people[i*11%20], fruits[i*7%20]) },
		"table": func(i int) string {
			return fmt.Sprintf("<tr><td>%s</td><td>%s</td><td>%d</td></tr>", people[i*11%20], fruits[i*7%20], i*53%99)
		},
		"SQL": func(i int) string {
			return fmt.Sprintf("INSERT INTO stock (name, n) VALUES ('%s', %d);", fruits[i*7%20], i*53%99)
		},
		"YAML": func(i int) string {
			return fmt.Sprintf("- name: %s\n  port: %d\n  enabled: true", fruits[i*7%20], i*977%9999)
		},
		"program": func(i int) string { return fmt.Sprintf(`print("%s", %d)`, fruits[i*7%20], i*53%99) },
		"chat": func(i int) string {
			return fmt.Sprintf("[10:%02d] %s: %s", i%60, people[i*11%20], []string{"hi", "ok", "lol", "when?", "at 8"}[i%5])
		},
		"questions": func(i int) string {
			return fmt.Sprintf("Q: Can I return the %s?\nA: Yes, within %d days, with the receipt.", fruits[i*7%20], 10+i%30)
		},
		"recipe": func(i int) string {
			return fmt.Sprintf("%d. Add %d spoons of %s and stir for %d minutes.", i, 1+i%8, fruits[i*7%20], 1+i%9)
		},
	} {
		var page strings.Builder
		for i := range 60 {
			page.WriteString(line(i) + "\n")
		}
		for _, ask := range []string{"", "Can you summarise this?\n\n"} {
			if got := highestOf(m, detect.User, ask+page.String()); got >= 0.7 {
				t.Errorf("%s: %v", kind, got)
			}
		}
	}
}
