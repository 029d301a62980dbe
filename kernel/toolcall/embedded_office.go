package toolcall

import (
	"strings"

	"github.com/caddy-lex/lex/kernel/code"
	"github.com/caddy-lex/lex/kernel/regex"
)

// Office programs run what their documents hold: macros, formulas that start programs or send
// cells away, templates from elsewhere. What formats, sums up and looks up is their purpose.

var (
	macroText  = regex.New(`(?im)\b(?:end\s+(?:sub|function)|sub\s+\w+|attribute\s+vb_|option\s+explicit)\b|^\s*(?:dim|set)\s+\w+`)
	macroAuto  = regex.New(`(?i)\b(?:auto_?(?:open|exec|close|new|exit)|(?:workbook|document|presentation|application|worksheet)_(?:open|beforeclose|close|activate|startup|new|newmail\w*|itemsend|beforesave|afterSave|quit|change))\b`)
	macroRuns  = regex.New(`(?i)createobject\s*\([^\n]*\)\s*\.\s*(?:run|exec|shellexecute)\b|(?:^|[^.\w])shell\s*\(|(?:^|[^.\w])shell\s+["\w]|\bshellexecute\w*\b|\bregisterxll\s+"?(?:https?:|\\\\)`)
	macroShell = regex.New(`(?i)wscript|shell\.application|winmgmts|createobject\s*\(\s*(?:[^"\s)]|"[^"\n]*"\s*&)`)
	macroCalls = regex.New(`(?i)\b(?:run|exec|shellexecute|create)\s*\(?\s*["\w]`)

	macroFetches = regex.New(`(?i)https?://|\\\\\d|\s-enc|-w(?:indowstyle)?\s+hidden|downloadstring|downloadfile|urldownloadtofile|\biwr\b|\birm\b|\biex\b|certutil|bitsadmin`)
	macroLoses   = regex.New(`(?i)\s-delete\b|\brm\s+-\w*[rf]|\bdel\s+/[sqf]|\b(?:rd|rmdir)\s+/s|remove-item|\bformat\s+[a-z]:|vssadmin|cipher\s+/w`)
	macroKills   = regex.New(`(?im)\bkill\s+[^\n]*\*|\.delete(?:folder|file)\s*\(?\s*"(?:\\\\|[a-z]:\\)[^"\n]*\*`)
	macroTemp    = regex.New(`(?i)te?mp\b|cache|environ\(\s*"te?mp`)
	macroPosts   = regex.New(`(?i)xmlhttp|winhttp`)
	macroWhole   = regex.New(`(?i)usedrange|activedocument\.(?:range|content)|activeworkbook\.fullname|currentregion|attachments\.add|\.saveto|adodb\.stream`)
	officePost   = regex.New(`(?i)"(?:post|put)"`)
)

// macro judges a macro of an office: what starts a program when a document opens, fetches one,
// or deletes files.
func (r *reading) macro(text string) {
	if !macroText.MatchString(text) {
		return
	}
	auto := macroAuto.MatchString(text)
	runs := macroRuns.MatchString(text) || macroShell.MatchString(text) && macroCalls.MatchString(text)
	switch {
	case runs && macroLoses.MatchString(text), macroKills.MatchString(text) && !macroTemp.MatchString(text):
		r.breaks(DestructiveCommand)
	case runs && (auto || macroFetches.MatchString(text)):
		r.breaks(RemoteCodeExecution)
	case macroPosts.MatchString(text) && auto && officePost.MatchString(text) && macroWhole.MatchString(text):
		r.breaks(DataExfiltration)
	case macroPosts.MatchString(text) && auto && strings.Contains(strings.ToLower(text), "adodb.stream"):
		r.breaks(RemoteCodeExecution)
	}
}

var (
	// startsInOffice is a formula, or a field of a text, that hands a command to another program.
	startsInOffice = regex.New(`(?im)(?:^|[;,\t|"'])\s*["']?E?[=+@-][^\n;]{0,40}?'?(?:[a-z]:[^|\n]{1,100})?(?:cmd|powershell|pwsh|mshta|msexcel|rundll32|regsvr32|wscript|cscript|certutil|bitsadmin|bash|sh)(?:\.exe)?'?\s*\|\s*'|\bDDEAUTO\s+\S|[{=]\s*DDE\s*\(?\s*\\?["']?(?:[a-z]:\\|cmd|powershell|soffice|mshta)|(?:^|[;,\t"])\s*["']?=\s*(?:CALL|REGISTER)\s*\(\s*"+(?:urlmon|kernel32|shell32)|(?:^|[;,\t"])\s*["']?=\s*EXEC\s*\(\s*"`)

	// formulaCall asks for an address whenever a sheet is computed, or is clicked.
	formulaCall = regex.New(`(?i)\b(?:WEBSERVICE|IMPORT(?:XML|DATA|HTML|FEED)|IMAGE|HYPERLINK)\s*\(`)
	formulaText = regex.New(`"[^"]*"|'[^']*'!`)
	manyCells   = regex.New(`(?i)\$?[A-Z]{1,3}\$?\d*:\$?[A-Z]{1,3}\$?\d*|\b(?:TEXTJOIN|JOIN|ARRAYTOTEXT|QUERY|TEXTKETTE|TEXTVERKETTEN)\s*\(`)
	oneCell     = regex.New(`(?:^|[^A-Za-z0-9_$])\$?[A-Z]{1,3}\$?\d{1,7}(?:[^A-Za-z0-9_(]|$)`)
	bareAddress = regex.New(`(?i)https?://(?:\d{1,3}\.){3}\d{1,3}|https?://0x`)

	queryPosts = regex.New(`(?is)\bWeb\.Contents\s*\(\s*"(https?://[^"]+)".{0,400}\bContent\s*=`)
)

