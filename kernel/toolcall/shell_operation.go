package toolcall

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// remoteCommand is a command of a service elsewhere that cannot be taken back. Its
// verbs are the words in their order, without the flags between them; flags, if
// there are any, are matched against the flags.
type remoteCommand struct {
	verbs  *regex.Expression
	flags  *regex.Expression
	valued bool              // flags tells their values too
	spares *regex.Expression // flags that make it ordinary
}

// but spares a command that has one of the flags.
func (c remoteCommand) but(flags string) remoteCommand {
	c.spares = regex.New(`(?:^| )(?:` + flags + `)(?:=\S*)? `)
	return c
}

// irreversibleOperation judges the clients of version control, clouds and clusters.
func irreversibleOperation(argv []string) bool {
	name := programName(argv[0])
	commands, known := remoteCommands[name]
	if !known && !managers[name] {
		return false
	}
	verbs, flags := verbsAndFlags(argv)
	if name == "git" && pushesOwnBranch(verbs, flags) || name == "aws" && strings.HasPrefix(verbs, "sqs delete-message") {
		return false
	}
	if strings.Contains(flags, "--dry-run") || strings.Contains(flags, "--help") {
		return false
	}
	if (name == "gcloud" || name == "az") && idles(strings.Fields(verbs)) {
		return false
	}
	if managers[name] && loses(strings.Fields(verbs)) {
		return true
	}
	readings := []string{verbs}
	if bare := bareWords(argv); bare != verbs {
		readings = append(readings, bare)
	}
	line := strings.Join(argv[1:], " ") + " "
	return slices.ContainsFunc(commands, func(c remoteCommand) bool {
		return (c.spares == nil || !c.spares.MatchString(flags)) && (c.flags == nil || c.flags.MatchString(flags) || c.valued && c.flags.MatchString(line)) && slices.ContainsFunc(readings, c.verbs.MatchString)
	})
}

// pushesOwnBranch reports whether a push by force is of one branch below a name, such as
// feature/search, that nobody shares. After a rebase there is no other way.
func pushesOwnBranch(verbs, flags string) bool {
	return ownBranch.MatchString(verbs) && forceFlags.MatchString(flags) && !sharedPush.MatchString(verbs)
}

var (
	ownBranch  = regex.New(`^push [\w.-]+ (?:feature|feat|fix|bugfix|chore|docs|refactor|test|wip|topic|user|users|dependabot|renovate)/[\w./-]+$`)
	forceFlags = regex.New(`^(?:(?:-f|--force|-u|--set-upstream|--force-if-includes|--no-verify) )+$`)
	sharedPush = regex.New(`/(?:main|master|production|prod|release)$`)
)

// bareWords are the words of a command without any that may be the value of a flag: where
// nobody knows the flags of a client, its verb is in them all the same.
func bareWords(argv []string) string {
	var out []string
	for i := 1; i < len(argv); i++ {
		flag := strings.HasPrefix(argv[i], "-")
		if !flag && (i == 1 || !strings.HasPrefix(argv[i-1], "-") || strings.Contains(argv[i-1], "=")) {
			out = append(out, argv[i])
		}
	}
	return strings.Join(out, " ")
}

// loses reports whether the first verb of a command takes something away for good. Clients
// order their nouns and verbs as they like: apps:destroy, volume rm, delete-bucket, deleteSite.
func loses(plain []string) bool {
	for i, w := range plain[:min(len(plain), 4)] {
		for _, part := range verbParts(w) {
			switch {
			case idleNouns[part]:
				return false
			case losingVerbs[part]:
				return i > 0 || len(plain) > 1 || part == "destroy" || part == "teardown" || part == "undeploy" || part == "down"
			case otherVerbs[part]:
				return false
			}
		}
	}
	return false
}

// idles reports whether a command is about what its client keeps for itself.
func idles(plain []string) bool {
	return slices.ContainsFunc(plain[:min(len(plain), 3)], func(w string) bool { return idleNouns[w] })
}

// verbParts cuts a word of a command where its nouns meet its verb.
func verbParts(w string) []string {
	return strings.FieldsFunc(spaced(w), func(c rune) bool { return c == ' ' })
}

