package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/code"
	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

// worthFollowing tells the programs whose values may matter to a rule about calls.
var worthFollowing = regex.NewScreen(regex.New(`rmtree|unlink|\brm\(|fs/promises|Aws\\|->(?:delete|terminate|purge)|\.(?:rm|rmdir|remove|delete\w*|destroy\w*|terminate\w*|purge\w*|kill|removedirs)\b|rmSync|rimraf|\brmdir\(|del_dir_r|directory\.files|remove\w*\(|emptyDir|RemoveAll|rm_rf|rm_r\b|remove_tree|\b(?i:getattr|boto3|aws-?sdk|Aws::|google.cloud|azure|firebase|firestore|kubernetes|psutil|smtplib|nodemailer|secretmanager|secretsmanager|hvac|Net::SMTP|ftplib|paramiko|PHPMailer)|os\.environ|process\.env|\bENV\b|%ENV|\$_ENV|getenv|socket|sendmail|__import__|import_module|importlib|\[::-1\]|reverse|strrev|\.join\(|implode|fromCharCode|b64decode|atob|base64|unhexlify|fromhex|call_user_func|eval|exec|scan_iter|\.keys\(|\w\]\s*\(|\.(?:clear|del|cancel|writestr)\(|TarInfo|public_send|__send__|lookupCredentials|getCredentials|deleteDir|subprocess|\bsystem\s*\(|popen|_all\b|[aA]ll(?:InBatch|Items)?\(|&:|\.objects\b|truncate|Remove\w+\(|[dD]elete\w*\(|[dD]rop\w*\(|Rake::|Artisan|call_command|[rR]efund|credit!|payout|lifecycle|stop_?[lI]|AllowGlobal|\.drop\b|getSiblingDB|getCollection|updateMany|(?:run|admin)Command|bulkWrite|createUser|renameCollection|urlopen|requests\.|fetch\(|axios|http|setSharing|setTrashed|moveToTrash|\.forward\(|secrets\.get|get_uri\(|extract_table|jdbc:|\.to_(?:csv|json|parquet|excel)\(|load_state_dict_from_url`))

// follows judges a program by its calls, with what their receivers and arguments stand
// for. A program that hides what it says behind operations on literals is read again by
// what they make.
func (r *reading) follows(text string) {
	if len(text) > code.MaxProgram || !worthFollowing.Matches(text) || !r.spend(costCode*len(text)) {
		return
	}
	plain := r.programs.Followed(text)
	if !r.spend(costSearch * len(plain)) {
		return
	}
	calls := code.Calls(plain)
	r.removals(plain, calls)
	r.libraries(plain)
	r.masses(plain)
	r.asksServers(plain, calls)
	r.shown(plain, calls)
	r.carriedOff(plain, calls)
	r.kills(plain)
	r.collections(plain, calls)
	if hides.Matches(text) || starter.Matches(text) {
		r.literals(plain)
	}
}

// hides finds the operations on literals that hide a word, and the ways to a member by
// its name.
var hides = regex.NewScreen(regex.New(`\[::-1\]|\breverse|strrev|\bgetattr\s*\(|Reflect\.get|__import__|import_module|\bjoin\s*\(\s*[\[('"]|['"]\.join\s*\(\s*[\[(]|\]\.join\s*\(|implode\s*\(|table\.concat|call_user_func|globals\(\)|globalThis\[|['"]\s*\]\s*\(|['"]\s*(?:\+|\.\.?|<<)\s*['"]|['"]\s*%\s*[('"]|['"]\.format\(|sprintf|public_send|\.send\s*[( ]\s*[:'"]|->\{|\$\w+\(|\.replace\s*\(|b64decode|atob|base64_decode|decode64|fromhex|unhexlify`))

// libraryRule is what a library's clients do that cannot be taken back: the library, the
// calls, and what makes one of them ordinary.
type libraryRule struct {
	library   *regex.Screen // nil for any
	calls     *regex.Expression
	unless    *regex.Expression
	invariant Invariant
}

