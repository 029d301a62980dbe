package detect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/detect"
)

// BenchmarkAssess is the cost of one user's text, of the kinds that people send.
func BenchmarkAssess(b *testing.B) {
	m := detect.Default()
	for _, c := range []struct{ kind, unit string }{
		{"prose", "Last year we booked rooms near the station and walked to the hall every morning. " +
			"Our colleague from the warehouse, Mr Brown, sends three boxes of samples by train.\nIf the weather is good, the evening meeting takes place in the garden. " +
			"Which of the two budgets pays for the hotel, and when is the invoice due? Most visitors asked about delivery times and the price of spare parts. "},
		{"code", "func (s *server) handle(w http.ResponseWriter, r *http.Request) {\n\tuser, err := s.users.find(r.Context(), r.PathValue(\"id\"))\n" +
			"\tif err != nil {\n\t\thttp.Error(w, \"no such user\", http.StatusNotFound)\n\t\treturn\n\t}\n\tfmt.Fprintf(w, \"%s has %d orders\\n\", user.name, len(user.orders))\n}\n\n"},
		{"JSON", `{"id":"ord_48213","customer":{"name":"Anna Keller","city":"Bern"},"items":[{"sku":"A-104","count":2,"price":19.90}],"paid":true,"note":"Please ring twice"},` + "\n"},
		{"Chinese", "去年我们在车站附近订了房间，每天早上步行去会场。如果天气好，晚上的会议就在花园里举行。请问哪个预算支付酒店费用？"},
	} {
		for _, size := range []int{170, 1000, 10_000} {
			var page strings.Builder // repeated as it is, it would be read twice
			for n := 0; page.Len() < size; n++ {
				fmt.Fprint(&page, c.unit, n, " ")
			}
			text := []detect.Text{{Source: detect.User, Body: strings.ToValidUTF8(page.String()[:size], "")}}
			b.Run(fmt.Sprintf("%s/%d", c.kind, size), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := m.Assess(b.Context(), text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