var (
	losingVerbs = words("delete destroy terminate purge remove rm drop wipe erase decommission deprovision undeploy teardown unpublish nuke del")
	otherVerbs  = words("list ls get describe show view create add new set update edit deploy logs log run start restart open info status pull push promote link login logout whoami init dev build preview inspect search tail exec ssh scale attach connect apply copy cp sync import export test validate plan diff help version")

	// idleNouns are what a client keeps for itself, or makes again by itself.
	idleNouns = words("cache caches component components extension extensions plugin plugins completion configuration configurations context contexts alias aliases label labels comment comments")

	// managers are the clients of services elsewhere whose verbs are nobody's own.
	managers = words(`kafka-topics kafka-topics.sh railway render netlify ntl vercel flyctl fly heroku supabase neonctl neon turso pscale atlas ccloud confluent
		aiven avn upctl civo exo ionosctl yc aliyun tccli qovery koyeb northflank cf convox platform upsun terminus acli auth0 okta ory
		stripe twilio algolia fastly flarectl wrangler spacectl hcp pulsar-admin rpk nats couchbase-cli grafanactl grr pd
		eas eb sst sls serverless chalice zappa arc clusterctl waypoint kopia qm pct xe rabbitmqadmin
		nuget vsce ovsx snapcraft doctl hcloud linode-cli scw oci packet metal equinix gridscale`)
)

// clientFlags are the flags of these clients that take the next word as a value
// and stand before the verb.
var clientFlags = map[string]options{
	"git":     {values: "Cc", long: "--git-dir --work-tree --namespace"},
	"kubectl": {values: "nlfso", long: "--output --namespace --context --cluster --kubeconfig --user --grace-period"},
	"helm":    {values: "n", long: "--namespace --kube-context --kubeconfig"},
	"aws":     {long: "--profile --region --output --endpoint-url --query"},
	"gcloud":  {long: "--project --account --zone --region --format"},
	"az":      {values: "ngo", long: "--name --resource-group --subscription"},
	"gh":      {values: "RXHfF", long: "--repo"},
	"docker":  {values: "Hc", long: "--host --context"},
	"restic":  {values: "rpo", long: "--repo --password-file --option --cacert --host --tag --path"},
	"borg":    {values: "aP", long: "--repo --glob-archives --prefix --rsh"},
	"flyctl":  {values: "act", long: "--app --config --access-token"},
	"fly":     {values: "act", long: "--app --config --access-token"},
	"heroku":  {values: "ar", long: "--app --remote --confirm"},
	"vercel":  {values: "AQSt", long: "--token --scope --cwd"},
	"glab":    {values: "RXHfF", long: "--repo --method"},
}

func verbsAndFlags(argv []string) (verbs, flags string) {
	o := clientFlags[programName(argv[0])]
	var plain, marked []string
	for i := 1; i < len(argv); i++ {
		if !strings.HasPrefix(argv[i], "-") || argv[i] == "-" {
			plain = append(plain, argv[i])
			continue
		}
		n := o.valueWords(argv[i])
		marked = append(marked, argv[i:min(i+n+1, len(argv))]...)
		i += n
	}
	return strings.Join(plain, " "), strings.Join(marked, " ") + " "
}

func remote(verbs string, flags ...string) remoteCommand {
	c := remoteCommand{verbs: regex.New(`^(?:` + verbs + `)`)}
	if len(flags) > 0 {
		c.valued = strings.Contains(strings.Join(flags, ""), " ")
		c.flags = regex.New(`(?:^| )(?:` + strings.Join(flags, "|") + `)(?:=\S*)? `)
	}
	return c
}

