package toolcall

import (
	"regexp"
	"slices"
	"strings"
)

// remoteCommand is a command of a service elsewhere that cannot be taken back. Its
// verbs are the words in their order, without the flags between them; flags, if
// there are any, are matched against the flags.
type remoteCommand struct {
	verbs *regexp.Regexp
	flags *regexp.Regexp
}

// irreversibleOperation judges the clients of version control, clouds and clusters.
func irreversibleOperation(argv []string) bool {
	commands, known := remoteCommands[programName(argv[0])]
	if !known {
		return false
	}
	verbs, flags := verbsAndFlags(argv)
	if strings.Contains(flags, "--dry-run") {
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
	c := remoteCommand{verbs: regexp.MustCompile(`^(?:` + verbs + `)`)}
	if len(flags) > 0 {
		c.flags = regexp.MustCompile(`(?:^| )(?:` + strings.Join(flags, "|") + `)(?:=\S*)? `)
	}
	return c
}

// remoteCommands are by the name of the client. A push with lease, a plan, a dry
// run and one named pod are ordinary work.
var remoteCommands = map[string][]remoteCommand{
	"git": {
		remote(`push\b`, `--force`, `-[a-zA-Z]*f[a-zA-Z]*`, `--mirror`, `--delete`, `-d`, `--prune`),
		remote(`push\b.* (?:\+\S+|:\S+)`),
		remote(`branch (?:main|master|trunk|develop|production|release\S*)\b`, `-D`, `--delete`, `-d`),
		remote(`reflog (?:expire|delete)\b`),
		remote(`update-ref\b`, `-d`, `--delete`),
		remote(`filter-(?:branch|repo)\b`),
	},
	"terraform": terraform, "tofu": terraform, "terragrunt": terraform,
	"pulumi":  {remote(`destroy\b|stack rm\b`)},
	"kubectl": {remote(`delete\b`, `--all`, `--force`), remote(`delete (?:ns|namespaces?|nodes?|pv|crd|customresourcedefinitions?|clusters?)(?:[ /]|$)`), remote(`drain\b`, `--force`), remote(`replace\b`, `--force`)},
	"helm":    {remote(`(?:uninstall|delete|del|un)\b`)},
	"aws":     {remote(`s3 (?:rb|rm)\b`, `--force`, `--recursive`), remote(`s3 sync\b`, `--delete`), remote(`s3api delete-bucket\b`), remote(`\S+ (?:terminate|delete-db|delete-table|delete-stack|delete-cluster|delete-file-system|delete-volume|delete-snapshot|delete-key|delete-function|delete-vpc|schedule-key-deletion|delete-hosted-zone|delete-repository|delete-user|close-account)\S*`)},
	"gcloud":  {remote(`(?:\S+ )+delete\b`)},
	"gsutil":  {remote(`(?:rm|rb)\b`, `-r\S*`, `-R`, `-f`), remote(`rsync\b`, `-\S*d\S*`)},
	"az":      {remote(`(?:\S+ )*(?:group|vm|aks|webapp|keyvault|storage account|sql (?:db|server)|disk) delete\b`)},
	"docker":  {remote(`(?:system|volume) prune\b`, `--volumes`, `-af`, `--all`), remote(`volume rm\b`)},
	"podman":  {remote(`(?:system|volume) prune\b`, `--volumes`, `--all`), remote(`volume rm\b`)},
	"gh":      {remote(`(?:repo|release|secret) delete\b`), remote(`api\b`, `(?:-X|--method) DELETE`, `-XDELETE`)},
	"glab":    {remote(`(?:repo|project) delete\b`)},
	"doctl":   {remote(`(?:\S+ )+(?:delete|destroy)\b`)},
	"heroku":  {remote(`(?:apps:destroy|pg:reset|addons:destroy)\b`)},
	"flyctl":  {remote(`(?:apps|machine|volumes?) destroy\b`)},
	"fly":     {remote(`(?:apps|machine|volumes?) destroy\b`)},
	"vault":   {remote(`kv (?:metadata delete|destroy)\b|secrets disable\b|lease revoke\b`)},
	"etcdctl": {remote(`del\b`, `--prefix`, `--from-key`)},
	"consul":  {remote(`kv delete\b`, `-recurse`)},
	"eksctl":  {remote(`delete\b`)},
	"vercel":  {remote(`(?:rm|remove)\b`)},
}

var terraform = []remoteCommand{
	remote(`(?:run-all )?destroy\b`), remote(`apply\b`, `--?destroy`), remote(`state rm\b`),
}

// rsyncDeletes finds the flags that remove what the source does not have.
var rsyncDeletes = regexp.MustCompile(` --del(?:ete\S*)?(?: |$)`)
