package toolcall

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/caddy-lex/lex/kernel/regex"
)

// projection is what a command lets through of what it reads. Whoever compares the names in
// .env with those in .env.example, or counts the resources of a state, reads no secret.
type projection int

const (
	wholeText projection = iota // what was read
	namesOnly                   // what stands before the first = or : of a line
	noValues                    // names of members, counts, digests
)

// projectionOf tells what a command lets through. What it does not know lets through all.
func projectionOf(argv []string) projection {
	line := strings.Join(argv[1:], " ")
	switch name := programName(argv[0]); {
	case digests[name]:
		return noValues
	case name == "cut" && cutsNames.MatchString(line),
		(name == "awk" || name == "gawk" || name == "mawk") && printsNames.MatchString(line),
		name == "sed" && dropsValues.MatchString(line),
		searchers[name] && (findsNames.MatchString(line) || findsPlain(argv)):
		return namesOnly
	case searchers[name] && (hasFlag(argv, 'c', "--count") || hasFlag(argv, 'q', "--quiet") || hasFlag(argv, 'l', "--files-with-matches")):
		return noValues
	case (name == "jq" || name == "yq") && describes(argv), logsIn(name, line):
		return noValues
	}
	return wholeText
}

// logsIn reports whether a command takes a password from its input for the registry that the
// password is of: ghcr.io, or Amazon's.
func logsIn(name, line string) bool {
	return (name == "docker" || name == "podman" || name == "helm" || name == "crane" || name == "oras") && registryLogin.MatchString(line) && strings.Contains(line, "--password-stdin")
}

var registryLogin = regex.New(`^(?:registry |auth )?login (?:-\S+ (?:[\w.-]+ )?)*(?:https://)?(?:ghcr\.io|\d+\.dkr\.ecr\.[\w-]+\.amazonaws\.com(?:\.cn)?|public\.ecr\.aws)(?:/[\w./-]*)?(?: -\S+(?: [\w-]+)?)*$`)

var (
	digests   = words("wc cksum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum shasum md5 sum")
	searchers = words("grep egrep fgrep rg zgrep ag ack")

	cutsNames   = regex.New(`^(?:-s )?(?:-d ?[=:] -f ?1|-f ?1 -d ?[=:]|--delimiter=[=:] --fields=1)(?: |$)`)
	printsNames = regex.New(`^-F ?\[?[=:]+\]? (?:!?/[^/]*/ ?)?\{ ?print \$1;? ?\}(?: |$)`)
	dropsValues = regex.New(`^(?:-[Er] )?(?:-e )?s([/|#,])(?:=|:|\[[:=]+\])\.\*\$?[/|#,][=:]?[*xX<> .]{0,12}[/|#,]g?(?: |$)`)
	findsNames  = regex.New(`^(?:-[oEPh]+ )+\^(?:\[(?:\^[=:]+|[A-Za-z_0-9-]+)\]|\\w)[*+][=:]?(?: |$)`)
)

// findsPlain reports whether a search finds the lines of one variable that holds no secret.
func findsPlain(argv []string) bool {
	if hasFlag(argv, 'v', "--invert-match") {
		return false
	}
	patterns := operands(argv)
	return len(patterns) > 0 && plainName.MatchString(patterns[0]) && !secretWord.MatchString(patterns[0])
}

var (
	plainName  = regex.New(`^\^?[A-Za-z_]{3,}=?$`)
	secretWord = regex.New(`(?i)secret|token|pass|key|cred|auth|aws|api|pwd|private|database|dsn|mongo|postgres|mysql|redis|smtp|salt|sign`)
)

// describes reports whether a filter of jq tells how members are called, how many or of what
// kind they are, or the values of some that hold no secret.
func describes(argv []string) bool {
	filters := operands(argv)
	if len(filters) == 0 || len(filters[0]) > maxValue || strings.ContainsAny(filters[0], `\$`) || !plainFilter.MatchString(strings.Join(argv[1:], " ")) {
		return false
	}
	told := false
	for stage := range strings.SplitSeq(filters[0], "|") {
		stage = strings.ReplaceAll(stage, " ", "")
		tells := describing.MatchString(stage) || plainPaths(stage)
		if told && !tells && !arranges.MatchString(stage) {
			return false
		}
		told = told || tells
	}
	return told
}

