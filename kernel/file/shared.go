package file

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

// InSharedRoot reports whether a place is one of those where machines keep what belongs to
// others, or in one.
func InSharedRoot(place string) bool { return sharedRoot.MatchString(place) }

// IsPassing reports whether a file is called what nobody misses.
func IsPassing(name string) bool { return passingFile.MatchString(name) }

// HoldsData reports whether programs keep what they know in files of such a name.
func HoldsData(name string) bool { return holdsData.MatchString(name) }

// HoldsOthersData reports whether a place is of what a machine keeps for others, and no report that
// somebody made to be sent.
func HoldsOthersData(place string) bool {
	return (InSharedRoot(place) || strings.HasPrefix(place, "/var/lib/")) && (HoldsData(place) || valued.MatchString(place)) && !passes.MatchString(place)
}

// IsShared reports whether a place, or what a pattern stands for, is what others keep where
// machines keep what belongs to others. Deep in there only what is called like it counts: there
// people work, too.
func IsShared(place string) bool {
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

// IsSharedOnWindows reports whether a place of Windows is what others keep: a share of another
// machine, or a folder of a drive that is called like one.
func IsSharedOnWindows(target string) bool {
	switch {
	case strings.HasPrefix(target, "//") && !strings.HasPrefix(target, "//?") && !strings.HasPrefix(target, "//.") && strings.Count(strings.Trim(target, "/"), "/") > 0:
		return lostWithout(path.Clean(target), strings.Count(path.Clean(target), "/"))
	case windowsShare.MatchString(target):
		return lostWithout(path.Clean(target), strings.Count(path.Clean(target), "/")+1)
	}
	return false
}

var windowsShare = regex.New(`(?i)^[a-z]:/(?:[\w-]*shares?|freigaben?|data|daten|home|homes|profiles|users|dfs\w*|fileserver|departments?|groups?|storage|backups?|archives?|finance\w*|hr|legal|accounting|sql\w*|mssql\w*|oradata|exchange\w*|hyper-v|vms?)(?:/|$)`)

// holdsData is a file in which programs keep what they know.
var holdsData = regex.New(`(?i)\.(?:db\d?|sqlite\d?|journal|ldb|mdb|ibd|mdf|ldf|dbf|dump|dmp|parquet|avro|orc|vhdx?|vmdk|qcow2|pst|ost|edb|wal)$`)
