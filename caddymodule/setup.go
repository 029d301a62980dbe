package caddymodule

import (
	"runtime/debug"
	"sync"

	"github.com/caddy-lex/lex/govern"
)

// modulePath is the name of this module in a build.
const modulePath = "github.com/caddy-lex/lex"

// Code is the version of the code that runs.
func Code() govern.CodeSetup { return codeSetup() }

// codeSetup is the version of the code that runs. A build of this module itself knows the
// revision of its source; one that has it as a plugin knows the version of the module.
var codeSetup = sync.OnceValue(func() govern.CodeSetup {
	code := govern.CodeSetup{Pipeline: pipelineVersion, Version: "(unknown)"}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return code
	}
	code.Go = build.GoVersion
	if build.Main.Path != modulePath {
		code.Version = dependencyVersion(build.Deps)
		return code
	}
	code.Version = build.Main.Version
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			code.Revision = s.Value
		case "vcs.modified":
			code.Modified = s.Value == "true"
		}
	}
	return code
})

// dependencyVersion returns the version of this module among those of a build. In place of
// a module that was replaced by a folder, whose name is nobody's business, stands that it
// was.
func dependencyVersion(deps []*debug.Module) string {
	for _, m := range deps {
		switch {
		case m.Path != modulePath:
		case m.Replace == nil:
			return m.Version
		case m.Replace.Version == "":
			return "(replaced)"
		default:
			return m.Replace.Version
		}
	}
	return "(unknown)"
}
