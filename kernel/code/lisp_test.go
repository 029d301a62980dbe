package code_test

import (
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/code"
)

func TestLisp(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`(delete-directory "~" t)`:                           `delete_directory("~", t)`,
		`(let ((d "/srv")) (delete-directory d t))`:          "d = \"/srv\";\ndelete_directory(d, t)",
		`(let [d "/home" e 2] (fs/delete-tree d))`:           "d = \"/home\";\ne = 2;\nfs.delete_tree(d)",
		`(setq a "x" b 2) (f a)`:                             "a = \"x\";\nb = 2;\n;\nf(a)",
		`(system* "rm" "-rf" "/home")`:                       `system("rm", "-rf", "/home")`,
		`(uiop:delete-directory-tree #p"/srv/" :validate t)`: `uiop.delete_directory_tree("/srv/", .validate, t)`,
		`(mapc #'delete-file '("a" "b"))`:                    `mapc(delete_file, ["a", "b"])`,
		"(a) ; (b)\n(c)":                                     "a();\nc()",
		`(message "a \" (b) ; c")`:                           `message("a \" (b) ; c")`,
		`(f "open`:                                           `f("open")`,
		`(f (g 1)`:                                           `f(g(1))`,
		`) (f)`:                                              `f()`,
		``:                                                   ``,
		strings.Repeat("(", 100) + "f" + strings.Repeat(")", 100): strings.Repeat("(", 100) + "f" + strings.Repeat(")", 100),
		strings.Repeat("(f ", 60) + "x" + strings.Repeat(")", 60): strings.Repeat("f(", 60) + "x" + strings.Repeat(")", 60),
	} {
		if got := code.Lisp(text); got != want {
			t.Errorf("%.80s: %q, want %q", text, got, want)
		}
	}
}
