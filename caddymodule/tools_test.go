package caddymodule_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// Two sites over one store: one under the app's rules, the other under a policy that
// replaces some of them.
const (
	toolOptions = `lex {
		store bolt ${store}
		limits {
			anonymous 1000/1m
		}
		tools {
			unknown block
			allow get_* send_mail pay
			deny *_all
			sends send_*
			high_risk pay
			rule no_large_payments ` + "`tool == \"pay\" && args.amount > 1000`" + `
			rule only_to_us ` + "`effect == \"send\" && tool != \"pay\" && !args.to.matches(\"(?i)@example\\\\.com$\")`" + `
		}
		policy open {
			tools {
				unknown allow
				rule own_site ` + "`key == \"\" && session.startsWith(\"s\") && dialect == \"lex\" && tool == \"forbidden\"`" + `
			}
		}
	}`
	toolSite = `@open header X-App open
		handle @open {
			lex {
				policy open
			}
			respond ok
		}
		handle {
			lex
			respond ok
		}`
)

func TestToolRulesHold(t *testing.T) {
	p := runCaddy(t, toolOptions, toolSite)
	for name, c := range map[string]struct {
		tool, arguments     string
		app, policy         string // the invariants
		appRule, policyRule string
		effect              string // of the operator's word, or empty
		severe              bool   // by the operator's word
	}{
		"known":               {"get_weather", `{}`, "", "", "", "", "", false},
		"unknown":             {"list", `{}`, "unknown_tool", "", "", "", "", false},
		"denied":              {"GET_all", `{}`, "operator_rule", "operator_rule", "*_all", "*_all", "", false},
		"small payment":       {"pay", `{"amount":1000.0}`, "", "", "", "", "", true},
		"large payment":       {"pay", `{"amount":1e4}`, "operator_rule", "", "no_large_payments", "", "", true},
		"payment of a text":   {"pay", `{"amount":"10"}`, "operator_rule", "", "no_large_payments", "", "", true},
		"mail to us":          {"send_mail", `{"to":"Bob@Example.com"}`, "", "", "", "", "send", false},
		"mail to others":      {"send_mail", `{"to":"bob@example.org"}`, "operator_rule", "", "only_to_us", "", "send", false},
		"mail to nobody":      {"send_mail", `{}`, "operator_rule", "", "only_to_us", "", "send", false},
		"the policy's own":    {"forbidden", `{}`, "unknown_tool", "operator_rule", "", "own_site", "", false},
		"hard and denied":     {"run_all", `{"command":"rm -rf /"}`, "destructive_command", "destructive_command", "*_all", "*_all", "", false},
		"hard and not denied": {"get_it", `{"command":"rm -rf /"}`, "destructive_command", "destructive_command", "", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			p.t = t
			session := "s" + strings.ReplaceAll(name, " ", "_") // decisions move the state of their session
			body := `{"session_id":"` + session + `","tool":{"name":"` + c.tool + `","arguments":` + c.arguments + `}}`
			for _, site := range []struct {
				header          []string
				invariant, rule string
			}{{nil, c.app, c.appRule}, {[]string{"X-App", "open"}, c.policy, c.policyRule}} {
				status, a := p.ask("/lex/tools/check", body, site.header...)
				if status != http.StatusOK || text(a["invariant"]) != site.invariant || text(a["rule"]) != site.rule || (a["decision"] == "blocked") != (site.invariant != "") ||
					c.effect != "" && a["effect"] != c.effect || a["flagged"] != nil || a["provenance"] != nil || !strings.HasPrefix(text(a["reason"]), site.invariant) {
					t.Fatalf("%v: %d %v", site, status, a)
				}
				r := p.receipt(a["receipt_id"])
				if r["invariant"] != site.invariant || text(r["rule"]) != site.rule || r["effect"] != a["effect"] || c.severe && r["high_risk"] != true {
					t.Errorf("%v: the receipt has %v, %v, %v, %v", site, r["invariant"], r["rule"], r["effect"], r["high_risk"])
				}
			}
		})
	}
}

// text is a JSON text, or "" for null and for what is absent.
func text(v any) string {
	s, _ := v.(string)
	return s
}

func (p *proxy) receipt(id any) (r map[string]any) {
	p.t.Helper()
	resp, err := http.Get(p.url + "/audits/" + id.(string))
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
		p.t.Fatal(err)
	}
	return r
}

// In the mode observe nothing is blocked, and the receipt says what would be, by which
// rule.
func TestToolRulesObserve(t *testing.T) {
	p := runCaddy(t, "lex {\nstore bolt ${store}\ntools {\ndeny *\n}\n}", "lex {\nmode observe\n}")
	_, a := p.ask("/lex/tools/check", harmlessCall)
	if a["decision"] != "approved" || a["invariant"] != nil || a["rule"] != nil || a["reason"] != nil {
		t.Errorf("%v", a)
	}
	if r := p.receipt(a["receipt_id"]); r["would_refuse"] != true || r["rule"] != "*" || r["invariant"] != "operator_rule" {
		t.Errorf("%v", r)
	}
}

// What a Caddyfile refuses, JSON does not slip past.
func TestToolRulesInJSONAreChecked(t *testing.T) {
	for config, want := range map[string]string{
		`{"tools":{"unknown":"refuse"}}`:                     `tools unknown "refuse": give one of allow, block`,
		`{"tools":{"untrusted":"pass"}}`:                     `tools untrusted "pass": give one of flag, block`,
		`{"tools":{"invalid":"pass"}}`:                       `tools invalid "pass": give one of flag, block`,
		`{"tools":{"allow":["a"]}}`:                          "tools: allow does nothing without unknown block",
		`{"tools":{"deny":["a["]}}`:                          `tools: deny: "a[" is not a glob`,
		`{"tools":{"rules":[{"name":"a","condition":"1"}]}}`: "tools: rule a: it has the type int",
		`{"tools":{"unknown":"block"},"policies":{"p":{"tools":{"rules":[{"name":"a"}]}}}}`:      "policy p: tools: rule a: ERROR",
		`{"policies":{"p":{"tools":{"allow":["a"]}}}}`:                                           "policy p: tools: allow does nothing",
		`{"tools":{"unknown":"block","allow":["a"]},"policies":{"p":{"tools":{"deny":["]["]}}}}`: `policy p: tools: deny: "]["`,
	} {
		if err := provisionApp(t, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", config, err, want)
		}
	}
	for _, config := range []string{
		`{"tools":{"unknown":"block","allow":["a"]},"policies":{"p":{"tools":{"unknown":"allow"}}}}`,
		`{"tools":{"unknown":"block"},"policies":{"p":{"tools":{"allow":["a"]}}}}`,
	} {
		if err := provisionApp(t, config); err != nil {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// provisionApp provisions the app and starts nothing.
func provisionApp(t *testing.T, config string) error {
	t.Helper()
	ctx, err := caddy.ProvisionContext(&caddy.Config{Admin: &caddy.AdminConfig{Disabled: true}, AppsRaw: caddy.ModuleMap{"lex": []byte(config)}})
	if err != nil {
		return err
	}
	_, err = ctx.App("lex")
	return err
}
