package toolcall

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// request is what a tool, or a client on a command line, asks of a server.
type request struct {
	method, address string
	body            []leaf
}

// requestIn puts together the request of a tool that makes one; of another it has no address.
func (r *reading) requestIn(leaves []leaf) (q request) {
	for _, l := range leaves {
		if l.text && methodKeys[l.key] && httpMethod.MatchString(l.value) && (q.method == "" || l.key == "xhttpmethodoverride") {
			q.method = strings.ToUpper(l.value)
		}
	}
	if q.method == "" {
		return q
	}
	for _, l := range leaves {
		switch {
		case methodKeys[l.key]:
		case l.text && (roleOfKey(l.key) == roleURL || l.key == "path") && !l.above.headers && q.address == "":
			q.address = l.value
		case l.above.headers || headers.MatchString(l.key):
		case l.text && strings.HasPrefix(strings.TrimSpace(l.value), "{") && r.spend(2*costSearch*len(l.value)):
			q.body = append(append(q.body, l), r.bodyOf(l.value)...)
		default:
			q.body = append(q.body, l)
		}
	}
	return q
}

// onlyGets reports whether a request with these arguments reads, and does nothing else: it
// has an address, headers and such, by its method it reads, and nothing goes along.
func onlyGets(leaves []leaf) bool {
	return !slices.ContainsFunc(leaves, func(l leaf) bool {
		switch {
		case methodKeys[l.key]:
			return !reads.MatchString(l.value)
		case roleOfKey(l.key) == roleURL, l.above.headers, headers.MatchString(l.key), plainOptions[l.key]:
			return false
		}
		return true
	})
}

var (
	reads        = regex.New(`^(?i:get|head|)$`)
	plainOptions = words("timeout timeoutms maxlength startindex raw format encoding prompt description")
	methodKeys   = words("method httpmethod requestmethod verb xhttpmethodoverride type")
	httpMethod   = regex.New(`^(?i:get|head|post|put|patch|delete)$`)
)

// manages judges a tool's request to a server that manages something.
func (r *reading) manages(q request) {
	if q.address == "" || !r.spend(costPlace*len(q.address)+costWord*len(q.body)) {
		return
	}
	r.managed(q)
	r.filledIn(q)
}

// asksServer judges the request of a command or a program.
func (r *reading) asksServer(q request) {
	r.managed(q)
	r.dealsBy(q)
}

