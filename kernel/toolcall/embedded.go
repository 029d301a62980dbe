package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/code"
	"github.com/caddy-lex/lex/kernel/regex"
)

// embeddedRules are texts that another program runs or obeys: an office, a browser, a parser,
// a loader of models. A sign finds the few texts that a judge has to read.
var embeddedRules = []struct {
	sign  *regex.Expression
	judge func(r *reading, text string)
	short bool // it is a program, which is followed no further than others
}{
	{regex.New(`(?i)\bCreateObject\s*\(|\bShell\s*[("]|\bShellExecute|URLDownloadToFile|\bKill\s+[^\n]{0,200}\*|\.DeleteF(?:older|ile)\b|\bRegisterXLL\b|XMLHTTP|winmgmts`), (*reading).macro, false},
	{regex.New(`(?i)(?:cmd|powershell|pwsh|mshta|msexcel|rundll32|regsvr32|wscript|cscript|certutil|bitsadmin)(?:\.exe)?'?\s*\||\bDDE(?:AUTO)?\b|=\s*(?:CALL|EXEC|REGISTER|WEBSERVICE|IMPORT(?:XML|DATA|HTML|FEED)|IMAGE|HYPERLINK)\s*\(|\bWeb\.Contents\s*\(`), (*reading).formula, false},
	{regex.New(`(?i)<!ENTITY\s|<xi:include\s|attachedTemplate|document\(\s*['"]file:`), (*reading).externalEntity, false},
	{regex.New(`(?i)microsoft[\\/ ]{0,2}(?:word[\\/ ]{0,2}startup|excel[\\/ ]{0,2}xlstart|addins|templates|outlook)|\bxlstart\b|normal\.dotm|personal\.xlsb|vbaproject\.otm|libreoffice/\S{0,40}(?:basic|scripts)`), (*reading).officeStart, false},
	{regex.New(`(?i)read_pickle|pickle\.load|joblib\.load|torch\.load|dill\.load|cloudpickle\.load|allow_pickle|unsafe_load|load_model|readRDS|\bsource\s*\(\s*(?:url\()?['"]https?:|\bsource_url\s*\(|yaml\.load|skops|\.load_module\(|\bsource\s*\(\s*url`), (*reading).loadedModel, true},
	{regex.New(`(?i)\b(?:plugin|theme|extension|module|addon|add-on|labextension)s?[ :_-]+(?:install|add|update|load)|install[-_ ]?(?:plugin|extension|module|theme|addon|add-on)|\bpluginUrl\b`), (*reading).pluginCommand, false},
	{regex.New(`(?i)(?:chrome|edge|brave|opera|vivaldi|chromium)://(?:password|settings/(?:password|autofill|payment)|wallet)|about:(?:logins|preferences#privacy-logins)|(?:passwords\.google\.com|account\.microsoft\.com/\S*passwords)`), (*reading).passwordPage, false},
	{regex.New(`document\.cookie|(?:local|session)Storage|\bindexedDB\b|type=\\?["']?password|addEventListener\(\s*['"]key`), (*reading).pageSecrets, true},
	{regex.New(`(?i)readdir|listdir|scandir|os\.walk|\.i?glob\(|rglob|iterdir|Dir\.glob|Dir\[|read_sql|fetchall\(|getDataRange|getValues\(|findMany|fetch_all|createReadStream|openByName`), (*reading).postedRecords, true},
	{regex.New(`(?i)\bxxd\b|\bbase(?:32|64)\b|\bod\s+-|hexdump|\.hex\(\)|hexlify|b(?:16|32|64)encode|toString\(['"](?:hex|base64)|ToBase64String|BitConverter|bin2hex|unpack\(?['"]H`), (*reading).nameTunnel, true},
	{regex.New(`\bgit\b[^\n]*\bpush\b`), (*reading).pushedData, true},
	{regex.New(`@"?\$\{?\w|@\{\}|(?:-T|--upload-file)\s+"?(?:\$|\{\})`), (*reading).uploadLoop, true},
	{regex.New(`\bDELETE\b`), (*reading).deletingLoop, true},
	{regex.New(`(?i)<script\b|\son(?:error|load|click|mouseover|focus|submit)\s*=`), (*reading).soldPage, true},
	{regex.New(`(?i)emptyRecycleBin|\bdelete\s*\(?\s*\[\s*SELECT`), (*reading).wipesOrg, false},
}

var embeddedScreen = func() *regex.Screen {
	var signs []*regex.Expression
	for _, rule := range embeddedRules {
		signs = append(signs, rule.sign)
	}
	return regex.NewScreen(signs...)
}()

// embedded judges a text by what the programs will do that read it.
func (r *reading) embedded(text string) {
	if !r.spend(costScreen * len(text)) {
		return
	}
	found := embeddedScreen.Matching(text, false)
	for i, rule := range embeddedRules {
		if found&(1<<i) != 0 && (!rule.short || len(text) <= code.MaxProgram) && r.spend(costSearch*len(text)) {
			rule.judge(r, text)
		}
	}
}

// obeyed judges the texts of a call that other programs will obey.
func (r *reading) obeyed(leaves []leaf) {
	written := r.writtenName(leaves)
	for _, l := range leaves {
		if l.text && !r.onlySays(l, written) {
			r.embedded(l.value)
		}
	}
}

// onlySays reports whether a text is one that people read: a message, a comment, a page of
// documentation, or a program, which has readers of its own and may test for all of this. Of
// the files that a call writes only those count that an office or a parser opens.
func (r *reading) onlySays(l leaf, written string) bool {
	switch {
	case len(l.value) < 8:
		return true
	case written != "" && (newText[l.key] || roleOfKey(l.key) == roleProse):
		return !officeFile.MatchString(written) || strings.IndexByte(l.value, '|') < 0 && strings.IndexByte(l.value, '(') < 0 && !strings.Contains(l.value, "<!") && !strings.Contains(l.value, ":include") && !strings.Contains(l.value, "emplate")
	case roleOfKey(l.key) == roleProse:
		return r.tool.writes || r.tool.any("message", "mail", "email", "comment", "issue", "chat", "slack", "review", "wiki", "ticket", "reply", "note", "search")
	}
	return false
}

// officeFile is what an office, a sheet or a parser of XML opens.
var officeFile = regex.New(`(?i)\.(?:csv|tsv|tab|slk|iqy|dif|prn|xls[xmb]?|ods|fods|xml|xsd|xslt?|svg|xhtml|dtd|rels|docx?|docm|dot[mx]?|rtf|odt|fodt|bas|cls|frm|vb[as]?|xba|xlam?|edi)$`)
