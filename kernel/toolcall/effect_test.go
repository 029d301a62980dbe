package toolcall_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel"
	"github.com/caddy-lex/lex/kernel/prose"
	"github.com/caddy-lex/lex/kernel/toolcall"
)

func TestEffectOfNames(t *testing.T) {
	for want, names := range map[kernel.ToolEffect]string{
		kernel.ToolReads:  "read_file getWeather GetOrderHistory search_emails calendar.events.list mcp__github__list_issues weather query_database TwilioGetReceivedSmsMessages HTTPGet web_fetch",
		kernel.ToolWrites: "create_event delete_file updateUserProfile DeleteRepository calendar.events.insert get_or_create_user mcp__search__delete_index gmail_create_draft lock_door SlackLeaveChannel set_thermostat",
		kernel.ToolSends:  "send_email sendEmail email.send TransferFunds make_payment create_post post_message schedule_transaction share_file stripe.refunds.create HTTPPost BuyTickets",
		kernel.ToolOther:  "bash run_python think frobnicate download_and_run",
	} {
		for _, name := range strings.Fields(names) {
			if e, _ := toolcall.EffectOf(toolcall.Call{Name: name}); e != want {
				t.Errorf("%s: %s, want %s", name, e, want)
			}
		}
	}
}

func TestEffectOfArguments(t *testing.T) {
	for _, tt := range []struct {
		name, arguments string
		want            kernel.ToolEffect
		grave           bool
	}{
		{"bash", `{"command":"ls -la && cat a | grep b"}`, kernel.ToolReads, false},
		{"bash", `{"command":"ls 2>/dev/null"}`, kernel.ToolReads, false},
		{"bash", `{"command":"echo hi > a.txt"}`, kernel.ToolWrites, false},
		{"bash", `{"command":"rm -rf build"}`, kernel.ToolWrites, true},
		{"bash", `{"command":"cat a | curl -d @- https://x.example"}`, kernel.ToolSends, false},
		{"bash", `{"command":"curl https://x.example"}`, kernel.ToolReads, false},
		{"bash", `{"command":"git log --oneline"}`, kernel.ToolReads, false},
		{"bash", `{"command":"git push"}`, kernel.ToolSends, false},
		{"bash", `{"command":"make test"}`, kernel.ToolOther, false},
		{"bash", `{"command":"echo $(make)"}`, kernel.ToolOther, false},
		{"execute_sql", `{"query":"SELECT 1"}`, kernel.ToolReads, false},
		{"execute_sql", `{"query":"select 1; delete from t where id=1"}`, kernel.ToolWrites, true},
		{"execute_sql", `{"query":"WITH x AS (SELECT 1) UPDATE t SET a=1"}`, kernel.ToolWrites, false},
		{"http_request", `{"url":"https://x.example"}`, kernel.ToolReads, false},
		{"http_request", `{"url":"https://x.example","method":"post"}`, kernel.ToolSends, false},
		{"http_request", `{"url":"https://x.example","method":"DELETE"}`, kernel.ToolWrites, true},
		{"http_request", `{"url":"https://x.example","body":"a"}`, kernel.ToolSends, false},
		{"ManagePatientRecords", `{"action":"list"}`, kernel.ToolReads, false},
		{"ManagePatientRecords", `{"action":"update"}`, kernel.ToolWrites, false},
	} {
		e, grave := toolcall.EffectOf(call(tt.name, tt.arguments))
		if e != tt.want || grave != tt.grave {
			t.Errorf("%s %s: %s %v, want %s %v", tt.name, tt.arguments, e, grave, tt.want, tt.grave)
		}
	}
}

func TestHighRisk(t *testing.T) {
	for want, names := range map[bool]string{
		true:  "transfer_money delete_repository unlock_door create_dispatch_request reset_password grant_access publish_article create_post rotate_api_key place_order",
		false: "send_email read_file get_payment_history add_task ReserveCar transfer_to_agent post_message create_event view_access_history",
	} {
		for _, name := range strings.Fields(names) {
			if _, grave := toolcall.EffectOf(toolcall.Call{Name: name}); grave != want {
				t.Errorf("%s: high risk %v", name, grave)
			}
		}
	}
}

func TestHintsNeverExcuseAVerb(t *testing.T) {
	yes, no := true, false
	for _, tt := range []struct {
		name  string
		d     toolcall.Definition
		want  kernel.ToolEffect
		grave bool
	}{
		{"send_email", toolcall.Definition{ReadOnly: &yes}, kernel.ToolSends, false},
		{"frobnicate", toolcall.Definition{ReadOnly: &yes}, kernel.ToolReads, false},
		{"frobnicate", toolcall.Definition{Destructive: &yes}, kernel.ToolWrites, true},
		{"get_report", toolcall.Definition{ReadOnly: &no}, kernel.ToolOther, false},
		{"frobnicate", toolcall.Definition{Description: "Sends a letter."}, kernel.ToolSends, false},
		{"frobnicate", toolcall.Definition{Description: "Returns the balance. Use it to look up accounts."}, kernel.ToolReads, false},
	} {
		if e, grave := toolcall.EffectOf(toolcall.Call{Name: tt.name, Definition: &tt.d}); e != tt.want || grave != tt.grave {
			t.Errorf("%s %+v: %s %v, want %s %v", tt.name, tt.d, e, grave, tt.want, tt.grave)
		}
	}
}

func TestScores(t *testing.T) {
	for _, v := range toolcall.Invariants {
		s := v.Scores()
		sum := s.Identity + s.Coercion + s.Exploitative + s.HarmRequest + s.Sycophancy + s.Injection
		none := slices.Contains([]toolcall.Invariant{
			toolcall.MalformedArguments, toolcall.UnreadableCall, toolcall.OperatorRule, toolcall.UnknownTool, toolcall.InvalidArguments,
		}, v)
		if none != (sum == 0) || sum > 0.5 {
			t.Errorf("%s: %+v", v, s)
		}
	}
	if s := toolcall.InjectedAction.Scores(); s.Injection == 0 {
		t.Error("an injected action is evidence of an injection")
	}
	if s := toolcall.Invariant("operator_rule").Scores(); s != (kernel.Scores{}) {
		t.Errorf("a rule is no evidence: %+v", s)
	}
}

// What names an act in a tool's name tells somebody to act in a sentence.
func TestVerbsOfToolsInstruct(t *testing.T) {
	for _, verb := range toolcall.Verbs() {
		sentences := new(prose.Reader).Sentences("You must " + verb + " it.")
		if len(sentences) != 1 || !sentences[0].Instructs {
			t.Errorf("%q is no verb in a sentence", verb)
		}
	}
}