// remoteCommands are by the name of the client. A push with lease, a plan, a dry
// run and one named pod are ordinary work.
var remoteCommands = map[string][]remoteCommand{
	"git": {
		remote(`push\b`, `--force`, `-[a-zA-Z]*f[a-zA-Z]*`, `--mirror`, `--prune`),
		remote(`push\b.* (?:\+\S+|:` + sharedBranch + `)(?: |$)`),
		remote(`push\b.* `+sharedBranch+`(?: |$)`, `--delete`, `-d`),
		remote(`branch (?:\S+ )*`+sharedBranch+`(?: |$)`, `-D`, `--delete`, `-d`),
		remote(`reflog (?:expire|delete)\b`),
		remote(`update-ref\b`, `-d`, `--delete`, `--stdin`),
		remote(`filter-(?:branch|repo)\b`),
		remote(`gc\b`, `--prune=now`, `--prune=all`),
		remote(`stash clear\b`),
		remote(`fast-import\b`, `--force`),
		remote(`reset (?:\S+ )*(?:\S*~\d{2,}|\S*\^{5,}|\S*@\{\S*(?:week|month|year|\d{2,})\S*\})`, `--hard`),
	},
	"bfg":       {remote(`.*\w`, `--delete-files`, `--delete-folders`, `--strip-blobs-bigger-than`, `--replace-text`)},
	"hg":        {remote(`(?:strip|push)\b`, `-f`, `--force`), remote(`strip\b`)},
	"svn":       {remote(`(?:delete|rm|remove)\b.*://`)},
	"terraform": terraform, "tofu": terraform, "terragrunt": terraform,
	"pulumi":  {remote(`(?:destroy|down)\b|stack rm\b|state delete\b`)},
	"kubectl": kubernetes, "oc": kubernetes, "k": kubernetes,
	"helm": {remote(`(?:uninstall|delete|del|un)\b`)},
	"aws": {
		remote(`s3 (?:rb|rm)\b`, `--force`, `--recursive`),
		remote(`[\w-]+ (?:terminate|delete|purge|deregister|schedule-key-deletion|close|reset|disable|release|batch-delete)-\S*`),
		remote(`[\w-]+ (?:delete|terminate|schedule-key-deletion)\b`),
		remote(`rds modify-db-(?:instance|cluster)\b`, `--backup-retention-period[= ]0`, `--no-deletion-protection`),
		remote(`s3api put-bucket-versioning\b`, `--versioning-configuration[= ]\S*Suspended\S*`),
		remote(`autoscaling update-auto-scaling-group\b`, `--max-size[= ]0`),
		remote(`ec2 stop-instances\b`, `--instance-ids[= ]\S*`+unknownText+`\S*`),
	},
	"gcloud":     {remote(`(?:\S+ )+delete\b`), remote(`storage (?:rm|buckets delete)\b`, `-r`, `--recursive`, `-R`), remote(`projects delete`)},
	"gsutil":     {remote(`(?:rm|rb)\b`, `-r\S*`, `-R`, `-f`, `-[a-z]*r[a-z]*`), remote(`rb\b`)},
	"bq":         {remote(`rm\b`)},
	"az":         {remote(`(?:\S+ )*(?:delete|purge|delete-batch|deallocate)\b`)},
	"docker":     {remote(`(?:system|volume) prune\b`, `--volumes`, `-\S*a\S*`, `--all`), remote(`volume (?:rm|prune)\b`), remote(`(?:swarm leave|stack rm|service rm)\b`)},
	"podman":     {remote(`(?:system|volume) prune\b`, `--volumes`, `--all`, `-\S*a\S*`), remote(`volume rm\b`), remote(`system reset\b`)},
	"gh":         {remote(`(?:repo|release|secret|environment|variable|codespace) delete\b`), remote(`repo (?:archive|transfer)\b`), remote(`api\b`, `(?:-X|--method) DELETE`, `-XDELETE`)},
	"glab":       {remote(`(?:repo|project|release|variable) (?:delete|transfer|archive)\b`), remote(`api\b`, `(?:-X|--method)[= ]DELETE`, `-XDELETE`)},
	"linode-cli": {remote(`\S+ rebuild\b`)},
	"openstack":  {remote(`(?:\S+ )+delete\b`)},
	"oci":        {remote(`(?:\S+ )+(?:delete|terminate)\b`)},
	"ibmcloud":   {remote(`(?:\S+ )*\S*(?:delete|rm|destroy)\b`)},
	"vultr-cli":  {remote(`(?:\S+ )+delete\b`)},
	"heroku":     {remote(`(?:pg:reset|domains:clear|ps:scale (?:\S+ )*\S+=0)\b`)},
	"flyctl":     {remote(`scale count (?:\S+=)?0\b|destroy\b`)},
	"fly":        {remote(`scale count (?:\S+=)?0\b|destroy\b`)},
	"dokku":      {remote(`(?:\S+:)?destroy\b`)},
	"railway":    {remote(`down\b`)},
	"eb":         {remote(`terminate\b`)},
	"vault":      {remote(`kv (?:metadata delete|destroy|delete)\b|secrets disable\b|lease revoke\b|delete\b|auth disable\b|operator seal\b`)},
	"etcdctl":    {remote(`del\b`, `--prefix`, `--from-key`), remote(`auth disable\b`), remote(`snapshot restore\b`, `--data-dir[= ]/var/lib/etcd\S*`)},
	"consul":     {remote(`kv delete\b`, `-recurse`)},
	"nomad":      {remote(`(?:job )?stop\b`, `-purge`), remote(`(?:namespace|volume) delete\b|system gc\b`)},
	"eksctl":     {remote(`delete\b`)},
	"kops":       {remote(`delete\b`, `--yes`)},
	"rancher":    {remote(`(?:\S+ )*(?:delete|rm)\b`)},
	"argocd":     {remote(`(?:app|proj|cluster) (?:delete|rm)\b`)},
	"flux":       {remote(`(?:uninstall|delete)\b`)},
	"istioctl":   {remote(`uninstall\b`)},
	"velero":     {remote(`(?:backup|schedule|restore) delete\b`)},
	"restic":     {remote(`forget\b`, `--keep-\S+[= ]0\w?`, `--unsafe-allow-remove-all`), remote(`forget\b.* (?:latest|[0-9a-f]{8,})\b`), remote(`forget\b`, `--prune`).but(`--keep-\S+`), remote(`prune\b|key remove\b`)},
	"borg":       {remote(`delete\b|key remove\b`), remote(`prune\b`, `--keep-\S+[= ]0\w?`, `-[HdwmyH] ?0`)},
	"borgmatic":  {remote(`(?:delete|borg delete)\b`)},
	"duplicity":  {remote(`remove-all-but-n-full 0\b|remove-older-than 0\w?\b|remove-all-\S+ 0\b`)},
	"duplicacy":  {remote(`prune\b`, `-keep 0:\d+`, `-exclusive`)},
	"kopia":      {remote(`repository (?:disconnect|invalidate)\b`)},
	"pgbackrest": {remote(`(?:stanza-delete|repo-rm)\b`), remote(`expire\b`, `--repo\d*-retention-full[= ]0`, `--set[= ]\S+`)},
	"wal-g":      {remote(`delete\b`), remote(`(?:\S+ )*delete (?:everything|target)\b`)}, "wal-e": {remote(`delete\b`)},
	"barman":    {remote(`delete\b`)},
	"snapper":   {remote(`(?:\S+ )*(?:delete|remove|rm)\b`)},
	"timeshift": {remote(`.*`, `--delete`, `--delete-all`)},
	"tmutil":    {remote(`(?:delete|deletelocalsnapshots|disable|deleteinprogress)\b`)},
	"rclone":    {remote(`(?:purge|delete|deletefile|rmdirs|cleanup)\b`)},
	"zfs":       {remote(`destroy [^\s@]+(?: |$)|destroy \S+@(?:\S*%|$)`), remote(`(?:destroy|rollback)\b`, `-\w*[rRf]\w*`)},
	"lvm":       {remote(`(?:lvremove|vgremove|pvremove|lvreduce)\b`)},
	"lvreduce":  {remote(`.*\S`, `-f`, `-\w*f`, `-y`, `--force`, `--yes`)},
	"dmsetup":   {remote(`(?:remove_all|wipe_table)\b`)},
	"ceph":      {remote(`(?:\S+ )*(?:rm|delete|purge|destroy)\b`)},
	"rbd":       {remote(`(?:rm|remove|(?:snap|trash) purge|group rm)\b`)},
	"rados":     {remote(`(?:purge|rmpool)\b`)},
	"gluster":   {remote(`(?:volume (?:delete|reset)|snapshot delete)\b`)},
	"talosctl":  {remote(`reset\b`)}, "kubeadm": {remote(`reset\b`)}, "rke": {remote(`remove\b`)}, "k0s": {remote(`reset\b`)},
	"nodetool": {remote(`(?:decommission|removenode|assassinate|clearsnapshot|disableautocompaction)\b`)},
	"nats":     {remote(`(?:stream|kv|object|consumer) (?:purge|rm|del|delete)\b`)},
	"rpk":      {remote(`(?:topic|group|cluster) (?:delete|trim-prefix)\b`)},
	"celery":   {remote(`(?:\S+ )*purge\b`)},
	"twine":    {remote(`(?:remove|delete)\b`)}, "pnpm": {remote(`unpublish\b`)}, "yarn": {remote(`(?:npm )?unpublish\b`)},
	"dotnet": {remote(`nuget delete\b`)}, "pod": {remote(`trunk delete\b`)},
	"mc":         {remote(`(?:rb|rm)\b`, `--force`, `--recursive`, `-r`)},
	"s3cmd":      {remote(`(?:rb|del|rm)\b`, `--recursive`, `-r`, `--force`, `-f`), remote(`rb\b`)},
	"b2":         {remote(`(?:delete-bucket|bucket delete|rm)\b`)},
	"cdk":        {remote(`destroy\b`)},
	"cdktf":      {remote(`destroy\b`)},
	"sam":        {remote(`delete\b`)},
	"serverless": {remote(`remove\b`)},
	"sls":        {remote(`remove\b`)},
	"amplify":    {remote(`delete\b`)},
	"firebase":   {remote(`(?:firestore:delete|projects:delete|database:remove|hosting:disable|functions:delete)\b`)},
	"netlify":    {remote(`sites:delete\b`)},
	"wrangler":   {remote(`(?:\S+ )*delete\b`)},
	"supabase":   {remote(`projects delete\b`), remote(`db reset\b`, `--linked`, `--db-url`)},
	"pscale":     {remote(`(?:database|branch|db) delete\b`)},
	"neonctl":    {remote(`(?:projects?|branches|databases) delete\b`)},
	"atlas":      {remote(`(?:\S+ )+(?:delete|terminate)\b`)},
	"cf":         {remote(`delete\S*\b`)},
	"virsh":      {remote(`(?:undefine|vol-delete|pool-delete)\b`)},
	"govc":       {remote(`(?:vm\.destroy|object\.destroy|datastore\.rm)\b`)},
	"npm":        {remote(`unpublish\b|(?:team destroy|org rm|owner rm)\b`)},
	"gem":        {remote(`yank\b`)},
	"cargo":      {remote(`yank\b`), remote(`owner\b`, `--remove`, `-r`)},
	"vercel":     {remote(`(?:rm|remove)\b`)},
}

