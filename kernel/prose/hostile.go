package prose

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// A cue is a way in which injected instructions speak and honest documents do not. It is
// looked for in sentences that hold one of its words.
type cue struct {
	words     string
	with      map[string]bool // one of these must stand there too; nil if none must
	pattern   *regex.Screen
	overrides bool
}

func newCue(words, pattern string) cue {
	return cue{words: words, pattern: regex.ScreenOf(`(?i)` + pattern)}
}

// near adds words of which one must stand in the sentence too.
func (c cue) near(list string) cue {
	c.with = Set(list)
	return c
}

// overriding makes a cue one that takes the place of the user or of the system.
func (c cue) overriding() cue {
	c.overrides = true
	return c
}

var cues = []cue{
	// They override what was asked,
	newCue("ignore ignoring disregard disregarding forget override overrides overriding supersede supersedes bypass aside stop follow", `\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget|overrid(?:e|es|ing)|supersedes?|bypass|set aside|stop following|do not follow|don'?t follow)\b[^.!?]{0,60}\b(?:instructions?|prompts?|rules?|guidelines?|directives?|orders|tasks?|requests?|messages?|context|restrictions?|polic(?:y|ies)|everything|prior|previous|above|earlier|what you (?:were|are|have been) (?:asked|told|doing))\b`).overriding(),
	// replace it,
	newCue("instruction instructions objective goal mission directive directives prompt orders task", `\b(?:new|real|actual|true|hidden|secret|overriding|revised|updated|priority|override) (?:instructions?|objective|goal|mission|directives?|system prompt|orders)\b|\b(?:real|actual|true|hidden|secret) task\b|\byour (?:new|next|only|real|main|updated) (?:task|job|goal|role)\b`).overriding(),
	// speak to a machine,
	newCue("ai human humans language llm llms ais assistant assistants agent agents bot bots chatbot copilot automated automatic model models gpt claude gemini bots copilots software program programs system systems machine machines automation automations integration integrations clients tooling accounts users", `\b(?:if|since|as) (?:you(?:'re| are)|the reader is) (?:an? |the )?(?:\w+ ){0,2}(?:ai|llm|language model|assistant|agent|bot|chatbot|copilot|automated)\b`+
		`|\b(?:ai|llm|automated|virtual|language) ?(?:assistants?|agents?|models?|systems?|readers?|tools?|bots?)\b[^.!?]{0,50}\b(?:must|should|shall|needs? to|ha(?:s|ve) to|required|instructed|please|reading|processing|summari[sz]ing)\b|\b(?:llms?|ais)\b[^.!?]{0,20}\b(?:must|should|shall|need to|have to|reading|processing)\b`+
		`|\b(?:note|message|instructions?|important|attention|notice|memo|hint|reminder|task|hey|dear|hello|hi)[ ,:!-]{1,3}(?:(?:to|for|from) )?(?:(?:the|any|all|our|your|every) )?(?:\w+ )?(?:ai|llms?|assistants?|chatbot|copilot|language models?|gpt|claude|gemini|bot)\b`+
		`|\b(?:assistants?|agents?|ai|bots?|copilot|llms?)\)?(?: ?:| must\b| should\b| shall\b| needs? to\b| ha(?:s|ve) to\b)|^\W*(?:assistant|agent|ai|bot|model),|\b(?:language models?|llms?|ai (?:assistants?|agents?|models?|systems?))\W{0,2}(?::| working on| reading| processing| that | who | which )|\bhumans? (?:can|may|should|readers? (?:can|may)) (?:skip|ignore|disregard)\b|\b(?:to ?do|task|action|step)s? (?:for )?\(?(?:the )?(?:ai|assistant|agent|bot)\b|\b(?:processed|read|parsed|handled|summari[sz]ed) by (?:an? |any )?(?:\w+ ){0,2}(?:ai|assistant|agent|model|llm|bot|system|program|software|machine)\b`+
		`|\b(?:client|companion|evaluating|analy[sz]ing|reading|processing|receiving|banking|booking|billing|forwarding|moderating|administrative|accounting) (?:software|programs?|systems?|machines?|clients?|tools?|models?)\b[^.!?]{0,50}\b(?:must|should|shall|ha(?:s|ve) to|needs? to|sets?|passes|takes?|writes?|sends?|uses?|opens?|pays?|picks?|also|please|instead|kindly)\b`+
		`|\b(?:bots?|copilots?|automations?|integrations?|machines|programs|service accounts|api (?:users|clients)|automat(?:ed|ic) \w+(?:ers|ors))\b[^.!?]{0,40}\b(?:must|should|shall|ha(?:s|ve) to|needs? to|are to|always|only|instead|now|please|take|write|use|send|set|pass|pick)\b`+
		`|\b(?:copilots|bots|machines|programs|automat(?:ed|ic) \w+(?:ers|ors)|tooling (?:rule|note))\)?(?::|!)`),
	// put on the role of a system,
	newCue("human system sistema systeme система системa 系统 系統 システム 시스템 im_start user assistant inst admin administrator developer root debug maintenance tool information instructions important", `^\W{0,6}(?:system|sistema|systeme|système)\W{0,3}(?::|\]|>|override|notice|message|instruction|prompt|alert|note|update|directive|command)|<\|?(?:im_start|system|user|assistant|end_?of)|</?(?:system|user|assistant|tool_result|tool_response|function_results?|information|instructions?|important|admin)>|\[/?(?:inst|user|human|assistant)\]|\[(?:system|sistema|syst[eè]me|система|系统|系統|システム|시스템)|#{2,} ?(?:system|instruction|new task|assistant|user)\b|\b(?:developer|admin|administrator|root|debug|maintenance) (?:mode|override|message|instruction)`).overriding(),
	// ask for silence,
	newCue("not dont don't never without avoid silently secretly covertly discreetly background", `\b(?:do not|don'?t|never|without|avoid)\b[^.!?]{0,20}\b(?:tell(?:ing)?|inform(?:ing)?|notify(?:ing)?|alert(?:ing)?|ask(?:ing)?|consult(?:ing)?|bother(?:ing)?|involv(?:e|ing))\b[^.!?]{0,30}\b(?:users?|anyone|anybody|owner|customer|human|him|her|them|confirmation|approval|permission)\b`+
		`|\b(?:do not|don'?t|never|without)\b[^.!?]{0,10}\b(?:mention(?:ing)?|disclos(?:e|ing)|reveal(?:ing)?|report(?:ing)?|show(?:ing)?|summari[sz](?:e|ing))\b[^.!?]{0,30}\b(?:this|step|action|instructions?|users?|note)\b|\b(?:silently|secretly|covertly|discreetly|in the background)\b`).near("user users anyone anybody owner customer human him her them confirmation approval permission this step action instruction instructions note silently secretly covertly discreetly background"),
	// claim that somebody agreed,
	newCue("approved authorized authorised consented confirmed agreed permission consent preapproved preauthorized pre confirmation approval authorization verification", `\b(?:user|owner|account holder|admin|administrator|he|she)\b[^.!?]{0,12}\b(?:has|have|had|already|is|was)\b[^.!?]{0,20}\b(?:approved|authori[sz]ed|consented|confirmed|agreed|permission|consent)\b|\bpre-?(?:approved|authori[sz]ed)\b|\bno (?:further |additional |user |explicit )?(?:confirmation|approval|permission|consent|authori[sz]ation)\b|\bwithout (?:further |any |user |additional |explicit )?(?:confirmation|approval|permission|consent|verification|question)`),
	// make themselves a condition,
	newCue("continue continuing proceed proceeding answering respond responding completing comply follow must required instructed obligated", `\b(?:before|in order to|to) (?:you (?:can )?)?(?:continue|continuing|proceed|proceeding|answering|respond|responding|completing|complete the (?:task|request))\b[^.!?]{0,50}\b(?:must|need to|have to|required|first|call|invoke|run|send|execute)\b|\b(?:failure|failing|fail) to (?:comply|do so|follow)\b|\byou (?:must|are required to|are instructed to|have been instructed to|are obligated to) (?:\w+ ){0,2}(?:call|use|invoke|execute|comply|obey)\b`),
	// speak to somebody who is about to answer a user,
	newCue("before whoever user user's planned you", `\bbefore you (?:answer|respond|reply|continue|summari[sz]e|finish)\b|\b(?:whoever|anyone who|the one who|those who) (?:processes|handles|reads|works on|is processing|is handling|is reading|manages|summari[sz]es)\b|\bthen (?:continue|proceed|resume|carry on) (?:as|with)\b|\b(?:each|every|any|all) (?:\w+ ){1,2}(?:that )?you (?:send|make|create|write|book|issue|post)\b|\b(?:what(?:ever)?|the (?:amount|receiver|recipient|one|person|account|date)|than|of what) the user (?:\w+ )?(?:named|chose|said|asked|wants|wanted|requested|gave)\b|\bthe (?:user'?s?|original) (?:original )?(?:request|instructions?|wish)\b`),
	// put on the role of the user, of a developer or of an error,
	newCue("user human customer developer developers vendor operator platform admin error exception failed denied expired invalid unauthorized", `^\W{0,4}(?:\[|<|#{1,6} ?)?(?:human|user)(?:\]|>)? ?(?:turn|message|input)?:|\b(?:new |latest |another )?(?:message|note|request|instruction)s? from (?:the |your |our )?(?:user|developers?|vendor|operator|platform|admin\w*|system)\b|\bthe user (?:also |now |just |has |really )*(?:wants|asks|asked|adds|added|wishes|requests|requested|would like)\b|\bdevelopers? (?:note|message|instruction|comment|says?)\b|\b(?:error|exception|failed|denied|expired|invalid|unauthorized)\b[^.!?]{0,100}\b(?:call|run|invoke|execute|send|use the|first)\b`),
	// hide,
	newCue("display visibility hidden opacity font invisible", `display: ?none|visibility: ?hidden|opacity: ?0\b|font-size: ?0|color: ?(?:white|#fff)|aria-hidden`),
	// shout,
	newCue("important urgent attention critical mandatory required", `^\W*(?:important|urgent|attention|critical|mandatory|action required)\W{0,3}!|^\W*\*\*(?:important|urgent|attention|critical)|<(?:important|urgent|critical)`),
	// hold something back until it is done,
	newCue("until unlock blocked restricted before required verify verification step access", `\b(?:access|results?|content|data|page|answer|output|session)\b[^.!?]{0,40}\b(?:blocked|locked|denied|restricted|withheld|unavailable|incomplete|hidden)\b[^.!?]{0,40}\b(?:until|unless|before)\b|\bin order to (?:view|see|access|read|display|unlock|load|open|finish|complete|use)\b[^.!?]{0,60}\b(?:must|need|first|please|call|have to)\b|\b(?:to|before) (?:view|viewing|see|seeing|access|accessing|unlock|unlocking|display|displaying|load|loading|complete|completing|finish|finishing) (?:the|this|your|these)\b[^.!?]{0,60}\b(?:must|need to|have to|first|you should|call|run)\b|\brequired (?:first )?step\b|\bverification (?:step|is required|required)\b`),
	// deny that the world is real,
	newCue("environment sandbox simulation evaluation test embedded", `\bnot an? (?:actual|real|production) (?:environment|system)\b|\b(?:sandbox|simulation|evaluation|test)\b[^.!?]{0,60}\b(?:agents?|assistants?|models?|embedded|hidden)\b|\bembedded (?:instructions?|requests?|tasks?|commands?|user)\b`).overriding(),
	// or redirect money.
	newCue("bank account iban wallet payment billing routing remittance beneficiary payout payee instead details", `\b(?:new|updated|changed|different|revised|corrected|alternate|alternative) (?:bank|account (?:details|number)|iban|payment|wallet|billing|routing|remittance|beneficiary|payout|payee)\b|\b(?:bank|account|payment|iban|wallet|billing|remittance) ?(?:details|account|number|address|information|instructions)? (?:has |have |was |were )?(?:been |recently )?(?:changed|updated|moved|replaced)\b|\b(?:pay|send|transfer|wire|remit|use|deposit)\b[^.!?]{0,80}\binstead\b`),
}