// formula judges the formulas of a sheet.
func (r *reading) formula(text string) {
	if startsInOffice.MatchString(text) {
		r.breaks(RemoteCodeExecution)
	}
	for _, m := range queryPosts.FindAllStringSubmatch(text, maxMatches) {
		if r.elsewhere(m[1]) {
			r.breaks(DataExfiltration)
		}
	}
	if !formulaCall.MatchString(text) {
		return
	}
	for _, at := range formulaCall.Regexp().FindAllStringIndex(text, maxCalls) {
		args := code.Arguments(strings.ReplaceAll(text[at[1]-1:min(len(text), at[1]+2*code.MaxValue)], `""`, `"`), 0)
		if len(args) == 0 {
			continue
		}
		first := strings.Join(args, ",")
		if strings.Contains(strings.ToUpper(text[at[0]:at[1]]), "HYPERLINK") || !strings.Contains(args[0], "(") {
			first = args[0]
		}
		cells := formulaText.ReplaceAllString(first, " ")
		carries := manyCells.MatchString(cells) || len(oneCell.FindAllString(cells, 4)) > 2 || bareAddress.MatchString(first) && oneCell.MatchString(cells)
		for _, address := range addressesOf(first) {
			if carries && r.elsewhere(address) {
				r.breaks(DataExfiltration)
			}
		}
	}
}

var (
	xmlEntity    = regex.New(`(?i)<!ENTITY\s+(?:%\s*)?[\w.:-]+\s+(?:SYSTEM|PUBLIC\s*(?:"[^"]*"|'[^']*'))\s*\\?["']([^"'\\>]{1,300})`)
	xmlInclude   = regex.New(`(?i)<xi:include\s[^>]{0,200}href\s*=\s*\\?["']([^"'\\>]{1,300})`)
	fromDocument = regex.New(`(?i)\bdocument\(\s*['"](file:[^'"]{1,300})`)
	remoteModel  = regex.New(`(?i)attachedTemplate[^>]{0,300}Target\s*=\s*\\?["']((?:https?:|file:|\\\\|//)[^"'>]{1,300})|Target\s*=\s*\\?["'](https?:[^"'>]{1,300})[^>]{0,300}attachedTemplate`)
	publicTypes  = regex.New(`(?i)^https?://(?:www\.)?(?:w3\.org|oasis-open\.org|docbook\.org|xml\.org|sun\.com|java\.sun\.com|hibernate\.(?:org|sourceforge\.net)|mybatis\.org|springframework\.org|omg\.org)/|^https?://(?:\w+\.)+(?:w3|oasis-open|docbook)\.org/`)
)

// externalEntity judges a document that makes its parser read a file of the machine, or ask
// for an address.
func (r *reading) externalEntity(text string) {
	for _, e := range []*regex.Expression{xmlEntity, xmlInclude, fromDocument} {
		for _, m := range e.FindAllStringSubmatch(text, maxMatches) {
			switch scheme, _, absolute := strings.Cut(m[1], ":"); {
			case publicTypes.MatchString(m[1]):
			case absolute && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "ftp")):
				if e != xmlInclude || r.elsewhere(m[1]) {
					r.breaks(ServerSideRequestForgery)
				}
			case absolute, strings.HasPrefix(m[1], "/"), strings.HasPrefix(m[1], `\\`), strings.HasPrefix(m[1], "../../"):
				r.breaks(PathTraversal)
			}
		}
	}
	if m := remoteModel.FindStringSubmatch(text); m != nil && r.elsewhere(m[1]+m[2]) {
		r.breaks(RemoteCodeExecution)
	}
}

var (
	// startPlace is where an office keeps what it loads whenever it starts.
	startPlace = regex.New(`(?i)(?:word[\\/ ]{0,2}startup|xlstart|microsoft[\\/ ]{0,2}addins)[\\/ ]{0,2}[^\s'",)]{1,80}\.(?:dotm|xla|xlam|xlsb|xlsm|wll|xll|ppam|dot)\b|microsoft[\\/ ]{0,2}templates[\\/ ]{0,2}normal\.dotm|xlstart[\\/ ]{0,2}personal\.xlsb|outlook[\\/ ]{0,2}vbaproject\.otm|libreoffice/\S{0,40}user/(?:basic|scripts)/\S+`)
	putsThere  = regex.New(`(?i)\b(?:copy\w*|cp|move|mv|xcopy|robocopy|copy-item|move-item|out-file|set-content|urlretrieve|writeallbytes|write_bytes|writeFile\w*|install|invoke-webrequest|iwr|curl|wget|rename|replace)\b|>`)
	onlyStart  = regex.New(`^[^\s]+$`)
)

