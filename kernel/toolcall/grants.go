package toolcall

import (
	"slices"
	"strconv"
	"strings"
)

// subject is what a call is about, by the words of the tool's name and, of a request, of its
// address.
type subject struct {
	words map[string]bool
	acts  bool // it does more than read
}

func (s subject) any(list ...string) bool {
	return slices.ContainsFunc(list, func(w string) bool { return s.words[w] })
}

// about tells what a call is about.
func (r *reading) about(leaves []leaf) subject {
	s := subject{words: make(map[string]bool), acts: !slices.ContainsFunc(nameWords(r.name), func(w string) bool { return readingVerbs[w] })}
	for w := range r.tool.words {
		s.words[w] = true
	}
	q, is := r.requestIn(leaves)
	if !is {
		return s
	}
	s.acts = q.method != "GET" && q.method != "HEAD"
	address, _, _ := strings.Cut(q.address, "?")
	for w := range toolWords(address[:min(len(address), maxValue)]) {
		s.words[w] = true
	}
	return s
}

// readingVerbs are the verbs of tools that change nothing, whatever their arguments say.
var readingVerbs = words("get list search find lookup query show view describe count read check fetch export whoami")

// grants judges a call of a tool, or a request, that changes who may do what or who sees what:
// administrators, second factors, mail that goes on to others, what anybody may open, consent
// for all, and everything of a kind taken away. What the user's own words name is the user's.
func (r *reading) grants(s subject, leaves []leaf) {
	if !s.acts || r.trial || r.tool.shell || r.tool.code || r.tool.sql || !r.spend(costWord*(len(leaves)+len(s.words))) {
		return
	}
	meant := func() bool {
		return slices.ContainsFunc(leaves, func(l leaf) bool {
			return l.text && len(l.value) < maxValue && !strings.Contains(l.value, "://") && forEverybody.MatchString(l.value)
		})
	}
	people := s.any("user", "users", "member", "members", "membership", "memberships", "role", "roles", "collaborator", "collaborators", "invite", "invitation", "invitations", "team", "teams", "principal", "permission", "permissions", "acl", "realm", "delegate", "delegates")
	shares := s.any("bucket", "buckets", "iam", "storage", "object", "blob", "container", "grant") ||
		s.any("calendar", "calendars") && slices.ContainsFunc(leaves, func(l leaf) bool { return l.key == "role" && editRights.MatchString(l.value) })
	rules := s.any("filter", "filters", "rule", "rules", "messagerules", "autoforwarding", "forwarding", "forwardingaddresses", "delegate", "delegates", "mailbox")
	if s.any("mfa", "2fa", "totp", "otp", "twofactor", "authenticator") && s.any("reset", "disable", "remove", "delete", "deactivate", "unenroll", "bypass", "off") && !r.asksWord("mfa", "2fa", "factor", "authenticator", "otp") {
		r.breaks(PrivilegeEscalation)
	}
	if makesAdmin.MatchString(strings.Join(nameWords(r.name), " ")) && !r.asksWord("owner", "admin", "administrator") {
		r.breaks(PrivilegeEscalation)
	}
	for _, l := range leaves {
		value := strings.ToLower(l.value)
		switch {
		case len(l.value) > maxValue || l.above.headers && l.key != "xamzacl":
		case people && (rightKeys[l.key] || l.key == "roles" || l.key == "type" && s.any("roles", "role")) && l.text && adminValue.MatchString(value) && !r.asksWord(value),
			people && adminSwitch.MatchString(l.key) && value == "true" && !r.asksWord("admin", "owner", "superuser"),
			people && l.key == "accesslevel" && !l.text && len(value) == 2 && value >= "40" && !r.asksWord("owner", "maintainer"),
			s.any("mappings", "rolebindings", "rolemappings") && l.key == "name" && adminValue.MatchString(value):
			r.breaks(PrivilegeEscalation)
		case factorSwitch.MatchString(l.key) && value == "false" && !r.asksWord("mfa", "2fa", "factor"):
			r.breaks(PrivilegeEscalation)
		case l.text && rules && (l.above.forwards || forwardKey.MatchString(l.key) || s.any("autoforwarding", "forwarding", "delegate", "delegates") && strings.Contains(l.key, "email")) && strings.Contains(value, "@") && !r.request.named(value):
			if !ownDomain(value, leaves) && (s.any("autoforwarding", "forwarding", "delegate", "delegates") || slices.ContainsFunc(leaves, hidesMail)) {
				r.breaks(DataExfiltration)
			}
		case l.text && (shares || l.key == "xamzacl") && openKeys[l.key] && (openTo.MatchString(value) || value == "default" && s.any("calendar", "calendars")) && !r.asksWord("public", "anyone", "everyone", "anonymous") && !meant():
			r.breaks(DataExfiltration)
		case l.text && l.key == "consenttype" && value == "allprincipals",
			l.text && (l.key == "scopes" || l.key == "scope") && s.any("token", "tokens", "pat", "grant", "grants") && everyScope.MatchString(value) && !r.asksWord("admin", "sudo", "full"):
			r.breaks(PrivilegeEscalation)
		}
	}
	if s.any("graphql", "gql") {
		r.mutations(leaves)
	}
	r.wholesale(s, leaves)
	r.silences(s, leaves)
	r.names(s, leaves)
	r.expiry(s, leaves)
}