// isHostile reports whether a sentence has a cue, and whether it is one of those that take
// the place of the user or of the system.
func (s *Sentence) isHostile() (hostile, overrides bool) {
	for which := s.cues; which != 0; which &= which - 1 {
		c := &cues[bits.TrailingZeros16(which)]
		if (c.with == nil || slices.ContainsFunc(s.Words, func(w Word) bool { return c.with[w.Text] })) && c.pattern.Matches(s.Text) {
			hostile, overrides = true, overrides || c.overrides
		}
	}
	if !s.wide && s.traits&strange == 0 {
		return hostile, overrides
	}
	if overridesElsewhere(s.Plain) {
		return true, true
	}
	return hostile && (s.Instructs || s.Acts != 0 || overrides) || silencesElsewhere(s.Plain) || s.Instructs && (addressesElsewhere(s.Plain) || setsAside(s.Plain)), overrides
}

// overridesElsewhere finds "ignore the instructions" in other languages.
func overridesElsewhere(folded string) bool {
	return overridingScreen.Matches(folded) && overriddenScreen.Matches(folded)
}

var overridingWords = []string{"ignorier", "vergiss", "missacht", "ignore", "oublie", "ignora", "olvida", "dimentica", "esqueca", "negeer", "vergeet", "zignoruj", "zapomnij", "игнорир", "забудь", "忽略", "无视", "無視", "忘记", "忘れ", "무시", "잊", "تجاهل", "انس", "अनदेखा", "নজরআন্দাজ", "yoksay", "unut", "bo qua", "bỏ qua", "abaikan", "เพิกเฉย", "ละเว้น", "উপেক্ষা"}

