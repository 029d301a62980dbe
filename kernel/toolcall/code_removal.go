package toolcall

import (
	"regexp"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/code"
	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

// everything collapses patterns that stand for all that is below a folder.
var everything = regexp.MustCompile(`/\*+\.?\*?(?:/[*?]+)*$`)

// irreplaceable reports whether a place is one that a machine, a person or others
// cannot lose as a whole.
func irreplaceable(place string) bool {
	p := everything.ReplaceAllString(file.Slashed(place), "/*")
	if strings.ContainsRune(p, '?') || p == "" {
		return false
	}
	return file.IsVital(file.Clean(p)) || strings.HasSuffix(p, "/*") && sharedData.MatchString(p) && !passing.MatchString(p)
}

var (
	// sharedData is where others keep theirs: what is served, mounted or backed up.
	sharedData = regex.New(`^(?:/(?:mnt|media|srv|net|nfs|nas|Volumes|shares?|data|backups?|var/www|var/backups)/[^/*]+(?:/[^/*]+){0,2}|(?:/home/[^/*]+|/Users/[^/*]+|~)/(?:Documents|Pictures|Photos|Music|Movies|Videos|Desktop|Finance|Projects|Dropbox|OneDrive|Google Drive|Library|Mail|Backups?))/\*$`)
	// passing is what such a folder is called when it may go.
	passing = regex.New(`(?i)tmp|temp|cache|build|dist|out\b|test|scratch|trash|old|staging|session|thumb|preview|log|download|artifact|release`)
)

// What takes away the file or the folder that its first argument names: by its name alone,
// and as a member of what handles files. The last take away what they are called on.
var (
	removers       = words("rm rmtree rmSync rmdirSync unlinkSync removeSync emptyDirSync emptyDir RemoveAll rm_rf rm_r remove_tree remove_dir_all remove_entry_secure rimraf unlink rmdir removedirs send2trash deleteDirectory deleteRecursively dir_delete del_dir_r delete_directory delete_directory_tree delete_tree")
	fileRemovers   = words("remove remove_file removeFile Remove rm delete deleteIfExists removeSync")
	fileHandlers   = words("os fs fsp fse promises Deno lfs sftp File Files FileUtils Dir")
	removalMethods = words("unlink rmdir rmtree remove delete deleteRecursively remove_p rmtree_p deleteDir")
)

// removals judges what a followed program takes away.
func (r *reading) removals(text string, calls []code.Call) {
	for _, c := range calls {
		on := strings.TrimRight(c.On, ".:->")
		args := code.Arguments(text, c.Open)
		switch {
		case len(args) > 0 && (removers[c.Name] || removers[on] && c.Name == "files" || fileRemovers[c.Name] && fileHandlers[on]) && r.spend(costJudge*len(args[0])):
			r.takesAway(text[:c.Start], args[0])
		case c.Name == "map" && len(args) > 1 && mapped.MatchString(args[0]):
			r.takesAway(text[:c.Start], args[1])
		}
		if c.On == "" || !removalMethods[c.Name] || len(args) > 0 && !strings.HasPrefix(args[0], "missing_ok") && !strings.HasPrefix(strings.TrimSpace(args[0]), "recursive") {
			continue
		}
		receiver := code.Receiver(text, c.Start)
		if r.spend(costJudge * len(receiver)) {
			r.takesAway(text[:c.Start], receiver)
		}
	}
}

// mapped finds a removal that is handed to what calls it for each.
var mapped = regexp.MustCompile(`^\s*(?:shutil\.rmtree|os\.(?:remove|unlink|rmdir))\s*$`)

// maxRemoved bounds the elements of one list that are looked at.
const maxRemoved = 24

// takesAway judges one thing that is taken away; before is the program in front of it.
func (r *reading) takesAway(before, e string) {
	e = strings.TrimSpace(e)
	if all := code.Elements(e); len(all) > 1 {
		for _, one := range all[:min(len(all), maxRemoved)] {
			if !strings.HasPrefix(strings.TrimSpace(one), "[") {
				r.takesAway(before, one)
			}
		}
		return
	}
	if place, known := code.Place(e); known && irreplaceable(place) && !picksSome(before) {
		r.breaks(DestructiveCommand)
	}
}

// picksSome reports whether the condition in front of a removal picks some of the files: by
// their names or their age, and not all but some.
func picksSome(before string) bool {
	before = before[max(0, len(before)-300):]
	at := someFiles.FindAllStringIndex(before, -1)
	return len(at) > 0 && !slices.ContainsFunc(at, func(m []int) bool { return excepts.MatchString(before[max(0, m[0]-60):m[0]]) })
}

var (
	someFiles = regexp.MustCompile(`endswith|startswith|endsWith|startsWith|\.suffix\b|mtime|\bfnmatch|\.match\(|extname|\.test\(|\.includes\(|getExtension|end_with|start_with|HasSuffix|HasPrefix|pathinfo|\bexists\b.{0,40}\.(?:tmp|bak)`)
	excepts   = regexp.MustCompile(`(?:\bnot\b|!|unless)[^\n;]*$`)
)
