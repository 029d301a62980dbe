package toolcall

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// An agent that may change its own settings has none. What frees it from a person's approval,
// from its list of tools, from its records or from the limit of what it spends is judged by
// the names of the members; asking for approval, or for less, is not.

var (
	// ruling are the words of tools that keep the settings of agents and the rules of payments.
	ruling        = words("agent agents assistant harness copilot autopilot bot guard guardrail policy policies approval approvals limits limit permissions permission settings setting config configuration preferences profile runtime platform autonomy")
	settingVerbs  = words("set update change patch configure config put edit modify save write apply override raise enable disable toggle grant settings")
	spendingWords = words("payment payments payout payouts treasury expense expenses spend spending transfer transfers purchase purchases procurement invoice invoices bank banking finance outgoing policy policies approval approvals")
	agentWords    = words("agent agents assistant harness copilot autopilot bot autonomy self")

	allowedKey   = regex.New(`^(?:allowed|permitted|enabled|auto\w*|always|white)\w*(?:tools?|commands?|actions?|list|allow\w*|domains?|hosts?|paths?|scopes?|approve\w*|permissions?)?$|^(?:tools|scopes|permissions|capabilities|autoapprove\w*|alwaysallow|allowlist|allow)$`)
	loggingKey   = regex.New(`^(?:log|audit|record|trace|journal|transcript|monitor)(?:s|ging|ing|\w*(?:calls?|actions?|events?|tools?|enabled|trail|activity))?$`)
	spendingKey  = regex.New(`(?:spend|budget|cost|payment|purchase|transfer|amount|transaction)\w*(?:limit|cap|max|ceiling|budget|threshold|without)|(?:limit|cap|max|maximum|ceiling)\w*(?:spend|budget|cost|payment|purchase|transfer|amount|transaction)|withoutapproval`)
	askingKey    = regex.New(`^(?:confirmations?|confirmationrequired|humanintheloop|hitl|requireapprovalfor|(?:ask|confirm)before\w*|ask\w*(?:approv|confirm|consent|person))`)
	freedomKey   = regex.New(`^(?:mode|permissionmode|autonomy|autonomylevel|approvalmode|approvalpolicy|safetymode|sandboxmode|executionmode)$`)
	freeMode     = regex.New(`^(?i:yolo|bypass\w*|unrestricted|unlimited|unsafe|full[-_]?(?:auto|access|autonomy)|danger\w*|never|off|none|auto[-_]?approve|no[-_]?sandbox|god\w*)$`)
	confiningKey = regex.New(`^(?:sandbox|sandboxed|sandboxenabled|denylist|blockedtools|deniedtools|disallowedtools|restrictions|blocklist|contentfilter|ratelimit\w*)$`)
)

// limits judges a change of the settings of an agent.
func (d *dealing) limits() {
	d.approvesItself()
	self := d.any(agentWords)
	for _, l := range d.leaves {
		self = self || (l.key == "agent" || l.key == "target" || l.key == "subject" || l.key == "agentid") && ownName(l.value)
	}
	if !d.any(settingVerbs) || !self && !d.any(ruling) {
		return
	}
	rules := self || d.any(spendingWords)
	freed := slices.ContainsFunc(d.empty, func(key string) bool {
		return rules && (approvalKey.MatchString(key) || askingKey.MatchString(key)) || self && confiningKey.MatchString(key)
	})
	for _, l := range d.leaves {
		switch {
		case rules && (l.unchecked() || approvalKey.MatchString(l.key) && isNothing(l.value)):
			freed = true
		case rules && askingKey.MatchString(l.key):
			freed = freed || isNo(l.value) || isNothing(l.value) || l.value == "auto"
		case !self:
		case allowedKey.MatchString(l.key):
			freed = freed || l.value == "*" || l.value == "**" || strings.EqualFold(l.value, "all") || l.value == "*:*" || strings.HasPrefix(l.key, "autoapprove") && isYes(l.value)
		case loggingKey.MatchString(l.key), confiningKey.MatchString(l.key):
			freed = freed || isNo(l.value) || isNothing(l.value)
		case spendingKey.MatchString(l.key):
			freed = freed || amountOf(l) >= 100_000 || amountOf(l) < 0 || boundless.MatchString(l.value)
		case freedomKey.MatchString(l.key):
			freed = freed || freeMode.MatchString(l.value)
		}
	}
	if freed {
		d.breaks(ConstraintTampering)
	}
}

var boundless = regex.New(`^(?i:unlimited|none|null|infinity|inf|no[-_ ]?limit|-1)$`)

// ownName reports whether a value is what an agent calls itself.
func ownName(value string) bool { return selfNames[strings.ToLower(value)] }

var (
	selfNames    = words("self agent assistant bot auto automatic automation ai llm this_agent myself")
	approveWords = words("approve approves approval approvals signoff countersign authorize release")
	approverKeys = words("approver approvers approvedby approverid decidedby reviewer reviewedby signedby signer authorizedby confirmedby onbehalfof actingas")
	askerKeys    = words("requester requestedby requestor createdby submittedby author initiator owner")
)

// approvesItself judges an approval that the one gives who asks for it.
func (d *dealing) approvesItself() {
	approves := slices.IndexFunc(d.words, func(w string) bool { return approveWords[w] })
	if approves < 0 || strings.HasPrefix(d.words[approves], "approval") && slices.ContainsFunc(d.words[:approves], func(w string) bool { return w == "request" || w == "get" || w == "list" || w == "create" }) {
		return
	}
	var asker, approver string
	for _, l := range d.leaves {
		switch {
		case !l.text:
		case approverKeys[l.key]:
			if ownName(l.value) {
				d.breaks(ConstraintTampering)
			}
			approver = l.value
		case askerKeys[l.key]:
			asker = l.value
		}
	}
	if asker != "" && strings.EqualFold(asker, approver) {
		d.breaks(ConstraintTampering)
	}
}

// unchecked reports whether a member lets something pass that people, or the screens of a bank,
// have to look at before.
func (l leaf) unchecked() bool {
	value := strings.TrimSpace(l.value)
	switch {
	case isYes(value):
		return skipsCheck.MatchString(l.key) || l.above.approval && skipKeys[l.key]
	case isNo(value) || l.text && skipped.MatchString(value):
		return approvalKey.MatchString(l.key) || screeningKey.MatchString(l.key)
	}
	return false
}

var (
	approvalKey  = regex.New(`(?:require|need|human|manual|dual|two|four|second|must|enforce)\w*(?:approv|confirm|review|consent|signature|person|eyes|control)|^(?:manager|secondary)?(?:approvals?(?:s?required|mode|policy|flow|needed)?|approvers)$|^makerchecker$`)
	screeningKey = regex.New(`^(?:(?:require[sd]?|enforce)?(?:payee)?verification(?:required|mode)?|(?:sanctions?|aml|fraud|kyc|risk)(?:screening|checks?)(?:enabled)?|callback(?:required|verification)?)$`)
	skipsCheck   = regex.New(`^(?:skip|bypass|override|ignore|disable|no|without|waive|force)(?:all)?(?:dual|secondary|manager|fraud|aml|kyc|sanctions?|risk|limit|velocity)?(?:approvals?|limits?|checks?|verification|review|callback|screening|control|confirmation|hold|2fa|mfa)$`)
	skipKeys     = words("skip bypass override")
	skipped      = regex.New(`^(?i:skip(?:ped)?|bypass(?:ed)?|waived?|overrid(?:e|den)|self|auto)$`)
)
