package toolcall

import (
	"strings"
	"unicode"
)

// role says which reader fits an argument.
type role int

const (
	roleUnknown     role = iota // every reader that its content suggests
	roleShell                   // a command line
	roleCode                    // a program in another language
	roleQuery                   // SQL
	rolePath                    // a file name
	roleURL                     // an address to request
	roleDestination             // a person, account or mailbox
	roleProse                   // text that nobody executes
	rolePatch                   // changes of files
)

// keyRoles is written with folded names.
var keyRoles = roleTable(map[role]string{
	roleShell:       "command cmd commands commandline script shell bash sh exec execute run argv entrypoint cmdline shellcommand",
	roleCode:        "code source program python javascript snippet cell eval",
	roleQuery:       "sql query statement stmt statements sqlquery rawsql",
	rolePath:        "path file filename filepath filepaths paths files dir directory folder root cwd workdir dest destpath destination sourcepath target targetfile outputpath inputpath location absolutepath relativepath notebookpath",
	roleURL:         "url uri link href endpoint host hostname address baseurl callback callbackurl webhook webhookurl imageurl sourceurl ip server proxy origin redirecturl urls",
	roleDestination: "to cc bcc recipient recipients payee iban account accountnumber toaccount beneficiary wallet email emailaddress phone phonenumber toaddress channel attendees",
	roleProse:       "content contents text body message description note notes filetext newstr oldstr newstring oldstring summary title comment prompt question q search term keywords subject explanation reason thought thoughts instructions commitmessage markdown html data payload task goal answer feedback pattern newcontent",
})

func roleTable(words map[role]string) map[string]role {
	out := make(map[string]role)
	for r, list := range words {
		for _, key := range strings.Fields(list) {
			out[key] = r
		}
	}
	return out
}

func roleOfKey(key string) role { return keyRoles[key] }

// tool is what the name of a tool tells of its arguments.
type tool struct {
	words   map[string]bool
	shell   bool            // runs commands
	windows bool            // those of Windows
	code    bool            // runs programs
	sql     bool            // runs queries
	search  bool            // its query is a question
	writes  bool            // puts files, reads none
	removes bool            // takes files away
	sends   bool            // its arguments leave for somewhere else
	commits bool            // cannot be undone: money, mail, publication
	roles   map[string]role // of the arguments asked for so far
}

func readTool(name string) tool {
	t := tool{words: toolWords(name), roles: make(map[string]role)}
	t.sql = t.any("sql", "database", "db", "postgres", "postgresql", "mysql", "sqlite", "bigquery", "snowflake", "redshift", "clickhouse", "duckdb", "warehouse", "mariadb", "oracle", "psql", "mssql", "cockroach", "trino", "athena", "dbt", "sqlplus", "sqlcmd", "sqlcl", "plsql", "tsql", "teradata", "vertica", "synapse")
	t.search = t.any("search", "google", "lookup", "retrieve", "ask", "docs", "web") && !t.sql
	t.shell = t.any("bash", "shell", "sh", "zsh", "terminal", "cmd", "powershell", "console", "command", "exec") && !t.sql
	t.windows = t.any("powershell", "pwsh", "cmd")
	t.code = t.any("python", "javascript", "node", "code", "interpreter", "notebook", "ipython", "jupyter", "colab", "cell", "repl", "eval", "deno", "bun", "php", "ruby", "perl", "lua", "golang", "js", "py", "irb", "sandbox")
	t.writes = t.any("write", "create", "save", "edit", "replace", "append", "patch", "insert", "overwrite")
	t.removes = t.any("delete", "remove", "rm", "move", "rename", "truncate")
	t.sends = t.any("send", "post", "upload", "mail", "email", "http", "request", "webhook", "slack", "tweet", "publish", "share", "message", "notify", "fetch", "curl", "put", "gist", "paste", "pastebin", "issue", "comment", "pr", "review", "wiki", "ticket", "reply", "forward", "sms", "discord", "telegram", "teams", "submit")
	t.commits = t.any("send", "pay", "transfer", "wire", "reply", "forward", "invite", "purchase", "buy", "refund", "payout", "publish", "share", "tweet", "donate", "withdraw", "remit", "upload") ||
		t.any("payment", "mail", "email", "order", "post", "message", "sms") && !t.any("read", "get", "list", "lookup", "search", "find", "fetch", "check", "view", "download", "count", "parse")
	return t
}

// requests reports whether the tool asks for an address.
func (t tool) requests() bool {
	return t.any("fetch", "http", "request", "get", "browser", "browse", "navigate", "visit", "open", "goto", "url", "web", "download", "render", "image", "curl", "scrape", "crawl")
}

// console reports whether the tool reads lines of a program, as it does commands.
func (t tool) console() bool {
	return t.any("rails", "tinker", "irb", "mongosh", "gremlin", "groovy", "jshell")
}

// files reports whether the tool handles files, so that an address of a file is a
// path to it.
func (t tool) files() bool {
	return t.any("file", "files", "fs", "filesystem", "document", "resource", "readfile", "open")
}

func (t tool) any(words ...string) bool {
	for _, w := range words {
		if t.words[w] {
			return true
		}
	}
	return false
}

// toolWords splits send_email, sendEmail and mail.send alike.
func toolWords(name string) map[string]bool {
	words := make(map[string]bool)
	start, previous := 0, rune(0)
	add := func(end int) {
		if end > start {
			words[strings.ToLower(name[start:end])] = true
		}
	}
	for i, c := range name {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			add(i)
			start = i + len(string(c))
		case unicode.IsUpper(c) && unicode.IsLower(previous):
			add(i)
			start = i
		}
		previous = c
	}
	if start < len(name) {
		add(len(name))
	}
	return words
}

// roleOf says how an argument of the tool is read. What the tool does weighs
// more than what it calls its argument.
func (t tool) roleOf(key string) role {
	known, is := t.roles[key]
	if !is {
		known = t.findRole(key)
		t.roles[key] = known
	}
	return known
}

func (t tool) findRole(key string) role {
	byKey := roleOfKey(key)
	switch {
	case (key == "patch" || key == "diff" || key == "input") && t.any("patch", "diff"):
		return rolePatch
	case key == "description" || key == "explanation" || key == "reason" || key == "title":
		return roleProse
	case (key == "input" || key == "script") && t.console():
		return roleCode
	case key == "source" && (t.code || t.any("go", "java", "rust", "kotlin", "scala", "csharp", "dotnet", "groovy", "compile")):
		return roleCode
	case t.shell && (byKey == roleProse || byKey == roleUnknown || key == "input"):
		return roleShell
	case t.code && (key == "input" || key == "script" || byKey == roleProse && !t.writes && !t.search):
		return roleCode
	case t.sql && (key == "input" || key == "text" || key == "command" || key == "script"):
		return roleQuery
	case key == "query" && t.search:
		return roleProse
	case key == "address" && t.commits && !t.words["http"]:
		return roleDestination
	case (key == "to" || key == "from" || key == "src" || key == "dst" || key == "output" || key == "old" || key == "new" || key == "name" || key == "oldpath" || key == "newpath") && t.any("file", "files", "folder", "directory", "dir", "fs", "copy", "move", "rename", "symlink", "link", "path") && !t.commits:
		return rolePath
	case key == "source" && !t.code:
		return rolePath
	}
	return byKey
}