// managed judges a request by its method, the thing that its path ends in, and what its body
// switches. What is made to be tried out is nobody's loss.
func (r *reading) managed(q request) {
	host, place := cutAddress(q.address)
	if place == "" || len(place) > maxValue {
		return
	}
	trial := ownHost.MatchString(host) || trialPlace.MatchString(place) || trialPlace.MatchString(strings.Split(host, ".")[0])
	deletes := q.method == "DELETE"
	trial = trial || deletes && !wideKind.MatchString("delete "+strings.ReplaceAll(place, "/", " ")) && r.toGo(lastSegment(place))
	switch {
	case deletes && guardThing.MatchString(place) && !ownHost.MatchString(host):
		r.breaks(ConstraintTampering)
	case deletes && !trial && (valuedThing.MatchString(place) || sharedRef.MatchString(place) || searchHost.MatchString(host) && oneIndex.MatchString(place)):
		r.breaks(DestructiveOperation)
	case deletes && !trial && !r.trial && (everyRow.MatchString(place) || storeHost.MatchString(host) && oneIndex.MatchString(place)):
		r.breaks(DestructiveOperation)
	case guardQuery.MatchString(q.address) && (deletes || slices.ContainsFunc(q.body, func(l leaf) bool { return strings.Contains(l.value, "Suspended") })):
		r.breaks(ConstraintTampering)
	case !deletes && q.method != "GET" && runsScript.MatchString(place):
		r.breaks(RemoteCodeExecution)
	case q.method != "GET" && (sealed.MatchString(place) || slices.ContainsFunc(q.body, func(l leaf) bool { return l.key == "actiondestructiverequiresname" && l.value == "false" })):
		r.breaks(ConstraintTampering)
	case q.method == "POST" && timeSeries.MatchString(place) && !slices.ContainsFunc(q.body, func(l leaf) bool { return l.key == "predicate" && l.value != "" }),
		strings.HasSuffix(place, "/update") && slices.ContainsFunc(q.body, func(l leaf) bool { return strings.Contains(l.value, "<query>*:*") }):
		r.breaks(DestructiveQuery)
	case q.method == "POST" && !trial && (lostBy.MatchString(place) || everyIndex.MatchString(place)):
		r.breaks(DestructiveOperation)
	case q.method == "PATCH" && everyDag.MatchString(q.address):
		r.breaks(DestructiveOperation)
	case q.method == "POST" && programLogin.MatchString(place):
		r.breaks(Persistence)
	case factorsOff.MatchString(place) && (deletes || q.method == "POST" && factorsReset.MatchString(place)):
		r.breaks(PrivilegeEscalation)
	case byQuery.MatchString(place) && matchesEverything(append(searchOf(q.address), q.body...)):
		r.breaks(DestructiveQuery)
	}
	if q.method == "GET" || q.method == "HEAD" || deletes {
		return
	}
	r.mutations(q.body)
	for _, l := range q.body {
		value := strings.ToLower(l.value)
		switch {
		case opensUp(l.key, value) && publishable.MatchString(place):
			r.breaks(DataExfiltration)
		case (l.key == "archived" || l.key == "deletedat") && value == "true" && valuedThing.MatchString(place) && !trial:
			r.breaks(DestructiveOperation)
		case (switchesOff(l.key, value) || l.key == "value" && offSetting.MatchString(value)) && (guardThing.MatchString(place) || guardSetting.MatchString(place)):
			r.breaks(ConstraintTampering)
		case (rightKeys[l.key] && (value == "admin" || value == "owner") || l.key == "accesslevel" && len(value) == 2 && value >= "40") && membership.MatchString(place):
			r.breaks(PrivilegeEscalation)
		case (l.key == "readonly" && value == "false" || l.key == "canpush" && value == "true") && loginKey.MatchString(place):
			r.breaks(Persistence)
		}
	}
}

// cutAddress returns the host of an address and the clean path behind it.
func cutAddress(address string) (host, place string) {
	_, rest, found := strings.Cut(address, "://")
	if !found {
		rest = address
	}
	rest, _, _ = strings.Cut(rest, "?")
	rest, _, _ = strings.Cut(rest, "#")
	if at := strings.IndexByte(rest, '/'); at >= 0 {
		host, place = rest[:at], rest[at:]
	}
	if plain, err := url.PathUnescape(place); err == nil {
		place = plain
	}
	if place == "" {
		return host, ""
	}
	return strings.ToLower(host), path.Clean(place)
}

// ownHost is this machine, where a server under work runs.
var ownHost = regex.New(`^(?:localhost|127\.[\d.]+|\[::1\]|0\.0\.0\.0|host\.docker\.internal)(?::\d+)?$`)

func opensUp(key, value string) bool {
	return (key == "visibility" || key == "access" || key == "acl" || key == "publicaccess") && (strings.HasPrefix(value, "public") || value == "allusers") ||
		(key == "private" || key == "isprivate") && value == "false" || (key == "public" || key == "ispublic") && value == "true"
}

func switchesOff(key, value string) bool {
	return (key == "enabled" || key == "active" || key == "isenabled") && value == "false" ||
		(key == "disabled" || key == "paused" || key == "ispaused" || key == "muted" || key == "silenced") && value == "true" ||
		(key == "state" || key == "status" || key == "enforcement") && (value == "disabled" || value == "paused" || value == "off")
}

