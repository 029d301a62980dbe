package toolcall

import (
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/code"
	"github.com/caddy-lex/lex/kernel/regex"
)

// hop returns the command that a client runs elsewhere: on another machine, in a
// container, in a terminal that goes on. It harms there as it would here.
func hop(name string, argv []string) []string {
	switch name {
	case "docker", "podman", "nerdctl", "docker-compose", "crictl":
		return containerCommand(argv)
	case "kubectl", "oc", "k", "k3s":
		return podCommand(argv)
	case "tmux", "byobu":
		return typed(argv)
	case "screen":
		return screened(argv)
	case "ansible":
		return ansible(argv)
	case "salt", "salt-call", "salt-ssh":
		if i := slices.IndexFunc(argv, func(w string) bool { return strings.HasPrefix(w, "cmd.") }); i > 0 {
			return lineOf(argv[i+1:])
		}
		return nil
	case "aws", "az", "gcloud", "vagrant", "eb", "flyctl", "fly", "chef", "knife", "bolt", "doctl", "lima", "limactl", "colima":
		return said(argv)
	}
	if o, known := farShells[name]; known {
		return lineOf(o.following(argv))
	}
	if dashed[name] {
		if i := slices.Index(argv, "--"); i > 0 {
			return argv[i+1:]
		}
		return dashedOptions[name].following(argv)
	}
	return nil
}

// farShells join their words, as ssh does, and hand them to a shell elsewhere.
var farShells = map[string]options{
	"ssh": sshFlags, "slogin": sshFlags, "autossh": {values: "BbcDEeFIiJLlmOopQRSWwM", operands: 1},
	"rsh": {values: "l", operands: 1}, "rexec": {values: "lp", operands: 1}, "remsh": {values: "l", operands: 1},
	"plink": {values: "lPipw", operands: 1}, "plink.exe": {values: "lPipw", operands: 1},
	"pdsh": {values: "wxRlutfgN"}, "clush": {values: "wgxlfcoOX"}, "dsh": {values: "mgfnr"}, "mpssh": {values: "fu"},
	"pssh": {values: "hHlpoetOAx"}, "parallel-ssh": {values: "hHlpoetOAx"}, "sshexec": {operands: 1},
	"heroku": {values: "a", long: "--app --size", operands: 1}, "winrs": {operands: 1},
	"psexec": {values: "upnrwasdci", operands: 1}, "dokku": {operands: 2},
}

// dashed are the clients whose command follows two dashes.
var dashed = words("lxc incus lxc-attach mosh wsl wsl.exe multipass distrobox fab nomad gh flatpak-spawn toolbox railway virt-customize systemd-nspawn bwrap firejail proot fakeroot run-parts direnv npm pnpm dotenv op doppler infisical aws-vault chamber with-contenv machinectl qm pct sshpass nsenter")

// dashedOptions are those that also take it without.
var dashedOptions = map[string]options{
	"sshpass": {values: "pfdP"}, "fakeroot": {values: "isbf"}, "firejail": {}, "proot": {values: "rbwq"}, "direnv": {operands: 2},
	"flatpak-spawn": {}, "wsl": {values: "deu"}, "lxc-attach": {values: "n"}, "aws-vault": {operands: 2}, "systemd-nspawn": {values: "DMiu"},
	"dotenv": {values: "ef"}, "nomad": {},
}

// lineOf makes a shell's command of words that are handed over joined.
func lineOf(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	return []string{"sh", "-c", strings.Join(argv, " ")}
}

// containerFlags are those of docker exec and docker run that take a value.
var containerFlags = options{
	values: "aehlmpuvwc",
	long:   "--env --user --workdir --env-file --detach-keys --name --network --net --volume --entrypoint --mount --publish --memory --cpus --platform --label --hostname --add-host --restart --device --cap-add --cap-drop --security-opt --ulimit --shm-size --tmpfs --gpus --pull --log-driver --ip --dns --pid --ipc --userns --file --project-name --profile --host --context --index --link --expose --runtime --stop-signal",
}

// containerCommand is what docker exec and docker run start. What a new container
// loses is lost by nobody, unless a folder of this machine lies in it.
func containerCommand(argv []string) []string {
	verb := slices.IndexFunc(argv, func(w string) bool { return w == "exec" || w == "run" })
	if verb < 1 {
		return nil
	}
	o := containerFlags
	o.operands = 1
	command := o.following(argv[verb:])
	entry, mounts := "", mountsOf(argv)
	for i, w := range argv {
		if value, joined := strings.CutPrefix(w, "--entrypoint="); joined {
			entry = value
		} else if w == "--entrypoint" {
			entry = wordAt(argv, i+1)
		}
	}
	if entry != "" {
		command = append([]string{entry}, command...)
	}
	if argv[verb] == "exec" {
		return command
	}
	if len(mounts) == 0 {
		return nil
	}
	mapped := slices.Clone(command)
	for i, w := range mapped {
		for _, m := range mounts {
			w = m.within.ReplaceAllString(w, "${1}"+m.host+"${2}")
		}
		mapped[i] = w
	}
	return mapped
}

// mount is a folder of this machine in a container.
type mount struct {
	host   string
	within *regexp.Regexp
}