var overridden = []string{"anterior", "previ", "bisher", "vorherig", "obige", "precedent", "предыдущ", "之前", "以上", "上述", "これまで", "上記", "以前", "이전", "السابق", "पिछल", "onceki", "peticion", "usuario", "anfrage", "auftrag", "benutzer", "nutzer", "demande", "utilisateur", "consigne", "richiesta", "utente", "pedido", "verzoek", "zadani", "запрос", "пользовател", "请求", "用户", "要求", "依頼", "ユーザー", "요청", "사용자", "المستخدم", "طلب", "उपयोगकर्ता", "kullanici", "anweisung", "instruktion", "instruccion", "instruction", "istruzion", "instruco", "instrucao", "instrucoes", "instructie", "polecen", "instrukcj", "инструкц", "указани", "指示", "指令", "说明", "命令", "지시", "지침", "명령", "تعليمات", "निर्देश", "talimat", "huong dan", "hướng dẫn", "instruksi", "perintah", "คำสั่ง", "คำแนะนำ", "নির্দেশ"}

// addressesElsewhere finds texts in other languages that speak to an assistant or to
// whoever processes them.
func addressesElsewhere(folded string) bool { return addressingScreen.Matches(folded) }

var addressing = []string{
	"ki-assist", "ki-agent", "ki assist", "ki-system", "ki-modell", "sprachmodell", "lieber assistent", "automatische assistent", "automatischer assistent", "digitaler assistent", "wer diese nachricht bearbeitet", "wer dies liest",
	"asistente de ia", "asistente virtual", "querido asistente", "estimado asistente", "asistente automat", "modelo de lenguaje", "agente de ia", "quien gestione", "quien procese", "quien lea", "si eres una ia", "eres un asistente",
	"assistant ia", "assistant virtuel", "cher assistant", "agent ia", "modele de langage", "assistant automat", "si vous etes une ia", "si tu es une ia", "quiconque traite",
	"assistente ai", "assistente ia", "assistente virtuale", "caro assistente", "gentile assistente", "modello linguistico", "assistente de ia", "assistente virtual", "prezado assistente", "modelo de linguagem", "beste assistent", "ai-assistent", "taalmodel", "drogi asystenc", "asystent ai", "model jezykowy",
	"ии-ассистент", "ии-агент", "ии-помощник", "языковая модель", "языковои модел", "уважаемый ассистент", "дорогои ассистент", "дорогои помощник", "виртуальныи ассистент", "人工智能", "ai助手", "智能助手", "语言模型", "大模型", "亲爱的助手", "尊敬的助手", "助手请", "語言模型", "aiアシスタント", "アシスタント", "言語モデル", "aiエージェント", "ai 비서", "ai 어시스턴트", "어시스턴트", "언어 모델", "مساعد", "نموذج لغوي", "एआई", "सहायक", "yapay zeka", "asistan", " ki-", "verwaltungssoftware", "automatische besteller", "ai请", "ai需", "l'assistente", "l'assistant", "el asistente", "помощник,", "ассистент,",
}

