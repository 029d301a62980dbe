package toolcall

import "strings"

// programs are the words of a tool's name that stand for a command: the arguments of
// such a tool are that command's.
var programs = map[string]string{
	"git": "git", "kubectl": "kubectl", "k8s": "kubectl", "kubernetes": "kubectl", "oc": "oc", "helm": "helm",
	"aws": "aws", "awscli": "aws", "gcloud": "gcloud", "gsutil": "gsutil", "azure": "az", "az": "az", "azcli": "az", "bq": "bq",
	"docker": "docker", "podman": "podman", "terraform": "terraform", "tofu": "tofu", "pulumi": "pulumi", "ansible": "ansible",
	"redis": "redis-cli", "valkey": "redis-cli", "etcdctl": "etcdctl", "vault": "vault", "psql": "psql", "mongosh": "mongosh", "sqlite3": "sqlite3",
	"ssh": "ssh", "scp": "scp", "rsync": "rsync", "curl": "curl", "wget": "wget", "tar": "tar", "tmux": "tmux",
	"gh": "gh", "glab": "glab", "npm": "npm", "npx": "npx", "pip": "pip", "uv": "uv", "crontab": "crontab", "systemctl": "systemctl", "launchctl": "launchctl",
	"heroku": "heroku", "flyctl": "flyctl", "vercel": "vercel", "doctl": "doctl", "wrangler": "wrangler", "caddy": "caddy", "rclone": "rclone",
	"rabbitmqctl": "rabbitmqctl", "rabbitmqadmin": "rabbitmqadmin", "zfs": "zfs", "zpool": "zpool", "restic": "restic", "borg": "borg", "kopia": "kopia", "velero": "velero",
	"amtool": "amtool", "mc": "mc", "dropdb": "dropdb", "mysqladmin": "mysqladmin", "terragrunt": "terragrunt", "compose": "docker-compose", "s3cmd": "s3cmd", "consul": "consul",
	"nomad": "nomad", "eksctl": "eksctl", "argocd": "argocd", "skopeo": "skopeo", "crane": "crane", "nmcli": "nmcli", "resolvectl": "resolvectl", "iptables": "iptables", "ufw": "ufw",
	"virsh": "virsh", "ceph": "ceph", "yarn": "yarn", "pnpm": "pnpm", "cargo": "cargo", "twine": "twine", "openssl": "openssl", "journalctl": "journalctl", "nsupdate": "nsupdate",
	"certutil": "certutil", "schtasks": "schtasks", "wevtutil": "wevtutil", "netsh": "netsh", "ngrok": "ngrok", "cloudflared": "cloudflared", "pgbackrest": "pgbackrest", "doas": "doas", "sudo": "sudo",
}

// namesProgram are the programs that a list of arguments may begin with.
var namesProgram = func() map[string]bool {
	all := make(map[string]bool)
	for _, name := range programs {
		all[name] = true
	}
	return all
}()

// programOfTool returns the command that a tool's name stands for, and the words of
// the name after it, which are its own.
func programOfTool(name string) (program, verb string) {
	words := strings.FieldsFunc(spaced(name), func(c rune) bool { return c == ' ' })
	for i, w := range words {
		p, known := programs[w]
		if i > 0 && words[i-1] == "kafka" && kafkaTools[w] { // kafka-topics, kafka-acls
			p, known = "kafka-"+w, true
		}
		if known {
			var rest []string
			for _, v := range words[i+1:] {
				if !fillers[v] {
					rest = append(rest, v)
				}
			}
			return p, strings.Join(rest, " ")
		}
	}
	return "", ""
}

var kafkaTools = words("topics configs acls")

// fillers are the words of a tool's name that say only that it runs something.
var fillers = words("resource object manifest api command cmd cli run exec execute tool call query args client raw")

// subjectKeys are the members that say what kind of thing a command is about.
var subjectKeys = words("kind resource resourcetype service")

// actionKeys are those that say what a service is to do.
var actionKeys = words("action operation api apicall function")

// argumentKeys are the members whose value is words of the command.
var argumentKeys = words("args argv arguments command cmd commandline subcommand input params parameters")

// program reads the arguments of a tool that stands for a command.
func (r *reading) program(name string, leaves []leaf) {
	program, verb := programOfTool(name)
	if program == "" || len(leaves) > maxProgramWords {
		return
	}
	line := []string{program, verb}
	for _, l := range leaves {
		if l.text && subjectKeys[l.key] && !l.composed && !l.above.filter {
			line = append(line, quoted([]string{strings.ToLower(l.value)})) // before what it is called
		}
	}
	for _, l := range leaves {
		switch {
		case l.composed, subjectKeys[l.key]:
		case l.text && actionKeys[l.key] && program == "aws":
			line = append(line, quoted([]string{strings.ReplaceAll(spaced(l.value), " ", "-")}))
		case l.text && argumentKeys[l.key] && isSQLClient(program) && strings.HasPrefix(l.value, `\`): // a command of the client's own
			line = append(line, quoted([]string{l.value}))
		case l.text && argumentKeys[l.key] && !l.part:
			line = append(line, strings.TrimPrefix(l.value, program+" "))
		case l.text && l.value != program:
			line = append(line, quoted([]string{l.value}))
		case l.value == "true":
			line = append(line, "--"+l.key)
		case !l.text && l.key == "replicas":
			line = append(line, "--replicas="+l.value)
		}
	}
	r.shell(strings.Join(line, " "))
}

// maxProgramWords bounds the arguments that are read as one command line.
const maxProgramWords = 64

// spaced separates the words of a tool's name, in lower case.
func spaced(name string) string {
	var b strings.Builder
	for i, c := range name {
		switch {
		case c == '_' || c == '-' || c == '.' || c == '/' || c == ':':
			b.WriteByte(' ')
			continue
		case i > 0 && c >= 'A' && c <= 'Z' && name[i-1] >= 'a' && name[i-1] <= 'z':
			b.WriteByte(' ')
		}
		b.WriteRune(c)
	}
	return strings.ToLower(b.String())
}