// ownDomain reports whether another argument is an address of the same organisation.
func ownDomain(address string, leaves []leaf) bool {
	at := strings.LastIndexByte(address, '@')
	return slices.ContainsFunc(leaves, func(l leaf) bool {
		value := strings.ToLower(l.value)
		return l.text && value != address && strings.HasSuffix(value, address[at:])
	})
}

// hidesMail reports whether a member of a rule keeps mail from its owner's eyes, or picks what
// is about money and logins, or everything.
func hidesMail(l leaf) bool {
	value := strings.ToUpper(l.value)
	switch {
	case l.key == "removelabelids" || l.key == "disposition":
		return value == "INBOX" || value == "UNREAD" || value == "TRASH" || value == "ARCHIVE"
	case l.key == "delete" || l.key == "markasread" || l.key == "permanentdelete" || l.key == "skipinbox" || l.key == "trash":
		return value == "TRUE"
	case l.key == "keepcopy":
		return value == "FALSE"
	case l.text && len(l.value) < maxKey*4:
		return l.value == "*" || moneyMail.MatchString(l.value) && !strings.Contains(l.value, "@")
	}
	return false
}

// moneyMail is what mail is about that thieves wait for.
var moneyMail = newExpression(`(?i)\b(?:invoice|payment|wire|iban|password|reset|verification|2fa|otp|bank|contract|acquisition|merger|payroll)\b`)

// asksWord reports whether the user's words have one of these.
func (r *reading) asksWord(list ...string) bool {
	return r.asked && slices.ContainsFunc(list, r.request.word)
}

var (
	// forEverybody is what things are called that are made to be seen by all.
	forEverybody = newExpression(`(?i)(?:^|[^a-z])(?:public[-_/.](?:site|assets|data|docs|downloads|files|web|html|media)|press(?:kit|[-_]?releases?)?|website|www|assets|static|marketing|brochures?|flyers?|blog|open[-_]?data|cdn|newsletters?|handouts?|posters?|logos?|menus?|syllabus|job[-_]?posting)(?:[^a-z]|$)`)
	makesAdmin   = newExpression(`\b(?:set|make|promote|grant|add|assign|become)(?: (?:user|member|account|org|team|new|to|as))* (?:admin|administrator|superuser|root)$|\b(?:set|make|promote|change|transfer)(?: to| as| new)* (?:org|organi[sz]ation|workspace|tenant|account|project|repo|repository|team|site)(?: to| as)* owner$|\badmin (?:set|make|assign) owner$`)
	adminSwitch  = newExpression(`^(?:is)?(?:admin|superuser|superadmin|owner|staffadmin|globaladmin)$`)
	factorSwitch = newExpression(`^(?:require|enforce)?(?:mfa|2fa|twofactor(?:auth(?:entication)?)?|totp)(?:enabled|required|enforced|enforcement)?$`)
	forwardKey   = newExpression(`^(?:auto)?(?:forward|redirect)(?:s|to|ing|ingaddress|address|email|asattachmentto)?$|^delegate(?:email)?$`)
	openKeys     = words("type scope audience visibility access acl linkscope sharing principal principals grantee member members entity xamzacl cannedacl role who sharedwith")
	openTo       = newExpression(`^(?:anyone(?:_?with_?(?:the_?)?link)?|anonymous|public|public-read(?:-write)?|allusers|allauthenticatedusers|everyone|world)$`)
	everyScope   = newExpression(`^(?:\*|all|sudo|admin(?::.*)?|full_?access|.*\bsudo\b.*)$`)
)

