package toolcall

import (
	"path"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/file"
	"github.com/caddy-lex/lex/kernel/regex"
)

// Who wants a thing to be gone says so and names it: "delete orders-clone-0612". What is lost then
// is the user's own decision, where it is one thing and no name of what others live on. Without
// the verb a name is only spoken of, and a text that was read decides nothing: the words count
// only where they are the user's. An environment, a cluster, an account or a project has more in
// it than its name says, so that a name alone never takes it down.

// toGo reports whether the user's own words name this thing and say that it is to go.
func (r *reading) toGo(name string) bool {
	name = strings.ToLower(strings.Trim(name, "`\"'[]{}/ "))
	if len(name) < minNamed || len(name) > maxNamed || commonName[name] || inUse.MatchString(name) || strings.ContainsAny(name, unknownText) {
		return false
	}
	if !r.asksForLoss() || !r.spend(costSearch*len(r.asks)) {
		return false
	}
	return namedAlone(strings.ToLower(r.asks), name)
}

const (
	minNamed = 4 // shorter names stand in sentences by chance
	maxNamed = 200
)

// asksForLoss reports whether the user says that something is to go.
func (r *reading) asksForLoss() bool {
	if !r.asked || len(r.asks) > maxNamingRequest {
		return false
	}
	if r.loss == nil {
		asks := r.spend(costScreen*len(r.asks)) && lossWords.MatchString(r.asks)
		r.loss = &asks
	}
	return *r.loss
}

// maxNamingRequest bounds a request that names what is to go: in a long one the name and the verb hardly
// belong together.
const maxNamingRequest = 4096

// lossWords are how people say that something is to go, in the languages of their requests.
var lossWords = regex.New(`(?i)\b(?:delet\w*|remov\w*|drop(?:ping|ped|pen)?|destroy\w*|wip(?:e|ing)|purg(?:e|ing)|nuke|truncat\w*|empty|flush|reset|recreate|tear (?:\w+ )?down|take (?:\w+ )?down|get rid|clear(?: out)?|clean(?: up)?|kill|decom\w*|retire|uninstall|deprovision|unload|overwrite|can go|may go|should go|has to go|throw \w+ (?:away|out)|` +
	`lösch\w*|entfern\w*|wegwerfen|kann weg|können weg|soll weg|muss weg|hau\w* weg|platt|leeren|leer\w*|zurücksetz\w*|abräum\w*|droppen|setz\w* .{0,40}zurück|aufräum\w*|kann raus|` +
	`verwijder\w*|weggooi\w*|mag weg|kan weg|leegmak\w*|opruim\w*|droppen|maak \w+ leeg|` +
	`supprim\w*|effac\w*|vide[rz]?|enlev\w*|détrui\w*|retire[rz]?|vire[rz]?|` +
	`borr\w*|elimin\w*|quita\w*|vacía\w*|vaciar|suprim\w*|` +
	`apag\w*|remov\w*|exclu\w*|elimin\w*|` +
	`cancell\w*|rimuov\w*|svuot\w*|` +
	`usu[nńw]\w*|skasuj\w*|wyczyść|wywal|` +
	`sil(?:in|elim|iver)?|kaldır\w*|temizle\w*|` +
	`slet\w*|fjern\w*|radera|ta bort|poista|smaž\w*|odstra\w*|töröl\w*|șterge|удал\w*|снес\w*)\b|削除|消し|破棄|삭제|删除|刪除|清空`)

// commonName are names that say nothing of which one is meant.
var commonName = words("database databases table tables index schema cluster instance instances server servers bucket buckets volume volumes users user orders order customers customer accounts account payments payment invoices products transactions employees patients messages events sessions projects project repos repo files file data logs items default public root admin system postgres mysql test tests main data1 everything cache node nodes space stack group team site app apps service services namespace production staging")

// namedAlone reports whether a name stands in a text as a word of its own.
func namedAlone(text, name string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		from, to := at+i, at+i+len(name)
		if (from == 0 || !partOfName(text[from-1])) && (to == len(text) || !partOfName(text[to]) || endsSentence(text[to:])) {
			return true
		}
		at = from + 1
	}
}

func partOfName(c byte) bool {
	return alphanumeric(c) || c == '_' || c == '$' || c == '-' || c == '.' || c == '/' || c == '@' || c >= 0x80
}

// endsSentence reports whether a text begins with the end of a sentence, or with a word that a
// language without spaces goes on with.
func endsSentence(rest string) bool {
	return rest[0] >= 0x80 || rest[0] == '.' && (len(rest) == 1 || rest[1] == ' ' || rest[1] == '\n')
}