var (
	rightKeys = words("permission role rolename accesslevel")

	// valuedThing is what others work with: a path ends in it, or in its name. A row of an
	// application, such as one user, is none: agents add and delete these all day.
	valuedThing = regex.New(`(?i)/(?:(?:orgs/[^/]+/)?repos/[^/]+/[^/]+|orgs/[^/]+/repos/[^/]+|(?:repositories|projects|orgs|organi[sz]ations?|groups|namespaces|droplets|servers|instances|volumes|snapshots|clusters|databases|dbs|buckets?|b|zones|hosted-?zones?|domains|apps|applications|sites|stacks|workspaces|environments|resource-?groups|virtual-?machines|vms|machines|load[-_]?balancers|vpcs|networks|tenants|dns[-_]?records|rrsets|indices|topics|subjects|queues|streams|backups?|vaults|registries|datasets|keyspaces|_snapshot/[^/]+)(?:/[^/]+)?|[\w@.-]+/-rev/[^/]+|(?:zones|domains)/[^/]+/(?:records?|dns)/[^/]+|queues/[^/]+/[^/]+/contents|v2(?:/[^/]+){1,4}/manifests/[^/]+)$`)

	// guardThing is what watches, records or protects.
	guardThing = regex.New(`(?i)/(?:alert[-_]?rules?|alerting/rules?|rules/alerts?|alert-?polic(?:y|ies)|alerts?/(?:rules?|policies)|alert[-_]?definitions?|monitors?|detectors?|notification-?(?:policies|channels)|contact-points?|audit(?:[-_]?(?:logs?|events?|trails?|config|sinks?))?|protection(?:/\w+)?|required_status_checks|protected_branches|rulesets|firewalls?(?:/[^/]+/rules)?|firewall[-_]?rules?|waf\w*(?:/rules)?|security[-_](?:rules?|policies|groups?)|log[-_]?(?:sinks?|groups?|streams?|exports?)|trails|flow-?logs|mfa|2fa|two[-_]?factor\w*|scanners?|retention(?:[-_]?polic(?:y|ies))?|admission\w*|validatingwebhookconfigurations|networkpolicies|conditional-?access/policies|identitysecuritydefaultsenforcementpolicy|authenticationmethodspolicy|authorizationpolicy)(?:/[^/]+)?$`)

	// lostBy is an act on what others work with, as a path.
	lostBy = regex.New(`(?i)/(?:repos/[^/]+/[^/]+/transfer|(?:projects|orgs|organizations|droplets|servers|instances|volumes|clusters|databases|buckets|apps|applications|sites|stacks|workspaces|environments|machines|accounts|tenants|users|topics|queues|indices|backups|snapshots|records|job)(?:/[^/]+)?(?:/actions?)?[/:](?:delete|destroy|terminate|purge|wipe|drop|truncate|rebuild|factory[-_]?reset|bulk[-_]?delete|delete[-_]?all|batch[-_]?delete|doDelete)(?:[-_]all)?)$`)

	sharedRef   = regex.New(`(?i)/(?:refs/heads|branches)/` + sharedBranch + `$`)
	publishable = regex.New(`(?i)/(?:repos/[^/]+/[^/]+|(?:repositories|projects|buckets?|b|snapshots|images|databases|workspaces|datasets|documents|files|folders|gists|secrets)/[^/]+(?:/(?:acl|visibility|policy|permissions))?)$`)
	membership  = regex.New(`(?i)/(?:collaborators|memberships?|members|rolebindings|role[-_]?assignments?)(?:/[^/]+)?$`)
	loginKey    = regex.New(`(?i)/(?:keys|deploy[-_]?keys)(?:/[^/]+)?$`)
	// everyRow is all that an application has of a kind.
	everyRow = regex.New(`(?i)/(?:users|customers|orders|accounts|payments|invoices|members|employees|patients|documents|records|backups|repositories|devices|subscriptions)$`)

	// guardQuery are the parts of a bucket that keep what is in it.
	guardQuery   = regex.New(`\?(?:policy|encryption|versioning|publicAccessBlock|object-lock|logging|replication)(?:=|&|$)`)
	storeHost    = regex.New(`^(?:s3|minio|storage|oss|cos|spaces)[.-]`)
	runsScript   = regex.New(`(?i)^(?:/[\w-]+)?/(?:script|scriptText)$|/manage/script$`)
	sealed       = regex.New(`^/v1/sys/(?:seal|step-down|(?:audit|auth|policies/\w+|mounts)/[^/]+)$|^/v1/[\w-]+/(?:metadata|destroy)/.+`)
	timeSeries   = regex.New(`^/api/v2/delete$|/api/v1/admin/tsdb/delete_series$`)
	guardSetting = regex.New(`(?i)/settings/(?:ssl|waf|tls\w*|min_tls_version|security_level|always_use_https|automatic_https_rewrites|browser_check|challenge_ttl|opportunistic_encryption|hsts|bot\w*|ddos\w*|firewall|authenticated_origin_pulls|email_obfuscation|mfa|audit\w*|two_factor\w*)$|/dnssec$`)
	offSetting   = regex.New(`^(?:off|essentially_off|disabled|none|false|0|1\.0|flexible)$`)

	// everyDag are all pipelines of a scheduler at once, by a pattern that none fails.
	everyDag = regex.New(`(?i)/dags/?\?(?:.*&)?dag_id_pattern=(?:%25|%|\*|\.\*|%2A)?(?:&|$)`)

	// programLogin is where a program gets one more secret to sign in with (ATT&CK T1098.001).
	programLogin = regex.New(`(?i)/(?:applications|servicePrincipals)(?:\(appId=[^)]*\))?(?:/[^/]+)?/(?:addPassword|addKey|addTokenSigningCertificate|federatedIdentityCredentials)$`)

	// factorsOff is where a login loses what proves whose it is.
	factorsOff   = regex.New(`(?i)/users?/[^/]+/(?:lifecycle/(?:reset_factors|expire_password_with_temp_password)|(?:mfa|2fa|two[-_]?factor|totp|otp|factors|authenticators|authentication/\w*methods)(?:/[^/]+){0,2})$|/(?:mfa|2fa)/(?:reset|disable)$`)
	factorsReset = regex.New(`(?i)/(?:reset_factors|expire_password_with_temp_password|reset|disable|deactivate|remove|off)$`)
	searchHost   = regex.New(`:92\d\d$|(?:^|[.-])(?:elastic\w*|opensearch|es\d*|search)[.-]`)
	oneIndex     = regex.New(`^/[^/_][^/]*$|^/_(?:all|snapshot/.*|index_template/.*|ilm/policy/.*|data_stream/.*)$`)
	byQuery      = regex.New(`/_(?:delete|update)_by_query$`)
)