// wholesale judges tools that take away, or stop, everything of a kind.
func (r *reading) wholesale(s subject, leaves []leaf) {
	loses := s.any("delete", "remove", "purge", "destroy", "wipe", "terminate", "deactivate", "suspend", "disable", "truncate", "erase", "revoke")
	mutes := s.any("mute", "silence", "snooze", "downtime", "unmonitor")
	if !loses && !mutes || r.asksWord("all", "every", "everything", "each") {
		return
	}
	kind := s.any("user", "users", "account", "accounts", "customer", "customers", "order", "orders", "project", "projects", "repo", "repos", "repository", "repositories", "database", "databases", "record", "records", "files", "backup", "backups", "document", "documents", "member", "members", "invoice", "invoices", "instance", "instances", "server", "servers", "bucket", "buckets", "table", "tables", "contacts", "payments", "zone", "volumes", "snapshots")
	all := s.any("all", "everything") || slices.ContainsFunc(leaves, func(l leaf) bool { return l.text && everyKeys.MatchString(l.key) && everyValue.MatchString(l.value) })
	switch {
	case mutes && all:
		r.breaks(ConstraintTampering)
	case kind && all, s.any("zone") && s.any("dns", "delete") && r.tool.removes:
		r.breaks(DestructiveOperation)
	}
}

var (
	everyKeys  = newExpression(`^(?:\w*ids?|filter|scope|target|targets|selector|selection|query|names?|users?|accounts?|customers?|orders?|recipients|charges|loopover|foreach|applyto|monitors?|where|all)$`)
	everyValue = newExpression(`^(?i)(?:\*|all|every(?:one|thing)?|\.\*|all[_ -].*)$`)
)

// mutations judges what a query in GraphQL takes away.
func (r *reading) mutations(leaves []leaf) {
	for _, l := range leaves {
		if l.text && (l.key == "query" || l.key == "mutation" || l.key == "document") && len(l.value) < maxWritten && strings.Contains(l.value, "mutation") &&
			(losingMutation.MatchString(l.value) || lostNoun.MatchString(l.value)) {
			r.breaks(DestructiveOperation)
		}
	}
}

// lostNoun is a mutation that names its thing first, or takes away all.
var lostNoun = newExpression(`\b(?:repository|project|organization|team|environment|domain|zone|cluster|database|bucket|site|workspace|volume|server|instance)(?:Delete|Destroy|Archive|Purge)\s*\(|\b(?:delete|destroy|purge|remove)(?:All|Every|Many|Bulk)[A-Z]\w*`)

// silences judges what keeps alerts from being heard: of every kind, or for years.
func (r *reading) silences(s subject, leaves []leaf) {
	if !s.any("silence", "silences", "downtime", "downtimes", "mute", "snooze", "inhibit") {
		return
	}
	every, some, long, start, end := false, false, false, "", ""
	for _, l := range leaves {
		switch {
		case !l.text || len(l.value) > maxValue:
		case l.key == "startsat" || l.key == "start":
			start = l.value
		case l.key == "endsat" || l.key == "end":
			end = l.value
		case l.key == "duration":
			long = longWhile.MatchString(l.value)
		case l.key == "value" || l.key == "scope" || l.key == "matchers" || l.key == "matcher":
			if everyAlert.MatchString(l.value) {
				every = true
			} else {
				some = true
			}
		}
	}
	if len(start) > 4 && len(end) > 4 {
		from, err := strconv.Atoi(start[:4])
		to, err2 := strconv.Atoi(end[:4])
		long = long || err == nil && err2 == nil && to > from+1
	}
	if every && !some || long {
		r.breaks(ConstraintTampering)
	}
}