// namesLoss reports whether all that a command takes away was named by the user as what is to go.
func (s *shell) namesLoss(argv []string) bool {
	if name := programName(argv[0]); len(argv) < 2 || !s.asksForLoss() || isShell(name) || isInterpreter(name) || takesDatabases[name] {
		return false
	}
	line := strings.ToLower(strings.Join(argv, " "))
	if !s.spend(costScreen*len(line)) || wideKind.MatchString(line) || everythingFlag.MatchString(line) || inUse.MatchString(line) {
		return false
	}
	named := distinct(argv)
	return len(named) > 0 && len(named) <= maxPlaces && !slices.ContainsFunc(named, func(n string) bool {
		if strings.Contains(n, "://") || strings.Contains(n, "/") {
			return !s.placeToGo(n)
		}
		return !s.toGo(n)
	})
}

// takesDatabases are the commands that take whole databases, or run what they are told.
var takesDatabases = words("dropdb mysqladmin mongosh mongo psql mysql mariadb sqlcmd redis-cli clickhouse-client cqlsh influx eval source find xargs ssh docker-compose terraform tofu terragrunt pulumi cdk ansible")

// placeToGo reports the same of a file, a folder or a prefix of a store of objects. A bucket as a
// whole, what a machine needs, and what stands for more than one place never are.
func (s *shell) placeToGo(place string) bool {
	if strings.ContainsAny(place, "*?[") {
		return false
	}
	if _, in, found := strings.Cut(place, "://"); found {
		bucket, key, _ := strings.Cut(in, "/")
		return key != "" && s.toGo(bucket)
	}
	p := s.resolve(place)
	if file.IsVital(p) || file.IsDevice(p) || file.InSystem(p) || strings.Count(p, "/") < 3 && strings.HasPrefix(p, "/") {
		return false
	}
	return s.toGo(p) || s.toGo(path.Base(p))
}

// sparing takes back what the judges of one command find destroyed.
func (r *reading) sparing() func() {
	losses := []Invariant{DestructiveCommand, DestructiveOperation, DestructiveQuery}
	before := make([]bool, len(losses))
	for i, v := range losses {
		before[i] = r.broken[v]
	}
	return func() {
		for i, v := range losses {
			if !before[i] {
				delete(r.broken, v)
			}
		}
	}
}

// asksWith reports whether the user's request has one of the words, and does not say what is to stay.
func (r *reading) asksWith(words *regex.Expression) bool {
	return r.asked && len(r.asks) <= maxNamingRequest && r.spend(2*costScreen*len(r.asks)) && words.MatchString(r.asks) && !negated.MatchString(r.asks)
}

var (
	restartWords   = regex.New(`(?i)\b(?:re-?boot\w*|boot(?:s|en|et|e)?)\b|\b(?:restart|neu ?start|redémarr|reinici|riavvi|zrestart|herstart)\w*.{0,25}\b(?:server\w*|servers?|machines?|host|box|vms?|pi|node|rechner|serveur|máquina|servidor|macchina|serwer)\b|再起動|重启`)
	deprecateWords = regex.New(`(?i)deprecat|veraltet|obsol|désuet|przestarza`)
	unlockWords    = regex.New(`(?i)\b(?:unlock\w*|entsperr\w*|releas\w* (?:the |that )?lock|lock .{0,60}(?:stale|weg|gone)|débloqu\w*|deverrouill\w*|desbloqu\w*|sblocc\w*|odblokuj\w*)\b`)
	publicWords    = regex.New(`(?i)\b(?:public\w*|öffentlich\w*|publi(?:e|er|car|ca|c)\b|pubblic\w*|publiczn\w*|open ?source\w*)`)
	wipeWords      = regex.New(`(?i)\b(?:wip(?:e|ing)|eras(?:e|ing)|format\w*|blank|empty|brand new|new (?:blank |empty )?(?:disk|drive|ssd|stick)|flash|burn|write|put|partition\w*|recycl\w*|lösch\w*|brenn\w*|leer\w*|egal|sauber|schreib\w*|efface\w*|grav\w*|borr\w*)\b|\bauf (?:die|den|das) (?:sd|usb|stick|karte)|\bmake it a\b`)

	// startsAgain are the commands after which a machine is there again.
	startsAgain = regex.New(`^(?:sudo )?(?:(?:reboot|grub-reboot)(?: |$)|systemctl (?:\S+ )*reboot\b|shutdown (?:-r|/r)\b)`)
)

// unlocks reports whether a command releases the lock of a state that the user says is stale.
func (s *shell) unlocks(argv []string) bool {
	return len(argv) > 1 && argv[1] == "force-unlock" && s.asksWith(unlockWords)
}

// deviceToGo reports whether the user names this disk, which is no first one of a machine, and says
// that its content may go.
func (s *shell) deviceToGo(device string) bool {
	name, found := strings.CutPrefix(device, "/dev/")
	if !found || !otherDisk.MatchString(name) || !s.asksWith(wipeWords) {
		return false
	}
	asks, disk := strings.ToLower(s.asks), diskOf(name)
	return namedAlone(asks, disk) || namedAlone(asks, "/dev/"+disk)
}