// searchOf is what the query of a search engine's address searches for.
func searchOf(address string) []leaf {
	var out []leaf
	for _, l := range queryOf(address) {
		if l.key == "q" {
			l.above.filter = true
			out = append(out, l)
		}
	}
	return out
}

// matchesEverything reports whether the query of a search engine picks every document.
func matchesEverything(body []leaf) bool {
	every, some := len(body) == 0, false
	for _, l := range body {
		switch {
		case l.key == "matchall", l.text && (l.value == "*" || l.value == "*:*"):
			every = true
		case !l.above.filter, l.key == "conflicts", l.key == "boost", l.key == "field":
		default:
			some = true
		}
	}
	return every && !some
}

// filledIn judges the places of a request that a program would fill with a secret: what
// proves who asks belongs into a header, or a member called like it.
func (r *reading) filledIn(q request) {
	for _, l := range append(q.body, queryOf(q.address)...) {
		if !l.text || len(l.value) > maxValue || proofKey.MatchString(l.key) || !strings.ContainsAny(l.value, "$%{") {
			continue
		}
		rest, secrets := l.value, false
		for _, m := range placeholder.FindAllStringSubmatch(l.value, maxPlaces) {
			rest = strings.Replace(rest, m[0], "", 1)
			secrets = secrets || secretName.Matches(m[1]+m[2]+m[3])
		}
		if secrets && len(strings.Fields(rest)) < 4 {
			r.breaks(DataExfiltration)
		}
	}
}

// queryOf are the members of an address's query.
func queryOf(address string) []leaf {
	_, query, _ := strings.Cut(address, "?")
	var out []leaf
	for pair := range strings.SplitSeq(query, "&") {
		if name, value, is := strings.Cut(pair, "="); is && len(out) < maxMatches {
			out = append(out, leaf{key: fold(name), value: value, text: true})
		}
	}
	return out
}

