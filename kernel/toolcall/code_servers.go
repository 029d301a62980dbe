package toolcall

import (
	"regexp"
	"strings"

	"github.com/caddy-lex/lex/kernel/code"
	"github.com/caddy-lex/lex/kernel/regex"
)

// asksServers judges the requests that a program makes to servers that manage something, as
// those of a tool: with the address and the members of the body that its text tells.
func (r *reading) asksServers(text string, calls []code.Call) {
	if !managing.Matches(text) {
		return
	}
	for _, c := range calls {
		method := requestMethods[c.Name]
		if method == "" && !requesters[c.Name] {
			continue
		}
		args := code.Arguments(text, c.Open)
		if len(args) == 0 || !r.spend(costJudge*len(strings.Join(args, ","))) {
			continue
		}
		if m := verbNamed.FindStringSubmatch(strings.Join(args, ",")); m != nil {
			method = strings.ToUpper(m[1] + m[2])
		}
		if c.Name == "request" && httpMethod.MatchString(strings.Trim(strings.TrimSpace(args[0]), `'"`)) {
			method = strings.ToUpper(strings.Trim(strings.TrimSpace(args[0]), `'"`))
			args = args[1:]
		}
		if method == "" || method == "GET" || len(args) == 0 {
			continue
		}
		address := addressIn(args[0])
		if address == "" {
			continue
		}
		q := request{method: method, address: address}
		for _, m := range bodyMember.FindAllStringSubmatch(strings.Join(args[1:], ","), maxRecipes) {
			q.body = append(q.body, leaf{key: fold(m[1]), value: strings.ToLower(strings.Trim(m[2], `'"`)), text: m[2][0] == '\'' || m[2][0] == '"'})
		}
		r.asksServer(q)
	}
}

// addressIn is the address that an expression begins with; what the text does not tell is one
// folder of it. Of a listing that another request makes, it is one of what is listed.
func addressIn(e string) string {
	e = strings.TrimSpace(e)
	at := httpLiteral.FindStringIndex(e)
	switch {
	case at == nil:
		return ""
	case at[0] > 0 && asksFirst.MatchString(e[:at[0]]):
		return strings.TrimSuffix(e[at[0]+1:at[1]-1], "/") + "/x"
	case at[0] > 0:
		return e[at[0]+1 : at[1]-1]
	}
	address := ""
	for _, part := range code.Operands(e) {
		if part = strings.TrimSpace(part); code.IsLiteral(part) {
			address += code.Bare(part)
		} else {
			address += "x"
		}
	}
	if strings.HasSuffix(address, "/") {
		address += "x"
	}
	return address
}

var (
	managing       = regex.NewScreen(regex.New(`(?i)['"]delete['"]|\.delete\(|\.put\(|\.patch\(|\.post\(|method['"]?\s*[:=]\s*['"](?:post|put|patch|delete)`))
	requestMethods = map[string]string{"delete": "DELETE", "put": "PUT", "patch": "PATCH", "post": "POST", "Delete": "DELETE", "Put": "PUT", "Patch": "PATCH", "Post": "POST", "PostAsync": "POST", "DeleteAsync": "DELETE", "PutAsync": "PUT"}
	requesters     = words("fetch request Request axios NewRequest ajax got ky urlopen")
	verbNamed      = regex.New(`(?i)\bmethod['"]?\s*[:=]\s*(?:'(post|put|patch|delete)'|"(post|put|patch|delete)")`)
	httpLiteral    = regexp.MustCompile(`'https?://[^'\s]{1,300}'|"https?://[^"\s]{1,300}"`)
	asksFirst      = regex.New(`\b(?:get|fetch|urlopen|request)\s*\($`)
	bodyMember     = regexp.MustCompile(`['"]?(\w{1,60})['"]?\s*[:=]\s*('[^']{0,200}'|"[^"]{0,200}"|(?i:true|false)|\d{1,9})`)
)
