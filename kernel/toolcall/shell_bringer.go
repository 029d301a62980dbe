package toolcall

import (
	"slices"
	"strings"
)

// A bringer starts a program of a package that it brings, or in an environment that it keeps.
type bringer struct {
	verbs string // behind one of which the program stands; "" if there is none
	options
}

var bringers = map[string]bringer{
	"npx": {"", options{values: "p", long: "--package"}}, "pnpx": {"", options{values: "p", long: "--package"}},
	"bunx": {"", options{values: "p", long: "--package"}}, "bun": {"x", options{}}, "corepack": {},
	"npm": {"exec x", options{values: "pw", long: "--package --workspace"}}, "pnpm": {"exec dlx", options{long: "--package"}}, "yarn": {"exec dlx", options{values: "p", long: "--package"}},
	"uv":  {"run tool", options{values: "p", long: "--from --with --with-editable --with-requirements --python --project --directory --env-file --extra --group --package --index --default-index --index-url --config-file --cache-dir"}},
	"uvx": {"", options{values: "pw", long: "--from --with --python --index"}}, "pipx": {"run", options{long: "--spec --python --pip-args --index-url"}},
	"rye": {"run", options{}}, "pdm": {"run", options{values: "p", long: "--project --venv"}}, "hatch": {"run", options{}}, "pixi": {"run", options{values: "e", long: "--environment --manifest-path"}},
	"poetry": {"run", options{}}, "pipenv": {"run", options{}}, "bundle": {"exec", options{}},
	"conda": {"run", options{values: "npe", long: "--name --prefix"}}, "mamba": {"run", options{values: "npe", long: "--name --prefix"}}, "micromamba": {"run", options{values: "npe", long: "--name --prefix"}},
	"asdf": {"exec", options{}}, "mise": {"exec x", options{}}, "volta": {"run", options{long: "--node --npm --pnpm --yarn"}}, "devbox": {"run", options{values: "ce", long: "--config --env"}},
}

// brought is the command that a bringer starts; nil if the command is none, or starts nothing.
func brought(name string, argv []string) []string {
	b, known := bringers[name]
	if !known {
		return nil
	}
	if b.verbs != "" {
		at := slices.IndexFunc(argv[1:], func(w string) bool { return !strings.HasPrefix(w, "-") }) + 1
		if at == 0 || !slices.Contains(strings.Fields(b.verbs), argv[at]) {
			return nil
		}
		if argv = argv[at:]; argv[0] == "tool" { // uv tool run
			if argv = argv[1:]; wordAt(argv, 0) != "run" {
				return nil
			}
		}
	}
	if at := slices.Index(argv, "--"); at > 0 && name == "mise" { // behind the tools that it brings
		return argv[at+1:]
	}
	run := slices.Clone(b.following(argv))
	switch {
	case name == "uv" && len(run) == 0 && slices.Contains(argv, "-"):
		return []string{"python", "-"}
	case len(run) > 0:
		if at := strings.LastIndexByte(run[0], '@'); at > 0 { // rimraf@6
			run[0] = run[0][:at]
		}
	}
	return run
}