// everydayItems are what programs take away one by one as their work: rows, messages,
// single files.
const everydayItems = `(?:_?(?i:items?|objects?|messages?|message_?batch|object_?tagging|tags?|tagging|record|entity|blob|document|doc|parameter|query_definition|session|cookie|webhook|comment|reaction|attribute|attributes|many|one|marker|metric_?filter|scheduled?_?action)s?\()`

// libraryRules are by library. What the arguments of a call hold stands in the same
// line, because values were put in their places.
var libraryRules = []libraryRule{
	{amazon, regex.New(`(?:\.|->)(?:(?:terminate|purge|deregister|batch_delete)_\w+\(|delete_\w+\(|schedule_(?:key_)?deletion\(|schedule_key_deletion\(|(?:terminate|purge|deregister)[A-Z]\w+\(|delete[A-Z]\w+\(|(?:Terminate|Purge|Deregister|ScheduleKeyDeletion|Delete)[A-Z]\w*\()`), regex.New(`(?:\.|->)(?i:delete|batch_delete|batchdelete|deregister)` + everydayItems + `|(?:\.|->)(?i:deregister_?(?:targets|instances_from_load_balancer)\(|deregister_?task_?definition\(|delete_?(?:log_?stream|alarms|role_policy|launch_template_versions?|rule|receipt_rule|connection|user_?attributes|endpoint_?config)\()|DryRun['"]?\s*[:=]\s*(?:True|true)`), DestructiveOperation},
	{amazon, regex.New(`\b(?:Terminate|Purge|Deregister|ScheduleKeyDeletion|Delete|BatchDelete)\w*Command\(`), regex.New(`\b(?:Delete|BatchDelete)(?:Items?|Objects?|Messages?|MessageBatch|ObjectTagging|Tags?|Parameters?|Connection|UserAttributes|Rule|Alarms|LogStream)?Command\(|DeregisterTargetsCommand\(|DryRun:\s*true`), DestructiveOperation},
	{amazon, regex.New(`\.all\(\)\.(?:terminate|delete|stop|purge)\(|\.(?:instances|volumes|snapshots|images|vpcs|buckets|tables|stacks)\.[\w.()=\[\]{}'", :*-]{0,200}\.(?:terminate|delete|deregister)\(|\.object_versions\.[\w.()=]{0,40}delete\(|\.(?:objects|object_versions)\.(?:filter|limit|page_size|delete)\([^()]{0,100}\)?(?:\.delete\()?|\.(?:Bucket|Table|Stack|Cluster|Vpc|Volume|Snapshot|Image|User|Role|Instance)\([^()]{0,100}\)\.(?:delete|terminate|deregister)\(`), regex.New(`Prefix\s*=\s*['"][^'"]|\.(?:objects|object_versions)\.(?:filter|limit|page_size)\([^()]{0,100}\)$|\.(?:objects|object_versions)\.filter\([^()]{0,100}\)\.[a-ce-z]`), DestructiveOperation},
	{amazon, regex.New(`delete_?(?i:objects)\(.*\b(?:list_object\w*|listObject\w*|paginate|objects\.all|ListObject\w*)\b|DeleteObjectsCommand\(.*ListObject\w+Command`), regex.New(`Prefix['"]?\s*[:=]\s*['"][^'"]`), DestructiveOperation},
	{amazon, regex.New(`(?i:change_?resource_?record_?sets)(?:Command)?\(.*(?:(?:map|for|filter)\b.*\bDELETE\b|\bDELETE\b.*(?:\bfor\b|\.each|\.map))`), nil, DestructiveOperation},
	{google, regex.New(`\.delete_(?:instance|cluster|dataset|database|project|bucket|secret|topic|subscription|table|disk|snapshot|backup|service|function|key_ring|folder|collection|node_pool|zone|managed_zone|service_account)\(|\.delete\(\s*force\s*=\s*True|\.(?:deleteFiles|deleteBucket)\(|\b(?:projects|instances|clusters|disks|zones|datasets|tables|buckets|databases|snapshots)\(\)\.delete\(|\.(?:bucket|Bucket|get_bucket|dataset|instance|cluster|database|topic)\([^()]{0,100}\)\.(?:delete|Delete|drop|DropDatabase)\(|\.delete_blobs\(.*list_blobs|\.list_blobs\([^()]{0,100}\)(?:\.each)?\.delete\(|\.Objects\(.*\.Delete\(|\.getFiles\([^()]{0,60}\).{0,80}\.delete\(`), regex.New(`(?i)prefix\s*[:=]\s*['"][^'"]`), DestructiveOperation},
	{azure, regex.New(`\.begin_delete(?:_\w+)?\(|\.begin_(?:deallocate|purge)\w*\(|\.delete_(?:container|share|resource_group|database|vault|account|file_system|queue|table|directory|namespace)\(|\.begin(?:Delete|Purge)\w*\(|\.(?:deleteContainer|deleteShare|deleteDatabase|deleteIfExists|deleteTable|deleteQueue)\(|\.delete_blobs?\(.*list_blobs\(\s*\)`), regex.New(`(?i)tmp|temp|test`), DestructiveOperation},
	{firebase, regex.New(`recursiveDelete\(|\.ref\(\s*(?:['"]/?['"])?\s*\)\.(?:remove|set\(\s*null)|\bdb\.reference\(\s*(?:['"]/['"])?\s*\)\.(?:delete|set\(\s*(?:None|\{\}))|\.deleteUsers\(.*listUsers|\.deleteUser\(.*listUsers|\.listCollections\(\).*\.delete\(|\.bucket\([^()]{0,60}\)\.(?:delete|deleteFiles)\(`), regex.New(`recursiveDelete\([^()]*(?:\([^()]*\)[^()]*){0,4}\.doc\(|prefix\s*:\s*['"][^'"]`), DestructiveOperation},
	{clusters, regex.New(`\.delete_(?:collection_\w+|namespace|persistent_volume|namespaced_persistent_volume_claim|namespaced_stateful_set|node|custom_resource_definition|cluster_custom_object|storage_class|cluster_role|cluster_role_binding)\(|\.delete(?:Collection\w+|Namespace|PersistentVolume|NamespacedPersistentVolumeClaim|NamespacedStatefulSet|Node|CustomResourceDefinition|ClusterCustomObject|StorageClass)\(|\.DeleteCollection\(|\.(?:Namespaces|PersistentVolumes|PersistentVolumeClaims|Nodes|StatefulSets|CustomResourceDefinitions)\([^()]{0,60}\)\.Delete\(|list_\w+\([^()]{0,60}\)\.items\.delete|\.delete_namespaced_(?:deployment|pod|service|secret|config_map|job)\(.*list_\w*for_all_namespaces`), regex.New(`label_?[sS]elector\s*[:=]\s*['"][^'"]|dry_run\s*=\s*['"]All`), DestructiveOperation},
	{machines, regex.New(`\.get_all_(?:droplets|volumes|images|domains)\([^()]{0,60}\)\.destroy\(|\.(?:droplets|servers|volumes|linode\.instances|instances)\.(?:get_all|list|all)?\(?[^()]{0,60}\)?\.(?:destroy|delete)\(|\.volumes\.prune\(|\.containers\.list\([^()]{0,60}\)\.(?:remove|kill)\(|\.(?:destroyDroplet|deleteDroplet|deleteServer|delete_server|delete_volume|deleteVolume|deleteProject|delete_project)\(|\.get_repo\([^()]{0,100}\)\.delete\(|\.get_(?:user|organization)\([^()]{0,60}\)\.get_repos\([^()]{0,60}\)\.(?:delete|edit)\(|\brepos\.delete\(|\.projects\.get\([^()]{0,60}\)\.delete\(`), nil, DestructiveOperation},
	{stores, regex.New(`\.(?:delete|unlink|del)\(.*\.(?:scan_iter|keys)\(\s*(?:(?:match\s*=\s*)?['"]\*['"])?\s*[,)]|\.flushAll\(\s*\)|\.flushDb\(\s*\)|\.indices\.delete\([^()]{0,60}['"](?:\*|_all|[^'"]*\*)['"]|\.delete_by_query\(.*match_all|\.deleteByQuery\(.*match_all|\bdelete_all\s*=\s*True|\bdeleteAll\s*:\s*true|\.delete_many\(\s*\{\s*\}|\.deleteMany\(\s*\)|\.list_collection_names\(\)\]?\.drop\(|\.drop_collection\([^()]{0,200}list_collection_names|\.drop_database\(|\bDB::table\([^()]{0,40}\)->(?:delete|truncate)\(|\.query\([\w.]{1,40}\)\.delete\(|\bknex\([^()]{1,40}\)\.(?:del|delete|truncate)\(`), regex.New(`(?i)fakeredis|mongomock|:memory:|\btest_|localhost|127\.0\.0\.1`), DestructiveQuery},
}

