package toolcall

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

// mirrored is a copy that also takes away what its source does not have.
type mirrored struct{ from, to string }

// mirrors returns what a program makes equal to what.
func mirrors(name string, argv []string) (mirrored, bool) {
	flags, knows := mirrorFlags[name]
	if !knows {
		return mirrored{}, false
	}
	line := strings.Join(argv, " ") + " "
	if !flags.MatchString(line) || dryRun.MatchString(line) {
		return mirrored{}, false
	}
	var from, to string
	names := operands(argv)
	for i, w := range argv {
		switch {
		case w == "-s" || w == "--source":
			from = wordAt(argv, i+1)
		case w == "-c" || w == "-d" && name == "az" || w == "--container" || w == "--destination":
			to = wordAt(argv, i+1)
		}
	}
	if name != "az" && len(names) > 1 {
		from, to = names[len(names)-2], names[len(names)-1]
		if i := slices.IndexFunc(names, func(w string) bool { return mirrorVerbs[w] }); i >= 0 && i+2 < len(names) {
			from, to = names[i+1], names[i+2]
		}
	}
	return mirrored{from, to}, from != "" && to != ""
}

var (
	mirrorFlags = map[string]*regex.Expression{
		"rsync":  regex.New(` --del(?:ete\S*)? `),
		"aws":    regex.New(` s3 sync .*--delete `),
		"gsutil": regex.New(` rsync .*-\w*d`),
		"gcloud": regex.New(` storage rsync .*--delete-unmatched-destination-objects`),
		"rclone": regex.New(` sync `),
		"mc":     regex.New(` mirror .*--remove `),
		"s3cmd":  regex.New(` sync .*--delete-removed `),
		"s5cmd":  regex.New(` sync .*--delete `),
		"b2":     regex.New(` sync .*--delete `),
		"az":     regex.New(` storage (?:blob|azcopy blob|fs directory) (?:sync|upload) .*--delete-destination[= ]true `),
		"azcopy": regex.New(` sync .*--delete-destination[= ]true `),
		"lftp":   regex.New(` mirror .*(?:--delete|-\w*e) `),
	}
	mirrorVerbs = words("sync rsync mirror")
	dryRun      = regex.New(` (?:--dry-?run|--dryrun|-n|--simulate|-\w*n\w*v\w*|-avn\w*) `)

	// builtFolder is what a build makes again at any time: that its old files go is what a
	// publication is for.
	builtFolder = regex.New(`(?:^|/)(?:public|dist|build|out|_site|site|www|html|static|assets|website|web|docs|book|coverage|storybook-static|target|export|_build|\.next|\.output|htdocs)(?:/.*)?$`)

	// trialPlace is a place that others do not work from.
	trialPlace = regex.New(`(?i)(?:^|[-_./:])(?:staging|stage|preview|dev|develop|test|testing|sandbox|qa|demo|pr-?\d+|local)(?:[-_./:]|$)`)

	// emptyFolder is what an empty folder is called.
	emptyFolder = regex.New(`(?i)(?:^|[/_.-])(?:empty|blank|void|none|nothing|null|nil|leer|vide|vacio)[\w-]*/*$|^/dev/null`)

	// remotePlace is a folder of another machine, a bucket or a share.
	remotePlace = regex.New(`^(?:[\w.-]+@)?[\w.-]{2,}:|^:\w+|://`)

	// keptPlace is what is there to be found when all else is lost.
	keptPlace = regex.New(`(?i)backup|archive|snapshot|vault|(?:^|[-_./:])dr(?:[-_./:]|$)`)
)

// mirrorLoses judges a copy that takes away what its source does not have: from an empty
// folder it takes all, and in a bucket it takes what nobody else has.
func (s *shell) mirrorLoses(name string, argv []string) {
	m, is := mirrors(name, argv)
	if !is {
		return
	}
	empty := emptyFolder.MatchString(m.from) || s.emptyFolders[s.resolve(m.from)]
	elsewhere := remotePlace.MatchString(m.to) && !file.OnDrive(m.to)
	far := elsewhere || strings.HasPrefix(s.resolve(m.to), "/") && !scratch.MatchString(s.resolve(m.to)) || strings.HasPrefix(s.resolve(m.to), "~")
	switch {
	case name == "rsync" && !elsewhere:
		s.removes([]string{m.to})
		if empty && far {
			s.breaks(DestructiveCommand)
		}
	case empty && far:
		s.breaks(DestructiveOperation)
	case name == "rclone" || name == "rsync" || name == "lftp" || !elsewhere:
	case keptPlace.MatchString(m.to) || remotePlace.MatchString(m.from):
		s.breaks(DestructiveOperation)
	case !builtFolder.MatchString(strings.TrimRight(m.from, "/.")) && !trialPlace.MatchString(m.to):
		s.breaks(DestructiveOperation)
	}
}

// scratch are the folders whose loss nobody feels.
var scratch = regex.New(`^/(?:tmp|var/tmp|dev/shm)(?:/|$)`)

// fillsFolders keeps track of the folders that the text has just made, which are empty until
// something else runs.
func (s *shell) fillsFolders(name string, argv []string) {
	switch made, is := madeFolder(argv); {
	case is:
		note(&s.emptyFolders, made, true)
	case name == "mkdir":
		for _, folder := range operands(argv) {
			if s.spend(costWord) {
				note(&s.emptyFolders, s.resolve(folder), true)
			}
		}
	case !idle[name] && len(s.emptyFolders) > 0:
		clear(s.emptyFolders)
	}
}

// idle are the commands that put nothing into a folder.
var idle = words("mkdir rsync aws gsutil gcloud rclone mc s3cmd s5cmd azcopy az lftp cd pushd popd echo printf ls true : sleep test [ find rm rmdir ssh export set time nice ionice sudo env timeout wait exit chmod chown pwd stat du df")

// madeFolder is the folder that mktemp -d makes. The text does not name it, so it gets a name.
func madeFolder(argv []string) (string, bool) {
	if programName(argv[0]) != "mktemp" || !hasFlag(argv, 'd', "--directory") {
		return "", false
	}
	return madeByMktemp, true
}

const madeByMktemp = "/tmp/made-by-mktemp"
