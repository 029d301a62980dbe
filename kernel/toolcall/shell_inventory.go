package toolcall

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caddy-lex/lex/kernel/regex"
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
			return s.left(unwrap(s.argv(call)), items)
		}
	case *syntax.CallExpr:
		return listedByClient(s.meaning(unwrap(s.argv(c))))
	}
	return nil
}

// clientListings are what clients say to list what they manage, and nothing narrows it.
var clientListings = byCommand(
	`zfs zpool: list\b`,
	`lvs vgs pvs: .*`,
	`psql mysql mariadb: .*(?i:pg_database|show databases|information_schema\.schemata)`,
	`psql: (?:\S+ )*-\w*l`,
	`mysqlshow: .*`,
	`redis-cli valkey-cli: (?:\S+ )*(?:--scan$|(?i:keys) \*)`,
	`etcdctl: (?:\S+ )*get .*--(?:prefix|from-key)|(?:\S+ )*member list`,
	`consul: kv get .*-keys`,
	`docker podman: (?:volume|network|service|stack|secret|config|node|context) ls\b`,
	`gcloud: (?:\S+ )+list\b`,
	`az: (?:\S+ )+list\b`,
	`aws: (?:s3 ls$|(?:\S+ )*(?:list|describe)-\S+)`,
	`doctl hcloud linode-cli scw openstack civo: (?:\S+ )+list\b`,
	`gh glab: (?:repo|secret|variable|release|workflow|project) list\b`,
	`virsh lxc incus qm pct VBoxManage xe: (?:\S+ )*(?:list|vm-list)\b`,
	`kafka-topics kafka-topics.sh rabbitmqctl rabbitmqadmin: .*list`,
	`mc: ls\b`, `rclone: ls[df]\b`, `s3cmd gsutil: ls\b`,
	`npm: (?:search|access (?:ls-packages|list packages)|org ls)\b`,
	`helm: (?:\S+ )*(?:ls|list)\b`,
	`restic borg: (?:\S+ )*(?:snapshots|list)\b`,
	`velero: (?:backup|schedule) get\b`,
	`tmutil: list\w+`,
	`snapper: list\b`,
	`vault: (?:kv|secrets|auth|policy) list\b`,
	`amtool: (?:alert|silence)\b`,
)

// eachLosses are what clients do to a thing that others have to do without: done to one that
// somebody picked it is work, done to each of all it is a loss.
var eachLosses = byCommand(
	`zfs zpool: (?:\S+ )*destroy\b`,
	`dropdb: .*`,
	`mysqladmin mariadb-admin: .*drop\b`,
	`etcdctl: (?:\S+ )*(?:del|member remove)\b`,
	`consul: kv delete\b`,
	`redis-cli valkey-cli: (?i:(?:\S+ )*(?:del|unlink)\b)`,
	`kubectl oc k: (?:\S+ )*(?:scale .*--replicas[= ]0|delete (?:\S+ )*(?:deploy\w*|svc|services?|secrets?|configmaps?|cm|ingress\w*|ing|statefulsets?|sts|ns|namespaces?|cronjobs?|pvc?|nodes?|ds|daemonsets?)[ /]|cordon|drain)`,
	`docker podman: (?:volume|network|service|stack|secret|config|node) (?:rm|remove)\b`,
	`gcloud az doctl hcloud linode-cli scw openstack civo: (?:\S+ )*(?:stop|delete|deallocate|disable|reset|suspend|power-?off|shutdown)\b`,
	`aws: (?:\S+ )*(?:stop|reboot|terminate|delete|disable|detach|deregister)-\S+|(?:\S+ )*s3 (?:rb|rm)\b`,
	`gh glab: (?:\S+ )*(?:delete|archive|disable)\b`,
	`virsh lxc incus qm pct VBoxManage xe: (?:\S+ )*(?:destroy|shutdown|stop|delete|undefine|poweroff)\b`,
	`systemctl: (?:\S+ )*(?:stop|disable|mask|kill)\b`,
	`npm: (?:unpublish|deprecate|owner rm)\b`,
	`mc s3cmd gsutil rclone: (?:\S+ )*(?:rb|rm|purge|delete)\b`,
	`rabbitmqctl rabbitmqadmin: .*(?:delete|purge)`,
	`helm: (?:\S+ )*(?:uninstall|delete)\b`,
	`restic borg velero tmutil snapper: .*(?:forget|delete\w*)`,
	`vault: (?:\S+ )*(?:delete|disable|destroy)\b`,
	`lvremove vgremove: .*`,
)

// forEach judges a command that is done to each of what a client lists.
func (s *shell) forEach(name string, argv []string) {
	rule := eachLosses[name]
	if rule == nil || !slices.ContainsFunc(argv[1:], func(w string) bool { return strings.Contains(w, eachText) }) {
		return
	}
	if line := strings.Join(argv[1:], " "); rule.MatchString(line) && !strings.Contains(line, "--dry-run") {
		s.breaks(DestructiveOperation)
	}
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
			return []string{words[1] + "/" + eachText}
		}
	case "git":
		switch {
		case len(words) == 1 && words[0] == "tag" && (flags == "-l " || flags == "--list "):
			return []string{"v1.0"}
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
			return []string{"auditd.service", eachText}
		}
	default:
		e, line := clientListings[programName(argv[0])], strings.Join(argv[1:], " ")
		if e != nil && e.MatchString(line) && !narrowed.MatchString(" "+line) && !narrowedList.MatchString(" "+line) {
			return []string{eachText}
		}
	}
	return nil
}

// narrowedList are the flags by which other clients list some of what there is.
var narrowedList = regex.New(` (?:-f|--filters?|--query|--filter\S*|--tags?|--prefix [^-/]\S|--limit|-L|-r|-d [1-9])(?:[= ]|$)`)

var (
	narrowed    = regex.New(` (?:-l|--selector|--field-selector|--merged|--no-merged|--contains|--no-contains|--points-at|--count)(?:[= ]|$)`)
	everyRef    = regex.New(`^refs(?:/(?:remotes(?:/[\w.-]+)?|tags|heads))?/?\*{0,2}$`)
	everyBranch = regex.New(` (?:-r|-a|--remotes?|--all|-\w*[ra])(?: |$)`)
)

// left is what a filter leaves of a listing, or nothing where it may be what somebody
// picked.
func (s *shell) left(argv, items []string) []string {
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
		if awkPicks.MatchString(line) {
			return nil
		}
		return s.printedOf(argv, items)
	case "sed", "gsed":
		if out, known := s.decoded(argv, strings.Join(items, "\n")); known {
			return strings.Split(out, "\n")
		}
		return items
	case "jq":
		if strings.Contains(line, "select") {
			return nil
		}
		return items
	case "cut", "tr", "sort", "uniq", "tac", "rev", "xargs", "cat", "column", "tee":
		return items
	case "tail":
		if strings.Contains(line, "+") {
			return items
		}
	}
	return nil
}

// awkPicks is a condition in a program of awk.
var awkPicks = regex.New(`[/~<>]\s*(?:\S+/)?|==|!=`)

// printedOf are the items as a program of awk prints them.
func (s *shell) printedOf(argv, items []string) []string {
	var out []string
	for _, item := range items {
		out = append(out, s.awk(argv, item).printed...)
	}
	return out[:min(len(out), maxBlocks)]
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
