package toolcall

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxFilters bounds the filters behind a listing that are followed.
const maxFilters = 8

// inventory names some of what a statement lists of a service or a repository, for what is
// then done to each of them: all branches hold the shared one. It knows nothing of a
// listing that somebody has cut down.
func (s *shell) inventory(st *syntax.Stmt, depth int) []string {
	if st == nil || depth > maxFilters {
		return nil
	}
	switch c := st.Cmd.(type) {
	case *syntax.BinaryCmd:
		call, ok := c.Y.Cmd.(*syntax.CallExpr)
		if c.Op != syntax.Pipe || !ok {
			return nil
		}
		if items := s.inventory(c.X, depth+1); len(items) > 0 {
			return left(unwrap(s.argv(call)), items)
		}
	case *syntax.CallExpr:
		return listedByClient(s.meaning(unwrap(s.argv(c))))
	}
	return nil
}

// meaning is the command that a function or an alias of one command stands for.
func (s *shell) meaning(argv []string) []string {
	if len(argv) == 0 {
		return argv
	}
	if text, is := s.aliases[argv[0]]; is {
		return append(strings.Fields(text), argv[1:]...)
	}
	body, is := s.functions[argv[0]]
	if !is {
		return argv
	}
	block, is := body.Cmd.(*syntax.Block)
	if !is || len(block.Stmts) != 1 {
		return argv
	}
	call, is := block.Stmts[0].Cmd.(*syntax.CallExpr)
	if !is {
		return argv
	}
	var out []string
	s.within(argv[1:], func() { out = slices.Clone(s.argv(call)) })
	return unwrap(out)
}

// listedByClient names some of what a client lists when nothing narrows the listing.
func listedByClient(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	verbs, flags := verbsAndFlags(argv)
	switch words := strings.Fields(verbs); programName(argv[0]) {
	case "kubectl", "oc", "k":
		if len(words) == 2 && words[0] == "get" && !narrowed.MatchString(" "+flags) {
			return []string{words[1] + "/" + unknownText}
		}
	case "git":
		switch {
		case len(words) == 0 || narrowed.MatchString(" "+flags):
		case words[0] == "for-each-ref" && (len(words) == 1 || everyRef.MatchString(words[1])), words[0] == "ls-remote" && len(words) < 3,
			words[0] == "branch" && len(words) == 1 && everyBranch.MatchString(" "+flags), words[0] == "show-ref":
			return []string{"main", "release/1.0"}
		case words[0] == "tag" && len(words) == 1:
			return []string{"v1.0"}
		case words[0] == "rev-list" && strings.Contains(flags, "--max-parents=0"):
			return []string{"HEAD~10000"} // the first commit
		}
	case "systemctl":
		if len(words) > 0 && strings.HasPrefix(words[0], "list-unit") {
			return []string{"auditd.service"}
		}
	}
	return nil
}

var (
	narrowed    = newExpression(` (?:-l|--selector|--field-selector|--merged|--no-merged|--contains|--no-contains|--points-at|--count)(?:[= ]|$)`)
	everyRef    = newExpression(`^refs(?:/(?:remotes(?:/[\w.-]+)?|tags|heads))?/?\*{0,2}$`)
	everyBranch = newExpression(` (?:-r|-a|--remotes?|--all|-\w*[ra])(?: |$)`)
)

// left is what a filter leaves of a listing, or nothing where it may be what somebody
// picked.
func left(argv, items []string) []string {
	if len(argv) == 0 {
		return nil
	}
	switch line := strings.Join(argv, " "); programName(argv[0]) {
	case "grep", "egrep", "fgrep", "rg":
		patterns := operands(argv)
		if len(patterns) == 0 {
			return items
		}
		drops := hasFlag(argv, 'v', "--invert-match")
		return slices.DeleteFunc(slices.Clone(items), func(item string) bool { return drops == picks(patterns[0], item) })
	case "awk", "gawk", "mawk":
		if strings.ContainsAny(line, "/~=<>") {
			return nil
		}
		return items
	case "jq":
		if strings.Contains(line, "select") {
			return nil
		}
		return items
	case "cut", "tr", "sed", "sort", "uniq", "tac", "rev", "xargs", "cat", "column", "tee":
		return items
	case "tail":
		if strings.Contains(line, "+") {
			return items
		}
	}
	return nil
}

// picks reports whether one of the words of a filter's pattern stands in an item.
func picks(pattern, item string) bool {
	for word := range strings.FieldsFuncSeq(pattern, func(c rune) bool { return strings.ContainsRune(`|\()^$*.?+/ `, c) }) {
		if strings.Contains(item, word) {
			return true
		}
	}
	return false
}
