package toolcall

import "github.com/caddy-lex/lex/kernel"

// Invariant names a rule that no tool call may break. The last three are not the
// interceptor's: two come from the operator and one from the request. The set is closed,
// so that it can label a metric. A threat id carries the year of its list: "ASI" is the
// OWASP Top 10 for Agentic Applications, "AML.T" is MITRE ATLAS v5.6.1 of 2026.
type Invariant string

const (
	// MalformedArguments forbids arguments that are not exactly one JSON
	// object of valid UTF-8 without duplicate names: two parsers may read such
	// a text in two ways, and the one that runs the tool is not ours.
	// ASI02:2026, AML.T0068 (2026).
	MalformedArguments Invariant = "malformed_arguments"

	// UnreadableCall forbids calls that take more work to read than any honest
	// one needs, or that nest what they mean more deeply than anybody writes:
	// nobody can say what such a call would do. ASI02:2026, AML.T0068 (2026).
	UnreadableCall Invariant = "unreadable_call"

	// ConstraintTampering forbids an agent to change what constrains it: the
	// governor's administrative endpoints and configuration, the policy of
	// its own harness, the logs that record it. ASI10:2026, AML.T0053 (2026).
	ConstraintTampering Invariant = "constraint_tampering"

	// DestructiveCommand forbids commands that destroy what cannot be
	// restored: file systems, devices, home and system folders, whole systems.
	// ASI02:2026, AML.T0101 (2026).
	DestructiveCommand Invariant = "destructive_command"

	// DestructiveOperation forbids operations of version control, clouds and
	// clusters that cannot be taken back: rewritten history of a shared branch,
	// deleted infrastructure. ASI02:2026, AML.T0101 (2026).
	DestructiveOperation Invariant = "destructive_operation"

	// RemoteCodeExecution forbids running code that was downloaded or decoded
	// in the same breath, and handing a shell to the network: nobody has read
	// that code. ASI05:2026, AML.T0102 (2026).
	RemoteCodeExecution Invariant = "remote_code_execution"

	// PrivilegeEscalation forbids gaining rights that the agent was not given:
	// sudo, set-user-id bits, privileged containers, administrator roles.
	// ASI03:2026, AML.T0053 (2026).
	PrivilegeEscalation Invariant = "privilege_escalation"

	// Persistence forbids code that starts later or again without being asked:
	// cron, shell profiles, services, keys that open a login, hooks of version
	// control. ASI05:2026, AML.T0053 (2026).
	Persistence Invariant = "persistence"

	// DataExfiltration forbids sending secrets or the contents of files to a
	// place the user did not name. ASI02:2026, AML.T0086 (2026).
	DataExfiltration Invariant = "data_exfiltration"

	// CredentialAccess forbids reading keys, tokens and password stores into
	// the conversation. ASI03:2026, AML.T0098 (2026).
	CredentialAccess Invariant = "credential_access" //nolint:gosec // G101: the name of an invariant

	// ServerSideRequestForgery forbids requests to metadata services, private
	// and loopback addresses and non-web schemes, however they are spelt.
	// ASI02:2026, AML.T0053 (2026).
	ServerSideRequestForgery Invariant = "server_side_request_forgery"

	// DestructiveQuery forbids SQL that drops or empties tables, changes all
	// rows, grants rights or leaves the database. ASI02:2026, AML.T0101
	// (2026).
	DestructiveQuery Invariant = "destructive_query"

	// PathTraversal forbids file arguments that climb out of the workspace or
	// name folders of the operating system. ASI02:2026, AML.T0053 (2026).
	PathTraversal Invariant = "path_traversal"

	// UntrustedDestination forbids irreversible acts (payments, mail,
	// publication) towards a destination that only untrusted content named.
	// ASI01:2026, AML.T0051.001 (2026).
	UntrustedDestination Invariant = "untrusted_destination"

	// InjectedAction forbids acts that the user did not ask for and that a text which
	// the agent read tells it to do. ASI01:2026, AML.T0051.001 (2026).
	InjectedAction Invariant = "injected_action"

	// TransferOutOfBounds forbids payments above the amount that the user named, or
	// above every amount that anybody named. ASI02:2026, AML.T0053 (2026).
	TransferOutOfBounds Invariant = "transfer_out_of_bounds"

	// HarmfulAction forbids calls that resemble hostile ones in their words, whatever they
	// do: the readers behind the other invariants know only what somebody thought of.
	// ASI02:2026, AML.T0101 (2026).
	HarmfulAction Invariant = "harmful_action"

	// OperatorRule forbids what a rule of the operator denies; [Decision.Rule] names it.
	OperatorRule Invariant = "operator_rule"

	// UnknownTool forbids tools that the operator does not know, where only known ones
	// may be called. ASI02:2026, AML.T0053 (2026).
	UnknownTool Invariant = "unknown_tool"

	// InvalidArguments forbids arguments that do not fit the schema that the request gives
	// for the tool. ASI02:2026, AML.T0053 (2026).
	InvalidArguments Invariant = "invalid_arguments"
)

