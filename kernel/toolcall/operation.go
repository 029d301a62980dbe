package toolcall

import (
	"slices"
	"strings"
)

// remoteCommand is a command of a service elsewhere that cannot be taken back. Its
// verbs are the words in their order, without the flags between them; flags, if
// there are any, are matched against the flags.
type remoteCommand struct {
	verbs *expression
	flags *expression
}

// irreversibleOperation judges the clients of version control, clouds and clusters.
func irreversibleOperation(argv []string) bool {
	commands, known := remoteCommands[programName(argv[0])]
	if !known {
		return false
	}
	verbs, flags := verbsAndFlags(argv)
	if strings.Contains(flags, "--dry-run") || strings.Contains(flags, "--help") {
		return false
	}
	return slices.ContainsFunc(commands, func(c remoteCommand) bool {
		return c.verbs.MatchString(verbs) && (c.flags == nil || c.flags.MatchString(flags))
	})
}

// clientFlags are the flags of these clients that take the next word as a value
// and stand before the verb.
var clientFlags = map[string]options{
	"git":     {values: "Cc", long: "--git-dir --work-tree --namespace"},
	"kubectl": {values: "nlfs", long: "--namespace --context --cluster --kubeconfig --user --grace-period"},
	"helm":    {values: "n", long: "--namespace --kube-context --kubeconfig"},
	"aws":     {long: "--profile --region --output --endpoint-url --query"},
	"gcloud":  {long: "--project --account --zone --region --format"},
	"az":      {values: "ngo", long: "--name --resource-group --subscription"},
	"gh":      {values: "RXHfF", long: "--repo"},
	"docker":  {values: "Hc", long: "--host --context"},
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
	c := remoteCommand{verbs: newExpression(`^(?:` + verbs + `)`)}
	if len(flags) > 0 {
		c.flags = newExpression(`(?:^| )(?:` + strings.Join(flags, "|") + `)(?:=\S*)? `)
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
	},
	"bfg":       {remote(`.*\w`, `--delete-files`, `--delete-folders`, `--strip-blobs-bigger-than`, `--replace-text`)},
	"hg":        {remote(`(?:strip|push)\b`, `-f`, `--force`), remote(`strip\b`)},
	"svn":       {remote(`(?:delete|rm|remove)\b.*://`)},
	"terraform": terraform, "tofu": terraform, "terragrunt": terraform,
	"pulumi":  {remote(`(?:destroy|down)\b|stack rm\b|state delete\b`)},
	"kubectl": kubernetes, "oc": kubernetes, "k": kubernetes,
	"helm": {remote(`(?:uninstall|delete|del|un)\b`)},
	"aws": {
		remote(`s3 (?:rb|rm)\b`, `--force`, `--recursive`), remote(`s3 sync\b`, `--delete`),
		remote(`[\w-]+ (?:terminate|delete|purge|deregister|schedule-key-deletion|close|reset|disable|release|batch-delete)-\S*`),
		remote(`[\w-]+ (?:delete|terminate|schedule-key-deletion)\b`),
	},
	"gcloud":     {remote(`(?:\S+ )+delete\b`), remote(`storage (?:rm|buckets delete)\b`, `-r`, `--recursive`, `-R`), remote(`projects delete`)},
	"gsutil":     {remote(`(?:rm|rb)\b`, `-r\S*`, `-R`, `-f`, `-[a-z]*r[a-z]*`), remote(`rsync\b`, `-\S*d\S*`), remote(`rb\b`)},
	"bq":         {remote(`rm\b`)},
	"az":         {remote(`(?:\S+ )*(?:delete|purge|delete-batch|deallocate)\b`)},
	"docker":     {remote(`(?:system|volume) prune\b`, `--volumes`, `-\S*a\S*`, `--all`), remote(`volume (?:rm|prune)\b`), remote(`(?:swarm leave|stack rm|service rm)\b`)},
	"podman":     {remote(`(?:system|volume) prune\b`, `--volumes`, `--all`, `-\S*a\S*`), remote(`volume rm\b`), remote(`system reset\b`)},
	"gh":         {remote(`(?:repo|release|secret|environment|variable|codespace) delete\b`), remote(`repo (?:archive|transfer)\b`), remote(`api\b`, `(?:-X|--method) DELETE`, `-XDELETE`)},
	"glab":       {remote(`(?:repo|project|release|variable) delete\b`)},
	"doctl":      {remote(`(?:\S+ )+(?:delete|destroy)\b`)},
	"linode-cli": {remote(`\S+ (?:delete|rm|rebuild)\b`)},
	"hcloud":     {remote(`\S+ delete\b`)},
	"openstack":  {remote(`(?:\S+ )+delete\b`)},
	"oci":        {remote(`(?:\S+ )+(?:delete|terminate)\b`)},
	"ibmcloud":   {remote(`(?:\S+ )*\S*(?:delete|rm|destroy)\b`)},
	"scw":        {remote(`(?:\S+ )+(?:delete|terminate)\b`)},
	"vultr-cli":  {remote(`(?:\S+ )+delete\b`)},
	"heroku":     {remote(`(?:apps:destroy|pg:reset|addons:destroy|apps:delete|destroy)\b`)},
	"flyctl":     {remote(`(?:(?:apps|machines?|volumes?|postgres) )?destroy\b`)},
	"fly":        {remote(`(?:(?:apps|machines?|volumes?|postgres) )?destroy\b`)},
	"vault":      {remote(`kv (?:metadata delete|destroy|delete)\b|secrets disable\b|lease revoke\b|delete\b|auth disable\b|operator seal\b`)},
	"etcdctl":    {remote(`del\b`, `--prefix`, `--from-key`)},
	"consul":     {remote(`kv delete\b`, `-recurse`)},
	"nomad":      {remote(`(?:job )?stop\b`, `-purge`), remote(`(?:namespace|volume) delete\b|system gc\b`)},
	"eksctl":     {remote(`delete\b`)},
	"kops":       {remote(`delete\b`, `--yes`)},
	"rancher":    {remote(`(?:\S+ )*(?:delete|rm)\b`)},
	"argocd":     {remote(`(?:app|proj|cluster) (?:delete|rm)\b`)},
	"flux":       {remote(`(?:uninstall|delete)\b`)},
	"istioctl":   {remote(`uninstall\b`)},
	"velero":     {remote(`(?:backup|schedule|restore) delete\b`)},
	"restic":     {remote(`forget\b`, `--prune`), remote(`prune\b`)},
	"borg":       {remote(`delete\b`)},
	"rclone":     {remote(`(?:purge|delete|deletefile|rmdirs|cleanup)\b`)},
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
	"npm":        {remote(`unpublish\b`)},
	"gem":        {remote(`yank\b`)},
	"cargo":      {remote(`yank\b`)},
	"vercel":     {remote(`(?:rm|remove)\b`), remote(`(?:projects?|domains|env) (?:rm|remove)\b`)},
}