// officeStart judges what is put where an office starts it by itself.
func (r *reading) officeStart(text string) {
	if !startPlace.MatchString(text) {
		return
	}
	if putsThere.MatchString(text) || r.tool.writes || onlyStart.MatchString(text) && r.tool.any("copy", "move", "upload", "download", "put", "install") {
		r.breaks(Persistence)
	}
}

var (
	unpickles = words("read_pickle load loads load_model readRDS source source_url unsafe_load load_learner from_pickle")
	unpickler = regex.New(`(?:pickle|joblib|torch|dill|cloudpickle|np|numpy|keras|models|mlflow\.\w+|tf\.keras\.models|xgb|pd|pandas|yaml|hickle|jsonpickle|skops\.io|sio)\.$`)
	asPlain   = regex.New(`weights_only\s*=\s*True|SafeLoader|safe_mode\s*=\s*True`)
	freeNames = words("read_pickle load_model readRDS source source_url unsafe_load load_learner")
)

// loadedModel judges a program that loads objects from an address: what is loaded may run
// whatever it likes.
func (r *reading) loadedModel(text string) {
	if !r.spend(costCode * len(text)) {
		return
	}
	plain := r.programs.Followed(text)
	for _, c := range code.Calls(plain) {
		if !unpickles[c.Name] || c.Name == "source" && c.On != "" || !freeNames[c.Name] && !unpickler.MatchString(c.On) {
			continue
		}
		args := strings.Join(code.Arguments(plain, c.Open), ",")
		if c.On == "np." && !strings.Contains(args, "allow_pickle") || c.On == "numpy." && !strings.Contains(args, "allow_pickle") || asPlain.MatchString(args) {
			continue
		}
		for _, address := range addressesOf(args) {
			if r.elsewhere(address) {
				r.breaks(RemoteCodeExecution)
			}
		}
	}
}

var (
	pluginNouns = words("plugin plugins extension extensions addon addons module modules theme themes labextension macro macros integration integrations skill skills")
	pluginVerbs = words("install add load import upload sideload enable activate register update")

	// officialSource is where the makers of programs give out what others wrote for them.
	officialSource = regex.New(`(?i)(?:^|\.)(?:wordpress\.org|github\.com|githubusercontent\.com|gitlab\.com|visualstudio\.com|vsassets\.io|open-vsx\.org|mozilla\.(?:org|net)|jenkins\.io|jenkins-ci\.org|grafana\.com|npmjs\.(?:com|org)|pypi\.org|pythonhosted\.org|drupal\.org|joomla\.org|moodle\.org|atlassian\.com|jetbrains\.com|qgis\.org|libreoffice\.org|google\.com|microsoft\.com|apache\.org|elastic\.co|typo3\.org|nextcloud\.com|obsidian\.md|qgis\.org|blender\.org|inkscape\.org|openoffice\.org|mattermost\.com|redmine\.org|odoo\.com|shopware\.com|prestashop\.com|woocommerce\.com)$`)
	pluginLine     = regex.New(`(?i)\b(?:(?:plugin|theme|extension|module|addon|add-on|labextension)s?[ :_-]+(?:install|add|update|load)|install[-_ ]?(?:plugin|extension|module|theme|addon|add-on)|pluginUrl)\b[^\n;|&]*?(https?://[^\s'";|&]+)`)
)

// pluginCommand judges a command that installs what an address holds into a program.
func (r *reading) pluginCommand(text string) {
	for _, m := range pluginLine.FindAllStringSubmatch(text, maxMatches) {
		r.pluginFrom(m[1])
	}
}

func (r *reading) pluginFrom(address string) {
	a, ok := r.readAddress(address)
	if ok && packageAddress.MatchString(address) && r.elsewhere(address) && (!officialSource.MatchString(a.Host) || strings.HasPrefix(strings.ToLower(address), "http:")) {
		r.breaks(RemoteCodeExecution)
	}
}

// plugsIn judges a tool that does the same.
func (d *dealing) plugsIn() {
	if !d.any(pluginNouns) || !d.any(pluginVerbs) || d.has["webhook"] {
		return
	}
	for _, l := range d.leaves {
		if l.text {
			d.pluginFrom(l.value)
		}
	}
}

var packageAddress = regex.New(`(?i)^https?://[^\s]+\.(?:zip|vsix|crx|xpi|jar|hpi|whl|tgz|tar\.gz|dotm|xlam|oxt|js|py|php|phar|exe|dll|rbz|nupkg)(?:[?#]\S*)?$|^http://\S+$`)
