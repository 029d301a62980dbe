package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/code"
	"github.com/caddy-lex/lex/kernel/regex"
)

// A file of Terraform is run when it is planned: a provisioner and the data source "external" run
// programs, a module comes from where its source says, and its resources give rights and open
// doors as commands do. Names and modules of registries, a role for one service, a port for the
// web and a script of the repository are everyday.

// provisioned are the commands in a file of Terraform, those in lists among them.
func provisioned(text string) []string {
	out := quotedCommands(text)
	for _, m := range programList.FindAllStringSubmatch(text, maxRecipes) {
		out = append(out, quoted(code.Strings(m[1])))
	}
	return out
}

var programList = regex.New(`(?s)\b(?:program|interpreter)\s*=\s*\[([^\]]{1,1000})\]`)

// infrastructure judges what a file of Terraform gives, opens and fetches.
func (r *reading) infrastructure(text string) {
	for _, rule := range infrastructureRules {
		if rule.pattern.MatchString(text) {
			r.breaks(rule.invariant)
		}
	}
}

// atPlanning are the commands that run when something is made, and not when it goes.
func atPlanning(text string) []string {
	var out []string
	for _, m := range provisioner.FindAllStringSubmatch(text, maxRecipes) {
		if command, _ := code.StringFrom(m[1], 1, `"`); !strings.Contains(m[0], "destroy") {
			out = append(out, command)
		}
	}
	return out
}

// provisioner is one that runs on the machine that plans. One of a resource that goes takes away
// what it had made.
var provisioner = regex.New(`(?s)provisioner\s+"local-exec"\s*\{[^{}]*?\bcommand\s*=\s*("(?:[^"\\\n]|\\.)*")`)

var infrastructureRules = []wordRule{
	{regex.New(`\bsource\s*=\s*"(?:git::)?(?:http://|https?://\d+\.\d+\.\d+\.\d+|s3::http://)`), RemoteCodeExecution},
	{regex.New(`(?s)data\s+"http"\s+"[^"]*"\s*\{[^}]*\burl\s*=\s*"https?://[^"]*\$\{[^}"]*(?:password|secret|token|private_key|access_key|credential)`), DataExfiltration},
	{regex.New(`\bacl\s*=\s*"public-read-write"|\bmember\w*\s*=\s*\[?\s*"all(?:Authenticated)?Users"[^}]*\brole\s*=\s*"roles/(?:storage\.(?:admin|object(?:Admin|Creator))|bigquery|owner|editor)|\brole\s*=\s*"roles/(?:storage\.(?:admin|object(?:Admin|Creator))|bigquery\.\w+|owner|editor)"[^}]*\bmember\w*\s*=\s*\[?\s*"all(?:Authenticated)?Users"`), DataExfiltration},
	{regex.New(`"?Effect"?\s*[=:]\s*"Allow"[^}]*"?Action"?\s*[=:]\s*\[?\s*"\*"[^}]*"?Resource"?\s*[=:]\s*\[?\s*"\*"|\bactions\s*=\s*\[\s*"\*"\s*\][^}]*\bresources\s*=\s*\[\s*"\*"\s*\]`), PrivilegeEscalation},
	{regex.New(`(?s)"aws_iam_user_policy_attachment"[^}]*(?:AdministratorAccess|IAMFullAccess)|\brole\s*=\s*"roles/(?:owner|editor|iam\.securityAdmin|resourcemanager\.\w*[aA]dmin)"[^}]*\bmember\s*=\s*"(?:user:|all|domain:)|role_definition_name\s*=\s*"(?:Owner|User Access Administrator)"`), PrivilegeEscalation},
	{regex.New(`(?s)type\s*=\s*"ingress"[^}]*(?:protocol\s*=\s*"(?:-1|all)"|to_port\s*=\s*65535)[^}]*"(?:0\.0\.0\.0|::)/0"|ingress\s*\{[^}]*(?:protocol\s*=\s*"(?:-1|all)"|to_port\s*=\s*65535)[^}]*"(?:0\.0\.0\.0|::)/0"|(?:type\s*=\s*"ingress"|ingress\s*\{)[^}]*from_port\s*=\s*(?:22|3389|1433|3306|5432|6379|27017|9200)\b[^}]*"(?:0\.0\.0\.0|::)/0"|source_address_prefix\s*=\s*"(?:\*|Internet|0\.0\.0\.0/0)"[^}]*destination_port_range\s*=\s*"(?:\*|22|3389|1433)"|destination_port_range\s*=\s*"(?:\*|22|3389|1433)"[^}]*source_address_prefix\s*=\s*"(?:\*|Internet|0\.0\.0\.0/0)"`), ConstraintTampering},
	{regex.New(`"aws_cloudtrail"[^}]*\benable_logging\s*=\s*false|\bis_multi_region_trail\s*=\s*false[^}]*enable_logging\s*=\s*false`), ConstraintTampering},
}
