package code

import "strings"

// maxLists bounds the lists of a Lisp within each other. A program that goes deeper stays as
// it is written.
const maxLists = 64

// Lisp writes a program of a Lisp with the marks that other languages have for its calls and
// values, so that it can be followed as theirs:
//
//	(let ((d "/srv")) (delete-directory d t))
//
// becomes
//
//	d = "/srv"; delete_directory(d, t)
//
// It reads what Emacs Lisp, Common Lisp, Scheme, Clojure, Janet and Fennel have in common.
func Lisp(text string) string {
	l := lisp{text: text}
	all, complete := l.until(0, 0)
	if !complete {
		return text
	}
	return statements(all)
}

// form is a list, by the bracket that opens it, or an atom: a name, a number or a text in
// quotes.
type form struct {
	open byte
	list []form
	atom string
}

type lisp struct {
	text string
	at   int
}

// until reads forms up to the bracket that closes them, or to the end. It reports false of lists
// that are too deep.
func (l *lisp) until(end byte, depth int) (out []form, complete bool) {
	for l.at < len(l.text) {
		switch c := l.text[l.at]; {
		case c == end:
			l.at++
			return out, true
		case strings.IndexByte(" \t\r\n,'`#)]}", c) >= 0: // quotes say how a form is meant, not what it is
			l.at++
		case c == ';':
			if line := strings.IndexByte(l.text[l.at:], '\n'); line >= 0 {
				l.at += line
			} else {
				l.at = len(l.text)
			}
		case strings.IndexByte("([{", c) >= 0:
			if depth == maxLists {
				return nil, false
			}
			l.at++
			list, complete := l.until(map[byte]byte{'(': ')', '[': ']', '{': '}'}[c], depth+1)
			if !complete {
				return nil, false
			}
			out = append(out, form{open: c, list: list})
		case c == '"':
			out = append(out, form{atom: l.quoted()})
		default:
			from := l.at
			for l.at < len(l.text) && strings.IndexByte(" \t\r\n,'`\";()[]{}", l.text[l.at]) < 0 {
				l.at++
			}
			if atom := l.text[from:l.at]; l.at == len(l.text) || l.text[l.at] != '"' || from == 0 || l.text[from-1] != '#' { // #p"/srv" is a path
				out = append(out, form{atom: atom})
			}
		}
	}
	return out, true
}

// quoted reads a text in quotes, with these.
func (l *lisp) quoted() string {
	from := l.at
	for l.at++; l.at < len(l.text); l.at++ {
		switch l.text[l.at] {
		case '\\':
			l.at++
		case '"':
			l.at++
			return l.text[from:l.at]
		}
	}
	l.at = len(l.text)
	return l.text[from:] + `"`
}

func statements(all []form) string {
	lines := make([]string, len(all))
	for i, f := range all {
		lines[i] = f.String()
	}
	return strings.Join(lines, ";\n")
}

// String writes a form: a binding as an assignment, a list that a name begins as a call.
func (f form) String() string {
	switch {
	case f.open == 0 && strings.HasPrefix(f.atom, `"`):
		return f.atom
	case f.open == 0:
		return lispName.Replace(f.atom)
	case f.open != '(' || len(f.list) > 0 && strings.HasPrefix(f.list[0].atom, `"`):
		return "[" + separated(f.list) + "]"
	case len(f.list) == 0 || f.list[0].open != 0:
		return "(" + separated(f.list) + ")"
	case lispBinds[f.list[0].atom] && len(f.list) > 2:
		return assignments(f.list[1:])
	case lispLets[f.list[0].atom] && len(f.list) > 2:
		return letting(f.list[1]) + statements(f.list[2:])
	}
	return f.list[0].String() + "(" + separated(f.list[1:]) + ")"
}

func separated(list []form) string {
	parts := make([]string, len(list))
	for i, f := range list {
		parts[i] = f.String()
	}
	return strings.Join(parts, ", ")
}

// assignments writes names and values that take turns.
func assignments(pairs []form) string {
	var out strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		out.WriteString(pairs[i].String() + " = " + pairs[i+1].String() + ";\n")
	}
	return out.String()
}

// letting writes the bindings of a let: pairs in lists of their own, or in one list.
func letting(bindings form) string {
	var out strings.Builder
	if len(bindings.list) > 0 && bindings.list[0].open == 0 {
		return assignments(bindings.list)
	}
	for _, b := range bindings.list {
		out.WriteString(assignments(b.list))
	}
	return out.String()
}

var (
	lispBinds = map[string]bool{"setq": true, "setf": true, "set!": true, "def": true, "defvar": true, "defparameter": true, "defconst": true, "define": true, "local": true, "var": true, "global": true}
	lispLets  = map[string]bool{"let": true, "let*": true, "letrec": true, "when-let": true, "if-let": true}
	lispName  = strings.NewReplacer("-", "_", "/", ".", "::", ".", ":", ".", "*", "", "!", "", "?", "")
)