func mountsOf(argv []string) []mount {
	var out []mount
	for i, w := range argv {
		value := ""
		switch {
		case (w == "-v" || w == "--volume") && i+1 < len(argv):
			value = argv[i+1]
		case strings.HasPrefix(w, "--volume=") || strings.HasPrefix(w, "-v/"):
			value = strings.TrimPrefix(strings.TrimPrefix(w, "--volume="), "-v")
		}
		parts := strings.Split(value, ":")
		if len(parts) < 2 || parts[0] == "" || !strings.ContainsAny(parts[0][:1], "/~") || len(parts[1]) < 2 || len(parts[1]) > 64 {
			continue
		}
		host := strings.ReplaceAll(strings.TrimSuffix(parts[0], "/"), "$", "$$")
		within, err := regexp.Compile(`(^|[\s'"=])` + regexp.QuoteMeta(strings.TrimSuffix(parts[1], "/")) + `(/|[\s'"]|$)`)
		if err == nil && len(out) < maxPlaces {
			out = append(out, mount{host, within})
		}
	}
	return out
}

var podFlags = options{values: "nciltfs", long: "--namespace --container --context --kubeconfig --cluster --image --overrides --restart --labels --env --pod-running-timeout", operands: 1}

// podCommand is what kubectl exec starts, and kubectl run with its own image does
// not count.
func podCommand(argv []string) []string {
	verb := slices.IndexFunc(argv, func(w string) bool { return w == "exec" || w == "rsh" || w == "debug" })
	if verb < 1 {
		return nil
	}
	if i := slices.Index(argv, "--"); i > verb {
		return argv[i+1:]
	}
	return podFlags.following(argv[verb:])
}

// typed is what tmux is told to type or to start.
func typed(argv []string) []string {
	flags := options{values: "tcnsxyeFlpTbN"}
	at := slices.IndexFunc(argv[1:], func(w string) bool { return tmuxVerbs[w] })
	if at < 0 {
		return nil
	}
	words := flags.operandsOf(argv[at+1:])
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return keyNames[w] })
	return lineOf(words)
}

var (
	tmuxVerbs = words("send-keys send new-session new neww new-window split-window splitw run-shell run respawn-pane respawn-window pipe-pane if-shell popup display-popup set-buffer")
	keyNames  = words("Enter C-m C-c C-d C-u C-l KPEnter Space Escape")
)

// screened is what screen types or starts.
func screened(argv []string) []string {
	if i := slices.Index(argv, "stuff"); i > 0 {
		return lineOf([]string{strings.NewReplacer(`\n`, "\n", `\r`, "\n", `\015`, "\n", "^M", "\n").Replace(wordAt(argv, i+1))})
	}
	return options{values: "SptchTeO"}.following(argv)
}

// ansible is what the modules command, shell and raw run; command is the one
// without a name.
func ansible(argv []string) []string {
	module, arguments := "command", ""
	for i, w := range argv {
		switch {
		case w == "-m" || w == "--module-name":
			module = wordAt(argv, i+1)
		case w == "-a" || w == "--args":
			arguments = wordAt(argv, i+1)
		case strings.HasPrefix(w, "--args="):
			arguments = strings.TrimPrefix(w, "--args=")
		}
	}
	module = module[strings.LastIndexByte(module, '.')+1:]
	switch {
	case arguments == "":
		return nil
	case module == "command" || module == "shell" || module == "raw" || module == "win_shell" || module == "win_command" || module == "script" || module == "expect":
		return lineOf([]string{arguments})
	case module == "file" && strings.Contains(arguments, "state=absent"):
		if m := ansiblePath.FindStringSubmatch(arguments); m != nil {
			return []string{"rm", "-rf", m[1]}
		}
	}
	return nil
}

var ansiblePath = regex.New(`\b(?:path|dest|name)=(\S+)`)

// spoken are the flags of clouds' clients that carry a command line.
var spoken = options{text: "c", values: "nghp", longText: "--command --commands --scripts --exec"}

// said is a command line that a flag carries; that of aws ssm stands in JSON.
func said(argv []string) []string {
	for i := 1; i < len(argv); i++ {
		if text, _, found := spoken.program(argv, i); found {
			return lineOf([]string{text})
		}
		if m := ssmCommands.FindStringSubmatch(argv[i]); m != nil {
			return lineOf([]string{strings.Join(code.Strings(m[1]), "\n") + "\n" + strings.Trim(m[1], `[]"'`)})
		}
		if argv[i] == "-C" && slices.Contains(argv, "console") {
			return lineOf([]string{wordAt(argv, i+1)})
		}
	}
	if programName(argv[0]) == "knife" && len(operands(argv)) > 2 {
		return lineOf(operands(argv)[2:])
	}
	return nil
}

var ssmCommands = regex.New(`(?s)\bcommands"?\s*[=:]\s*(.+)$`)

// hops judges what a client runs elsewhere.
func (s *shell) hops(name string, argv []string, depth int) {
	if words := brought(name, argv); len(words) > 0 {
		s.command(words, depth+1)
		return
	}
	words := hop(name, argv)
	if len(words) == 0 {
		return
	}
	if name == "psexec" || name == "winrs" {
		s.windows(strings.Join(words[len(words)-1:], " "))
	}
	folder, rooted := s.folder, s.rooted
	s.folder, s.rooted = "", 0 // it has its own
	s.command(words, depth+1)
	s.folder, s.rooted = folder, rooted
}