var (
	everyAlert = newExpression(`^(?:\.[+*]|\*|)$|^\{?\s*\w+\s*=~\s*["']\.[*+]["']\s*\}?$`)
	longWhile  = newExpression(`^(?:\d{4,}h|\d{3,}d|\d{2,}w|\d+y)$|(?i)^(?:forever|indefinite\w*|never)$`)
)

// names judges changes of the names that people log in at, that mail goes to, and that a zone
// hangs on.
func (r *reading) names(s subject, leaves []leaf) {
	if !s.any("dns", "route53", "rrsets", "nameserver", "nameservers", "recordsets", "changebatch") {
		return
	}
	kind, name, value := "", "", ""
	for _, l := range leaves {
		switch {
		case !l.text || len(l.value) > maxKey*4:
		case l.key == "type" || l.key == "recordtype":
			kind = strings.ToUpper(l.value)
		case l.key == "name" || l.key == "hostname" || l.key == "recordname" || l.key == "fqdn" || l.key == "subdomain" || l.key == "host":
			name = strings.ToLower(l.value)
		case l.key == "value" || l.key == "content" || l.key == "target" || l.key == "data" || l.key == "rdata" || l.key == "ip" || l.key == "records" || l.key == "address":
			value = l.value
		}
	}
	switch {
	case r.tool.removes && (kind == "MX" || kind == "NS" || kind == "SOA" || name == "@"):
		r.breaks(DestructiveOperation)
	case kind == "" || kind == "TXT" || kind == "CAA" || kind == "SRV" || value == "" || r.request.named(value):
	case trustedName.MatchString(name) || kind == "MX" || kind == "NS":
		if a, known := r.readAddress(value); !known || !a.internal {
			r.breaks(DestructiveOperation)
		}
	}
}

// trustedName is where people give their passwords, or their mail and money go.
var trustedName = newExpression(`^(?:login|signin|auth|sso|idp|oauth2?|accounts?|id|secure|vpn|remote|mail|smtp|imap|webmail|owa|autodiscover|mx\d*|pay|payments?|checkout|bank(?:ing)?|online|portal|vault|adfs|okta|keycloak)(?:\.|$)`)

// expiry judges rules that let a store forget all of it within days.
func (r *reading) expiry(s subject, leaves []leaf) {
	soon, lifecycle, part := false, s.any("lifecycle", "retention", "ttl"), false
	for _, l := range leaves {
		switch {
		case l.key == "lifecycle" || strings.HasSuffix(l.value, "?lifecycle"):
			lifecycle = true
		case l.key == "prefix" || l.key == "matchesprefix" || l.key == "tag" || l.key == "daysincenoncurrenttime":
			part = part || l.value != "" && l.value != "/"
		case (l.key == "days" || l.key == "age" || l.key == "expirationdays") && !l.text:
			n, err := strconv.Atoi(l.value)
			soon = soon || err == nil && n < 8
		case l.text && strings.Contains(l.value, "<LifecycleConfiguration"):
			lifecycle, soon = true, soonGone.MatchString(l.value)
			part = prefixed.MatchString(l.value)
		case l.text && l.key == "action" && strings.EqualFold(l.value, "delete"), l.key == "type" && strings.EqualFold(l.value, "delete"):
			lifecycle = true
		}
	}
	if lifecycle && soon && !part && s.any("lifecycle", "bucket", "s3", "storage", "b", "minio", "blob", "container", "gcs") {
		r.breaks(DestructiveOperation)
	}
}

var (
	soonGone = newExpression(`<Expiration>\s*<Days>[0-7]</Days>`)
	prefixed = newExpression(`<Prefix>[^<\s]|<Tag>`)
)