// sharedBranch is what a branch is called that others work from.
const sharedBranch = `(?:refs/heads/)?(?:main|master|trunk|develop|dev|production|prod|staging|stable|release\S*|hotfix\S*|gh-pages|v?\d+(?:\.\S+)?)`

var kubernetes = []remoteCommand{
	remote(`delete\b`, `--all`, `--force`, `-A`, `--all-namespaces`),
	remote(`delete (?:\S*,)?(?:all|ns|namespaces?|nodes?|no|pvc?|persistentvolume(?:claim)?s?|crds?|customresourcedefinitions?|clusters?|projects?|sts|statefulsets?|storageclass(?:es)?|sc)(?:[ /,]|$)`),
	remote(`drain\b`, `--force`, `--delete-emptydir-data`, `--ignore-daemonsets`),
	remote(`replace\b`, `--force`),
	remote(`scale\b`, `--all`),
	remote(`scale (?:\S+ )*(?:-A|--all)`),
}

var terraform = []remoteCommand{
	remote(`(?:run-all |-\S+ )*destroy\b`), remote(`apply\b`, `--?destroy(?:=true)?`), remote(`state (?:rm|push)\b|workspace delete\b|force-unlock\b`),
}

// rsyncDeletes finds the flags that remove what the source does not have.
var rsyncDeletes = newExpression(` --del(?:ete\S*)?(?: |$)`)