var (
	amazon   = regex.ScreenOf(`(?i)boto3|botocore|aws-?sdk|\bAws::|Aws\\`)
	google   = regex.ScreenOf(`google\.cloud|@google-cloud|cloud\.google\.com/go|googleapiclient|googleapis|google/cloud|google\.golang\.org/api`)
	azure    = regex.ScreenOf(`azure\.|@azure/|azure-sdk`)
	firebase = regex.ScreenOf(`(?i)firebase|firestore`)
	clusters = regex.ScreenOf(`kubernetes|client-go|k8s\.io|@kubernetes/`)
	machines = regex.ScreenOf(`(?i)digitalocean|hcloud|linode|openstack|\bdocker\b|dockerode|octokit|\bgithub\b|gitlab|vultr|scaleway|vercel|netlify`)
	stores   = regex.ScreenOf(`(?i)redis|mongo|elastic|opensearch|pinecone|qdrant|weaviate|chroma|sqlalchemy|prisma|illuminate|\bDB::table|knex|session\.query`)
)

// libraries judges the calls of the clients of clouds, clusters and databases.
func (r *reading) libraries(text string) { r.breaksRules(libraryRules, text) }

// maxCalls bounds the places where one rule is compared.
const maxCalls = 64

// breaksRules compares the calls of a followed program with rules.
func (r *reading) breaksRules(rules []libraryRule, text string) {
	for _, rule := range rules {
		if rule.library != nil && !rule.library.Matches(text) || !rule.calls.MatchString(text) {
			continue
		}
		for _, at := range rule.calls.Regexp().FindAllStringIndex(text, maxCalls) {
			end := min(len(text), at[1]+code.MaxValue)
			if line := strings.IndexByte(text[at[1]:end], '\n'); line >= 0 {
				end = at[1] + line
			}
			if rule.unless == nil || !rule.unless.MatchString(text[at[0]:end]) {
				r.breaks(rule.invariant)
			}
		}
	}
}

