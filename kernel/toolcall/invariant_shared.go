package toolcall

import (
	"path"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// sharedRoot is where machines keep what belongs to others: what is mounted, served, stored
// for good or backed up. The sandbox of a notebook (/mnt/data) and the drives of Windows in a
// Linux (/mnt/c) are none.
var sharedRoot = regex.New(`^/(?:(?:mnt|media|srv|net|nfs|nas|export|exports|Volumes|volume\d*|vol\d*|shares?|data\d*|storage|pool|tank|gpfs|lustre|backups?|archives?|warehouse|dumps?|var/opt|var/backups)/|opt/[^/]+/(?:[\w.-]*data|db|dbs|databases?|backups?|archives?|store|storage|uploads|records|repositories|volumes|home)(?:/|$))`)

var (
	notShared = regex.New(`^/mnt/(?:data|[a-z])(?:/|$)`)

	// passes is what a folder is called whose loss nobody feels: what is made again, tried out,
	// or put aside.
	passes = regex.New(`(?i)(?:^|[-_./])(?:tmp\w*|temp|temporary|caches?|builds?|dist|out|outputs?|target|tests?|testing|scratch|trash|old|stale|staging|stage|sessions?|thumbs?|thumbnails?|previews?|logs?|downloads?|artifacts?|releases?|node_modules|vendor|\.?venv|__pycache__|work|workspaces?|ws|runners?|ci|jobs?|checkouts?|worktrees?|sandbox\w*|demos?|dev|local|pr-?\d+|www|htdocs|html|public|sites?|static|web|docs|assets|unpacked|extracted|checkpoints?|run[-_]?\d+|runs|experiments?|playground|examples?|samples?|dummy|fixtures?|bench\w*|coverage|lost\+found|\.next|_build|\.git|src|renders?)(?:[-_./\d]|$)`)

	// passingFile is what a file is called that nobody misses.
	passingFile = regex.New(`(?i)(?:\.(?:tmp|temp|log(?:[.*]\S*)?|py[co]|swp|swo|bak|crc|part|partial|lock|lck|old|orig|cache|pid|class|o|crdownload|gcda|map)|~)$|(?:^|/)(?:\.DS_Store|Thumbs\.db|\._\*|core(?:\.[*\d]+)?|_SUCCESS|nohup\.out)$`)

	// valued is what people call what they cannot lose.
	valued = regex.New(`(?i)(?:^|[-_./ ])(?:backups?|archives?|finance\w*|financial\w*|accounting|ledgers?|invoices?|payroll|salar(?:y|ies)|hr|personnel|legal|contracts?|customers?|clients|patients?|medical|health|dicom|scans|records|tax\w*|claims?|polic(?:y|ies)|prod|production|oradata|pgdata|master|originals?|footage|evidence)(?:[-_./ \d]|$)`)
)

// lasting reports whether a place, or what a pattern stands for, is what others keep where
// machines keep what belongs to others. Deep in there only what is called like it counts: there
// people work, too.
func lasting(place string) bool {
	if !sharedRoot.MatchString(place) || notShared.MatchString(place) || strings.Contains(place, "..") {
		return false
	}
	return lostWithout(place, strings.Count(strings.TrimSuffix(place, "/"), "/"))
}

// lostWithout judges a place that others keep by what it is called and how deep it lies.
func lostWithout(place string, depth int) bool {
	if passes.MatchString(place) || passingFile.MatchString(place) {
		return false
	}
	return depth <= maxShared || valued.MatchString(place)
}

// maxShared is how deep a folder lies, at most, that others know by its name.
const maxShared = 4

// loses judges places that a command takes away with all that is in them. What nobody knows of
// a name is not its beginning: the rest of a path is told by that.
func (s *shell) loses(names []string) {
	for _, n := range names {
		if p := s.resolve(n); lasting(p) {
			s.breaks(DestructiveCommand)
		}
	}
}

// losesEach judges files that a command spoils one by one: patterns of them, and databases.
func (s *shell) losesEach(names []string) {
	for _, n := range names {
		if p := s.resolve(n); (strings.ContainsAny(p, "*?[") || holdsData.MatchString(p)) && lasting(p) {
			s.breaks(DestructiveCommand)
		}
	}
}

// holdsData is a file in which programs keep what they know.
var holdsData = regex.New(`(?i)\.(?:db\d?|sqlite\d?|journal|ldb|mdb|ibd|mdf|ldf|dbf|dump|dmp|parquet|avro|orc|vhdx?|vmdk|qcow2|pst|ost|edb|wal)$`)

// found are the files that a search finds below its folders, as places.
func found(roots []string, argv []string) []string {
	if aged(argv) {
		return nil
	}
	last := ""
	for i, w := range argv {
		if w == "-name" || w == "-iname" {
			last = "/" + wordAt(argv, i+1)
		}
	}
	out := make([]string, 0, len(roots))
	for _, root := range roots {
		out = append(out, strings.TrimSuffix(root, "/")+last)
	}
	return out
}

// aged reports whether a search finds only what is old enough to go, or empty.
func aged(argv []string) bool {
	for i, w := range argv {
		next := wordAt(argv, i+1)
		if w == "-empty" || aging[w] && !younger.MatchString(next) || w == "-size" && next == "0" {
			return true
		}
	}
	return false
}

var (
	aging   = words("-mtime -ctime -atime -mmin -cmin -amin")
	younger = regex.New(`^(?:-|\+0*$)`)
)

// windowsLasting reports whether a place of Windows is what others keep: a share of another
// machine, or a folder of a drive that is called like one.
func windowsLasting(target string) bool {
	switch {
	case strings.HasPrefix(target, "//") && !strings.HasPrefix(target, "//?") && !strings.HasPrefix(target, "//.") && strings.Count(strings.Trim(target, "/"), "/") > 0:
		return lostWithout(path.Clean(target), strings.Count(path.Clean(target), "/"))
	case windowsShare.MatchString(target):
		return lostWithout(path.Clean(target), strings.Count(path.Clean(target), "/")+1)
	}
	return false
}

var windowsShare = regex.New(`(?i)^[a-z]:/(?:[\w-]*shares?|freigaben?|data|daten|home|homes|profiles|users|dfs\w*|fileserver|departments?|groups?|storage|backups?|archives?|finance\w*|hr|legal|accounting|sql\w*|mssql\w*|oradata|exchange\w*|hyper-v|vms?)(?:/|$)`)