// plainFilter is a call of jq whose flags bring in nothing else, and arranges is a step that
// adds nothing to what is there.
var (
	plainFilter = regex.New(`^(?:-[rcSMCejPo]+ |--(?:raw-output|compact-output|sort-keys|exit-status|yaml-output|tab) |-o=?(?:json|yaml|props) )*[^-]`)
	arranges    = regex.New(`^(?:\.\[\]?|\.\[\]|sort|unique|reverse|first|last|join\([^()]*\)|@(?:tsv|csv|json|text)|tostring|select\([^()]*\)|length|\.)$`)
)

// describing is a step of a filter behind which no value is left.
var describing = regex.New(`^(?:\.[\w.\[\]"-]*)?(?:keys(?:_unsorted)?(?:\[\])?|length|type|map_values\((?:length|type)\)|to_entries(?:\[\])?\.?key|to_entries\[\]\.key|map\(\.key\)|map\((?:length|type)\))$`)

// plainPaths reports whether a step of a filter leaves some members by their names, and none
// that may hold a secret.
func plainPaths(stage string) bool {
	paths := strings.Split(strings.Trim(stage, "{}[]()"), ",")
	return !slices.ContainsFunc(paths, func(p string) bool {
		if _, value, named := strings.Cut(p, ":"); named {
			p = value
		}
		return !memberPath.MatchString(p) || !holdsNoSecret(p)
	})
}

var memberPath = regex.New(`^(?:\.(?:[A-Za-z_]\w*|\[\d*\])|\[\d*\])+\??$`)

// holdsNoSecret judges a path by the names on it. In what only holds secrets, such as the data
// of a secret of Kubernetes or of Vault, what is known to tell of them is spared alone.
func holdsNoSecret(p string) bool {
	names := strings.FieldsFunc(p, func(c rune) bool { return strings.ContainsRune(`.[]?0123456789"`, c) })
	if len(names) > 1 && names[len(names)-1] == "value" {
		names = names[:len(names)-1]
	}
	if len(names) == 0 || secretMember.MatchString(strings.Join(names, " ")) {
		return false
	}
	last := names[len(names)-1]
	return !containers[last] && (!slices.ContainsFunc(names, func(n string) bool { return containers[n] }) || descriptive[last])
}

var (
	secretMember = regex.New(`(?i)secret|token|pass|key|cred|auth|pwd|private|database|dsn|conn|ur[il]|cert|pem|config|salt|hash|sign|webhook|mongo|redis|postgres|mysql|smtp|env`)
	containers   = words("data stringData attributes values value outputs output resources instances items annotations")
	descriptive  = words("policies ttl creation_ttl explicit_max_ttl expire_time issue_time creation_time created_time updated_time destroyed deletion_time renewable orphan version current_version max_versions oldest_version display_name entity_id type name id arn namespace kind mode serial lineage provider module")
)

// projects notes of the commands before a filter what it lets through of them. What goes
// elsewhere on its way, into a file or to somebody, is not held back.
func (s *shell) projects(n *syntax.BinaryCmd, argv []string) {
	if len(argv) == 0 {
		return
	}
	left := projectionOf(argv)
	if left == wholeText {
		return
	}
	var calls []*syntax.CallExpr
	kept := true
	syntax.Walk(n.X, func(node syntax.Node) bool {
		switch m := node.(type) {
		case *syntax.CallExpr:
			calls = append(calls, m)
			words := s.argv(m)
			kept = kept && (len(words) == 0 || onlyPrints(words))
		case *syntax.Redirect:
			kept = kept && (m.Op == syntax.RdrIn || m.N != nil && m.N.Value == "2")
		case *syntax.ProcSubst, *syntax.WhileClause, *syntax.ForClause:
			kept = false
		}
		return true
	})
	for _, call := range calls {
		if kept {
			note(&s.projected, call, left)
		}
	}
}