// printing writes to the conversation.
var (
	printing  = words("print println printf pprint pp puts echo display var_dump print_r inspect say Println Printf Print")
	consoles  = words("console stdout stderr logging logger")
	consoleOf = words("log info error warn warning debug table dir write")
)

// shown judges what a program prints: a secret that it fetched, or all secrets of its
// environment.
func (r *reading) shown(text string, calls []code.Call) {
	if !revealing.Matches(text) {
		return
	}
	for _, c := range calls {
		if !printing[c.Name] && (!consoleOf[c.Name] || !consoles[strings.TrimRight(c.On, ".:->")]) {
			continue
		}
		args := strings.Join(code.Arguments(text, c.Open), ",")
		if !r.spend(costSearch * len(args)) {
			return
		}
		if revealed.MatchString(args) && !usesSecret.MatchString(args) || secretEnvironment.MatchString(isThere.ReplaceAllString(args, "")) {
			r.breaks(CredentialAccess)
		}
	}
}

var (
	revealing = regex.NewScreen(revealed, secretEnvironment)
	// revealed is a secret that a manager of secrets hands out.
	revealed = regex.New(`(?:get_secret_value|getSecretValue|GetSecretValueCommand|batch_get_secret_value)\(.*(?:SecretString|SecretBinary|secret_string|SecretValues|\)\s*$)|(?:access_secret_version|accessSecretVersion)\(.*(?:payload|data|\)\s*$)|(?:get_parameters?(?:_by_path)?|getParameters?|GetParameters?(?:ByPath)?Command)\(.*(?i:with_?decryption['"]?\s*[:=]\s*true).*|(?:SecretClient|secret_client|secretClient)\b.*\.(?:get_secret|getSecret)\(.*\.value|\bhvac\.Client\(.*\.(?:read\w*|secrets\.kv\.\S*read\w*)\(|\bkeyring\.get_password\(|\b(?:list|read)_(?:namespaced_)?secret\w*\([^()]{0,100}\).{0,100}\bdata\b|\.create_access_key\(|\.get_(?:session_token|frozen_credentials)\(|\.generate_db_auth_token\(`)
	// usesSecret is what a secret is for: what is shown then is the connection's.
	usesSecret = regex.New(`(?i)(?:connect|connection|create_engine|createclient|createpool|pool|login|sign\w*|encrypt|hmac\w*|verify)\(.*(?:secret_?string|payload|\.value\b)|\blen\(`)
	// secretEnvironment is what picks the secrets out of the environment.
	secretEnvironment = regex.New(`(?is)(?:os\.environ|process\.env|\bENV\b|\$_ENV|\$_SERVER|%ENV|getenv\(\)|os\.Environ\(\)).*(?:secret|token|passw|\bkey['"|)]|api_?key|credential)`)
)

