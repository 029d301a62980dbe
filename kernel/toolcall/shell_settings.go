package toolcall

import (
	"path"
	"strconv"
	"strings"
)

// withSettings are the words of a command and those that a setting of the environment, or a
// plan that the text has made before, adds to them: terraform takes flags from TF_CLI_ARGS.
func (s *shell) withSettings(name string, argv []string) []string {
	switch name {
	case "terraform", "tofu", "terragrunt":
		return s.planned(argv)
	case "git":
		for n := range maxPlaces {
			key, value := s.vars["GIT_CONFIG_KEY_"+strconv.Itoa(n)], s.vars["GIT_CONFIG_VALUE_"+strconv.Itoa(n)]
			if m := gitSettings.FindStringSubmatch(key + "=" + value); key != "" && m != nil {
				for _, command := range gitCommand(key+"="+value, m[1]) {
					s.opens(command)
				}
			}
		}
	}
	return argv
}

// planned adds what terraform gets besides its words. A plan to destroy that was kept in a
// file is what the file's apply does.
func (s *shell) planned(argv []string) []string {
	verb := ""
	for _, w := range argv[1:] {
		if !strings.HasPrefix(w, "-") {
			verb = w
			break
		}
	}
	out := argv
	for _, setting := range []string{"TF_CLI_ARGS", "TF_CLI_ARGS_" + strings.ReplaceAll(verb, "-", "_")} {
		if value := s.vars[setting]; verb != "" && value != "" {
			out = append(out[:len(out):len(out)], strings.Fields(value)...)
		}
	}
	for i, w := range out {
		switch file, is := strings.CutPrefix(strings.TrimLeft(w, "-"), "out"); {
		case verb == "plan" && is && w[0] == '-' && strings.Contains(strings.Join(out, " ")+" ", "-destroy "):
			if file = strings.TrimPrefix(file, "="); file == "" {
				file = wordAt(out, i+1)
			}
			note(&s.written, "plan to destroy "+path.Base(file), file)
		case verb == "apply" && s.written["plan to destroy "+path.Base(w)] != "":
			return append(out[:len(out):len(out)], "-destroy")
		}
	}
	return out
}