// onlyPrints reports whether a command does nothing with what it reads but print it.
func onlyPrints(argv []string) bool {
	name := programName(argv[0])
	return prints[name] && (name != "sort" && name != "base64" || !hasFlag(argv, 'o', "--output"))
}

// prints are the commands that do nothing with what they read but print it.
var prints = words("cat tac head tail nl sort grep egrep fgrep rg cut tr jq env printenv set export declare typeset echo printf terraform tofu kubectl oc vault heroku doppler flyctl fly railway helm aws gcloud az docker podman sudo command time rev column base64 gzip gunzip zcat")

// withholds reports whether what a command reads of a file does not come out: by what it is
// itself, or by the filter behind it.
func (s *shell) withholds(argv []string, file string) bool {
	switch max(s.let, projectionOf(argv)) {
	case noValues:
		return true
	case namesOnly:
		return assignments.MatchString(file) && !strings.Contains(file, unknownText)
	}
	return false
}

// assignments are the files of which each line is a name and its value. Of another, cut and
// awk print the lines that have no sign in them whole.
var assignments = regex.New(`(?i)(?:^|/)(?:\.env[\w.-]*|[\w-]+\.env|\.npmrc|[\w-]+\.properties|etc/shadow|etc/gshadow)$`)

// tellsNames reports whether a command that prints secrets by design is asked for what tells
// of them, or is filtered down to that.
func (s *shell) tellsNames(name, line string) bool {
	switch name {
	case "kubectl", "oc":
		if m := kubernetesOutput.FindStringSubmatch(line); m != nil {
			return s.let == noValues || metadataOnly(m[1])
		}
	case "terraform", "tofu":
		if m := terraformOutput.FindStringSubmatch(line); m != nil {
			return s.let == noValues || !secretMember.MatchString(m[1])
		}
	case "doppler":
		return strings.Contains(line, "--only-names")
	}
	return s.let == noValues && !takesSecrets[name] || s.let == namesOnly && listsAssignments[name]
}

var (
	kubernetesOutput = regex.New(`(?:-o|--output)[ =]?(?:jsonpath|jsonpath-as-json|custom-columns|go-template)=(.*)`)
	terraformOutput  = regex.New(`^output (?:-(?:raw|json|no-color) )+([A-Za-z_][\w-]*)$`)

	// takesSecrets are the commands that leave the secrets in files, wherever their output goes.
	takesSecrets     = words("mimikatz john hashcat secretsdump secretsdump.py impacket-secretsdump lazagne laZagne.py unshadow procdump gcore rundll32 reg netsh gpg gpg2")
	listsAssignments = words("heroku printenv doppler flyctl fly railway")
)

// metadataOnly reports whether the columns or paths of an output all stand in the metadata of
// an object, or are certificates. Its annotations may repeat the object.
func metadataOnly(columns string) bool {
	fields := objectField.FindAllString(columns, maxPlaces*maxPlaces)
	return len(fields) > 0 && len(fields) < maxPlaces*maxPlaces && !strings.ContainsAny(columns, "@$") && !slices.ContainsFunc(fields, func(f string) bool { return !metadataField.MatchString(f) })
}

var (
	objectField   = regex.New(`\.[A-Za-z\[*'"\\][\w.\[\]*'"\\-]*|\{\s*\.?\s*\}`)
	metadataField = regex.New(`^(?:\.items(?:\[[\d*]*\])?)?(?:\.metadata\.(?:name|namespace|creationTimestamp|uid|resourceVersion|labels(?:\.[\w.\\-]+)?|ownerReferences(?:\[[\d*]*\])?(?:\.(?:name|kind))?)|\.type|\.kind|\.data\.(?:tls|ca)\\\.crt)?$`)
)