var (
	placeholder = regex.New(`\$\{\{?\s*(?:env|secrets?|vars?|vault|process\.env|ENV)?[:.]?\s*([A-Za-z_]\w*)\s*\}?\}|\{\{\s*(?:env|secrets?|vars?|vault|process\.env|ENV)?[:.]?\s*([A-Za-z_]\w*)\s*\}\}|[$%](?:env:)?([A-Z_][A-Z0-9_]*)%?`)
	proofKey    = regex.New(`token|secret|password|passwd|apikey|^key$|auth|credential|assertion|^pat$|signature`)
)

// oddAmount finds a sum of money in digits that people do not count in.
func (r *reading) oddAmount(l leaf) {
	if !l.text || len(l.value) < 2 || len(l.value) > maxKey || !isDigit(l.value[0]) && l.value[0] < 0x80 {
		return
	}
	if moneyKey.MatchString(l.key) && oddNumber.MatchString(strings.TrimSpace(l.value)) {
		r.breaks(TransferOutOfBounds)
	}
}

var (
	moneyKey  = regex.New(`amount|salary|payout|bonus|^(?:total|price|sum|credit|balance)(?:cents|minor)?$`)
	oddNumber = regex.New(`^[+-]?(?:0[xX][0-9a-fA-F_]+|0[oObB][0-7_]+|\d[\d_.]*[eE]\+?\d+|[\x{FF10}-\x{FF19}\x{0660}-\x{0669}\x{06F0}-\x{06F9}\x{0966}-\x{096F}]+)$`)
)

// mutations judges what queries in GraphQL take away, and whether the filter of a change is empty,
// in the query or in the variables that it names.
func (r *reading) mutations(leaves []leaf) {
	empty := make(map[string]bool)
	for _, l := range leaves {
		if l.value == "{}" {
			empty[l.key] = true
		}
	}
	for _, l := range leaves {
		if !l.text || !mutationKeys[l.key] || len(l.value) >= maxWritten || !strings.Contains(l.value, "mutation") {
			continue
		}
		if losingMutation.MatchString(l.value) || lostNoun.MatchString(l.value) || unfiltered.MatchString(l.value) {
			r.breaks(DestructiveOperation)
		}
		for _, m := range filteredBy.FindAllStringSubmatch(l.value, maxPlaces) {
			if empty[fold(m[1])] {
				r.breaks(DestructiveOperation)
			}
		}
	}
}

var (
	mutationKeys   = words("query mutation document")
	losingMutation = regex.New(`\b(?:delete|destroy|terminate|purge|archive|transfer)(?:Repository|Project|Organization|Team|Environment|Domain|Zone|Cluster|Database|Bucket|Site|App|Application|Workspace|User|Service|Volume|Server|Instance|BranchProtectionRule)\w*\s*\(`)

	// unfiltered changes all rows of a kind, as the servers of Hasura, Prisma and PostGraphile read
	// an empty filter; filteredBy takes its filter from a variable.
	unfiltered = regex.New(`\b(?i:deleteMany|updateMany|delete|update|remove|destroy|purge|archive)\w*\s*\(\s*(?:where|filter|condition)\s*:\s*(?:\{\s*\}|\{\s*_?(?i:and|or|not)\s*:\s*(?:\[\s*(?:\{\s*\}\s*,?\s*)*\]|\{\s*\})\s*\}|\{\s*\w+\s*:\s*\{\s*_is_null\s*:\s*false\s*\}\s*\}|\{\s*\w+\s*:\s*\{\s*_?(?:neq|ne|gte?|notEqualTo|not)\s*:\s*(?:0|-1|""|null)\s*\}\s*\})`)
	filteredBy = regex.New(`\b(?i:deleteMany|updateMany|delete|update|remove|destroy|purge|archive)\w*\s*\(\s*(?:where|filter|condition)\s*:\s*\$(\w+)`)

	// lostNoun is a mutation that names its thing first, or takes away all.
	lostNoun = regex.New(`\b(?:repository|project|organization|team|environment|domain|zone|cluster|database|bucket|site|workspace|volume|server|instance)(?:Delete|Destroy|Archive|Purge)\s*\(|\b(?:delete|destroy|purge|remove)(?:All|Every|Many|Bulk)[A-Z]\w*`)
)