// precedence is the order in which the invariants apply: a call that breaks
// several is blocked by the first, whatever the order of its members.
var precedence = []Invariant{
	MalformedArguments, UnreadableCall, ConstraintTampering, DestructiveCommand, DestructiveOperation,
	RemoteCodeExecution, PrivilegeEscalation, Persistence, DataExfiltration, CredentialAccess, ServerSideRequestForgery,
	DestructiveQuery, PathTraversal, UntrustedDestination, InjectedAction, TransferOutOfBounds, HarmfulAction,
	OperatorRule, UnknownTool, InvalidArguments,
}

var reasons = map[Invariant]string{
	MalformedArguments:       "The arguments are not one well-formed JSON object with unique member names.",
	UnreadableCall:           "The call is nested too deeply or takes too much work to be read.",
	ConstraintTampering:      "The call would change or blind the rules and records that govern the agent.",
	DestructiveCommand:       "The call would destroy files, devices or systems beyond recovery.",
	DestructiveOperation:     "The call would rewrite shared history or delete infrastructure for good.",
	RemoteCodeExecution:      "The call would run downloaded or decoded code that nobody has read.",
	PrivilegeEscalation:      "The call would gain rights that the agent was not given.",
	Persistence:              "The call would make code start later, or open a login, without being asked.",
	DataExfiltration:         "The call would send secrets or file contents to a place the user did not name.",
	CredentialAccess:         "The call would read credentials into the conversation.",
	ServerSideRequestForgery: "The call would reach an internal address or a scheme that is not the web.",
	DestructiveQuery:         "The query would destroy data, change every row, grant rights or leave the database.",
	PathTraversal:            "The call would leave the workspace or touch folders of the operating system.",
	UntrustedDestination:     "The call cannot be undone and its destination was named only by untrusted content.",
	InjectedAction:           "The user did not ask for the act; a text that the agent read tells it to do it.",
	TransferOutOfBounds:      "The amount is above what the user named, or above every amount in the conversation.",
	HarmfulAction:            "The call reads like those that destroy, steal, deceive or open a way in.",
	OperatorRule:             "A rule of the operator denies the call or cannot be applied to it.",
	UnknownTool:              "The tool is not one of those that may be called.",
	InvalidArguments:         "The arguments do not fit the schema of the tool.",
}

// What is said of calls that no invariant of this package blocks, and before the reason of each
// call that is blocked in a conversation.
const (
	WasBlocked        = "A tool call was blocked by the governance policy of this service."
	SessionRiskReason = kernel.SessionRisk + ": The state of the session does not allow a call like this one now."
	NoVerdictReason   = string(OperatorRule) + ": A guard has to be asked about the call and gave no verdict."
)

// Reason returns the sentence that explains the invariant, beginning with its
// name; empty for a value outside the set.
func (v Invariant) Reason() string {
	if r, known := reasons[v]; known {
		return string(v) + ": " + r
	}
	return ""
}

// blockedScore is the probability that a blocked call brings to its session, that the
// session is under attack: one call weighs little, several raise the pressure.
const blockedScore = 0.45

// Scores returns the evidence that a blocked call brings to its session. A call that
// nobody could read, or that only a rule of the operator forbids, brings none.
func (v Invariant) Scores() kernel.Scores {
	switch v {
	case InjectedAction, UntrustedDestination, TransferOutOfBounds:
		return kernel.Scores{Injection: blockedScore}
	case ConstraintTampering:
		return kernel.Scores{Identity: blockedScore}
	case DestructiveCommand, DestructiveOperation, RemoteCodeExecution, PrivilegeEscalation, Persistence, DataExfiltration, CredentialAccess,
		ServerSideRequestForgery, DestructiveQuery, PathTraversal, HarmfulAction:
		return kernel.Scores{HarmRequest: blockedScore}
	}
	return kernel.Scores{}
}