// replaces finds what puts one thing in the place of another.
func setsAside(folded string) bool { return replacingScreen.Matches(folded) }

var replacing = []string{" in place of ", " rather than the ", "anstelle", "stattdessen", " statt ", ", sondern ", "en lugar de", "en vez de", "au lieu d", "a la place d", "invece d", "al posto d", "em vez de", "em lugar de", "in plaats van", "zamiast", "вместо", "而不是", "代替", "改为", "代わりに", "ではなく", "대신", "بدلا من", "के बजाय", "yerine"}

// silencesElsewhere finds "do not ask" and "do not tell" in other languages.
func silencesElsewhere(folded string) bool { return silencingScreen.Matches(folded) }

var silencing = []string{
	"frag nicht", "frage nicht", "nicht nachfragen", "ruckfragen sind nicht", "keine ruckfrage", "ohne ruckfrage", "sag niemand", "sage niemand", "sag dem nutzer nicht", "nicht erwahnen", "erwahne das nicht", "erwahne dies nicht", "ohne zu fragen",
	"no hace falta confirm", "sin confirmacion", "no consultes", "sin consultar", "no preguntes", "sin preguntar", "no se lo digas", "no lo menciones", "no digas", "sin avisar",
	"ne demande pas", "ne demandez pas", "sans confirmation", "sans demander", "n'en parle", "n'en parlez", "ne mentionne", "ne le dis pas", "ne dites rien", "sans prevenir", "aucune confirmation",
	"non chiedere", "senza chiedere", "senza conferma", "non dirlo", "non menzionare", "non informare", "nao pergunte", "sem confirmacao", "sem perguntar", "nao mencione", "nao conte", "niet vragen", "zonder te vragen", "vraag niet", "nie pytaj", "bez potwierdzenia", "nie wspominaj",
	"не спрашива", "без подтвержд", "не говори", "не сообща", "не упомина", "не уведомля", "不要询问", "无需确认", "不用确认", "不要告诉", "别告诉", "不必确认", "不要提及", "無需確認", "確認は不要", "確認不要", "確認せず", "確認しない", "聞かない", "言わない", "伝えない", "知らせない", "묻지", "확인 없이", "알리지", "말하지", "دون سؤال", "لا تسأل", "لا تخبر", "دون تأكيد", "मत पूछ", "मत बता", "बिना पूछे", "sormadan", "onay almadan", "sorma", "soyleme",
}

var (
	overridingScreen, overriddenScreen                 = regex.ScreenOfWords(overridingWords), regex.ScreenOfWords(overridden)
	addressingScreen, replacingScreen, silencingScreen = regex.ScreenOfWords(addressing), regex.ScreenOfWords(replacing), regex.ScreenOfWords(silencing)
)

// elsewhere holds the first three letters of the first words of all these, for a quick
// look at texts without letters of other alphabets.
var elsewhere = func() map[string]bool {
	out := make(map[string]bool)
	for _, list := range [][]string{overridingWords, addressing, replacing, silencing} {
		for _, text := range list {
			if w := strings.TrimLeft(text, " ,"); len(w) > 2 && IsASCII(w) {
				out[w[:3]] = true
			}
		}
	}
	return out
}()

func beginsElsewhere(word string) bool { return len(word) > 2 && elsewhere[word[:3]] }