// isThere asks whether the environment has a variable, or how long it is, and not what it holds.
var isThere = regex.New(`\b(?:if|and|or|bool\(|len\(|any\(|all\()\s*(?:not\s+)?os\.(?:environ\.get|getenv)\([^()]*\)|\b(?:if|and|or)\s+(?:not\s+)?os\.environ\[[^\[\]]*\]|\bin\s+os\.environ\b|!+\s*process\.env(?:\.\w+|\[[^\[\]]*\])|\bprocess\.env(?:\.\w+|\[[^\[\]]*\])(?:\.length\b|\s*\?\s*['"\d])|\bin\s+process\.env\b|!\s*ENV\[[^\[\]]*\]|\bENV\.(?:key|has_key|include|member)\?\(?[^()]*\)?|\b(?:isset|empty)\(\s*\$_(?:ENV|SERVER)\[[^\[\]]*\]\s*\)`)

// sendsOut are the calls whose arguments leave the machine.
var sendsOut = words("sendmail send_message sendMail sendall sendto sendEmail send_email send_raw_email storbinary storlines SendMail urlopen Request post put patch postForm PostForm Post NewRequest request fetch send write putObject upload_file upload_fileobj end mail deliver")

// carriedOff judges what a program sends to elsewhere: all of its environment, or a file
// of a person, of the system or of others.
func (r *reading) carriedOff(text string, calls []code.Call) {
	if !carried.Matches(text) {
		return
	}
	for _, c := range calls {
		if !sendsOut[c.Name] {
			continue
		}
		args := strings.Join(code.Arguments(text, c.Open), ",")
		receiver := code.Receiver(text, c.Start)
		if len(args) == 0 || !r.spend(costSearch*(len(args)+len(receiver))) {
			continue
		}
		if wholeEnvironment.MatchString(args) && !r.nearby(args+" "+receiver) {
			r.breaks(DataExfiltration)
		}
		for _, m := range fileRead.FindAllStringSubmatch(args, 8) {
			name := strings.Join(m[1:], "")
			if mails.MatchString(text) && !r.nearby(receiver+" "+args) && (privateFile.MatchString(file.Slashed(name)) || file.IsCredential(file.Slashed(name))) {
				r.breaks(DataExfiltration)
			}
		}
	}
}