// negated is a request that says what is to stay.
var negated = regex.New(`(?i)\b(?:not|don'?t|never|except|keep|nicht|kein\w*|nie|außer|behalte\w*|ne .{1,20} pas|jamais|sauf|no|nunca|salvo|não|non|mai|nie|oprócz)\b`)

// otherDisk is a disk, or a partition of one, from which machines do not start.
var otherDisk = regex.New(`^(?:sd[b-z]\d*|nvme[1-9]n\d(?:p\d+)?|disk[2-9]|mmcblk[1-9])$`)

// diskOf is the disk that a partition is on.
func diskOf(name string) string {
	if strings.HasPrefix(name, "sd") {
		return strings.TrimRight(name, "0123456789")
	}
	name, _, _ = strings.Cut(name, "p")
	return name
}

// publishesNamed reports whether a repository becomes public that the user names, and wants to be.
func (s *shell) publishesNamed(argv []string) bool {
	if name := programName(argv[0]); name != "gh" && name != "glab" || len(argv) < 4 || argv[2] != "edit" {
		return false
	}
	repository := strings.ToLower(path.Base(argv[3]))
	return len(repository) >= minNamed && s.asksWith(publicWords) && namedAlone(strings.ToLower(s.asks), repository)
}

var (
	sharesLess = regex.New(`--operation-type[= ]remove\b|--launch-permission \W{0,2}Remove=`)
	sharesMore = regex.New(`--operation-type[= ]add\b|\bAdd"?[=:]|--values-to-add`)
)

// distinct are the words of a command that could be the name of one thing: behind its flags, or
// the values of those that name one.
func distinct(argv []string) []string {
	var out []string
	add := func(w string) {
		for part := range strings.SplitSeq(w, ",") {
			if len(part) >= minNamed && strings.ContainsAny(part, "0123456789-_./") {
				out = append(out, part)
			}
		}
	}
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		flag, value, joined := strings.Cut(w, "=")
		switch {
		case !strings.HasPrefix(w, "-"):
			add(w)
		case identifierFlag.MatchString(flag) && joined:
			add(value)
		case identifierFlag.MatchString(flag):
			add(wordAt(argv, i+1))
			i++
		case !joined && !switchFlag.MatchString(w):
			i++ // its value
		}
	}
	return out
}

// switchFlag are flags without a value.
var switchFlag = regex.New(`^(?:-[rRfyqvIi]+|--(?:force|yes|quiet|recursive|purge|now|wait|no-wait|assume-yes|auto-approve|non-interactive|delete|if-exists|ignore-not-found|volumes|skip-\S+|no-\S+|delete-\S+|confirm|verbose|dry-run|cleanup|remove-\S+|allow-\S+))$`)

// wideKind is what has more in it than its name says.
var wideKind = regex.New(`\b(?:organi[sz]ations?|projects?|accounts?|subscriptions?|resource-?groups?|group|namespaces?|ns|nodes?|clusters?|zones?|domains?|folders?|tenants?|vaults?|keys?|keyrings?|repos?(?:itory|itories)?|environments?|workspaces?|realms?|catalogs?|buckets?|rb|backups?|recovery\S*|snapshots?|users?|roles?|polic(?:y|ies)|networks?|vpcs?|pvc?s?|crds?)\s+(?:delete|destroy|remove|rm|purge|terminate|wipe)\b|\b(?:delete|destroy|remove|rm|purge|terminate|wipe)[- ](?:organi[sz]ations?|projects?|accounts?|subscriptions?|resource-?groups?|group|namespaces?|ns|nodes?|\w*clusters?|\w*zones?|domains?|folders?|tenants?|vaults?|keys?|repos?(?:itory)?|environments?|workspaces?|realms?|catalogs?|buckets?|\w*backups?|recovery\S*|users?|roles?|polic(?:y|ies)|networks?|vpcs?|pvc?s?|crds?)\b`)

// everythingFlag makes a command take more than it names.
var everythingFlag = regex.New(`(?:^| )(?:--all(?:-\w+)?|-A|--everything|--cascade|-r all)(?: |$)`)

// identifiers are the values of the flags that say which thing a command is about.
func identifiers(argv []string) []string {
	var out []string
	for i, w := range argv {
		flag, value, joined := strings.Cut(w, "=")
		if !identifierFlag.MatchString(flag) {
			continue
		}
		if !joined {
			value = wordAt(argv, i+1)
		}
		out = append(out, value)
	}
	return out
}

var identifierFlag = regex.New(`^--(?:[a-z]+-)*(?:identifiers?|ids?|names?|job|index|stream|topic|queue|function|connector)$`)