// sharedBranch is what a branch is called that others work from.
const sharedBranch = `(?:refs/heads/)?(?:main|master|trunk|develop|dev|production|prod|staging|stable|release\S*|hotfix\S*|gh-pages|v?\d+(?:\.\S+)?)`

var kubernetes = []remoteCommand{
	remote(`delete\b`, `--all`, `--force`, `-A`, `--all-namespaces`),
	remote(`delete (?:\S*,)?(?:all|ns|namespaces?|nodes?|no|pvc?|persistentvolume(?:claim)?s?|crds?|customresourcedefinitions?|clusters?|projects?|sts|statefulsets?|storageclass(?:es)?|sc)(?:[ /,]|$)`),
	remote(`drain\b`, `--force`, `--disable-eviction`, `-l`, `--selector`),
	remote(`replace\b`, `--force`),
	remote(`scale\b`, `--all`),
	remote(`scale\b.* (?:\*|all)(?: |$)`, `--replicas[= ]0`),
	remote(`scale (?:\S+ )*(?:-A|--all)`),
	remote(`taint nodes?\b`, `--all`),
	remote(`patch\b`, `--all`),
}

// heldData is what a resource is called that holds data: made anew, it is empty.
const heldData = `(?i:_(?:db|rds|sql|database|bucket|ebs|volume|disk|efs|dynamodb|elasticache|kms|storage|filestore|bigtable|spanner|dataset)\w*)`

var terraform = []remoteCommand{
	remote(`(?:run-all |-\S+ )*destroy\b`), remote(`apply\b`, `--?destroy(?:=true)?`), remote(`apply\b`, `--?replace[= ]\S*`+heldData+`\S*`), remote(`taint (?:\S+ )*\S*` + heldData), remote(`state (?:rm|push)\b|workspace delete\b|force-unlock\b`),
}