var (
	carried          = regex.NewScreen(wholeEnvironment, mails)
	wholeEnvironment = regex.New(`(?:dict|str|repr|dumps|list|urlencode|bytes|encode|stringify|json_encode|http_build_query|serialize|Marshal|to_json)\s*\(\s*(?:\{\s*\*\*\s*|dict\s*\(\s*)*(?:os\.environ(?:\.copy\(\)|\.items\(\))?\s*[),}]|process\.env\s*[),}]|ENV(?:\.to_h|\.to_a)?\s*[),]|\$_(?:ENV|SERVER)\b|getenv\(\)|os\.Environ\(\))|\b(?:json|data|body|params)\s*[=:]\s*(?:dict\(|\{\s*(?:\*\*|\.\.\.))?\s*(?:os\.environ|process\.env)\s*[),}]|\bENV\.to_(?:h|a|json)\b`)
	// mails are the ways out that need no address of the web.
	mails       = regex.New(`smtplib|\bsendmail\b|sendMail|nodemailer|Net::SMTP|\bmail\s*\(|PHPMailer|socket|\bnet\.(?:connect|Dial|createConnection)|ftplib|Net::FTP|paramiko|TCPSocket|fsockopen|IO::Socket`)
	fileRead    = regex.New(`(?:\bopen|\bPath|\breadFileSync|\breadFile|\bReadFile|\bfile_get_contents|\bread_file|File\.(?:read|binread|open)|\bslurp|io\.open)\(\s*(?:'([^']{1,200})'|"([^"]{1,200})")`)
	privateFile = regex.New(`^(?:~|/(?:home|Users|root|etc|srv|mnt|media|var|data|opt|nas|shares?|backups?|Volumes)/\S)|^[A-Za-z]:/(?i:users)/`)
	nearbyHost  = regex.New(`(?i)localhost|127\.0\.0\.1|\[?::1|mailhog|mailpit|\.(?:internal|local|lan|corp|intranet)\b|\b10\.\d|192\.168\.`)
)

// nearby reports whether a call names only a host that is this machine's or the user's.
func (r *reading) nearby(call string) bool {
	if nearbyHost.MatchString(call) {
		return true
	}
	for _, host := range hostName.FindAllString(call, 8) {
		if r.asked && r.asksFor(host) {
			return true
		}
	}
	return false
}

var hostName = regex.New(`\b(?:[a-z0-9-]+\.)+[a-z]{2,12}\b`)

// killing finds what ends processes, or stops services.
var (
	killing  = regex.New(`\bos\.kill(?:pg)?\s*\(|\bprocess\.kill\s*\(|\bProcess\.kill\b|\bposix_kill\s*\(|\.(?:kill|terminate|send_signal|Kill|Signal)\s*\(|\bsyscall\.Kill\(|\bkill\s+['"]?(?:KILL|TERM|9|15)|StopUnit\(|MaskUnit|DisableUnit`)
	guardian = regex.New(`^(?:` + guardServices + `)(?:\.service|\.exe)?$`)
)

// kills judges a program that ends what governs, records or protects.
func (r *reading) kills(text string) {
	if !killing.MatchString(text) {
		return
	}
	for _, l := range hidden(text, code.Strings(text)) {
		if len(l) < maxKey && guardian.MatchString(strings.ToLower(l)) {
			r.breaks(ConstraintTampering)
		}
	}
}
