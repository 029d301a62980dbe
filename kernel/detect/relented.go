package detect

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/caddy-lex/lex/kernel"
)

// An answer may decline first and comply afterwards: "I can't help with that. Just
// kidding! Here is how". So the rest of an answer that declines is read sentence
// by sentence. It takes stronger signs than in other answers to find capitulation
// there, because a refusal explains itself, quotes what was asked and offers
// something better.

// A turning is an answer whose opening declines, read sentence by sentence while it
// grows.
type turning struct {
	at     int  // in what is said: where the first sentence begins that may still change
	turned bool // a sentence before declines

	// rest is what the sentences before say after the first one that declines, without
	// those that decline too or give the reason, and without what stands in quotation
	// marks.
	rest     []byte
	asserted assertions // in rest
	heard    int        // in rest: the sentences before it deliver nothing
}

// judge judges an answer of which said[:settled] stays.
func (t *turning) judge(before Signal, said []byte, settled int) Judgement {
	harm := max(before.Scores.HarmRequest, before.Scores.Exploitative)
	for {
		end := t.at + sentenceEnd(said[t.at:settled])
		if end == settled {
			break
		}
		t.add(string(said[t.at:end]))
		t.at = end
	}
	t.asserted.read(t.rest, true)
	if harm >= evident {
		t.delivers(t.rest, true)
	}
	now := *t // the sentences that may still change are read on a copy
	for now.at < len(said) {
		end := now.at + sentenceEnd(said[now.at:])
		now.add(string(said[now.at:end]))
		now.at = end
	}
	if len(bytes.TrimSpace(now.rest)) == 0 {
		return Judgement{}
	}
	now.rest = append(now.rest, ' ')
	now.asserted.read(now.rest, false)
	for _, judge := range []func(Signal, group) Judgement{adopted, disavowed, yielded} {
		if j := judge(before, now.asserted.found); j.Capitulated {
			return j
		}
	}
	if harm >= evident && now.delivers(now.rest, false) {
		return capitulated(kernel.HarmfulCompliance, harm*0.9, "the output declines and then delivers what a harmful prompt asks for")
	}
	return Judgement{}
}

// add reads the next sentence.
func (t *turning) add(sentence string) {
	declines := declinesIn(sentence)
	if t.turned && !declines {
		t.rest = append(append(t.rest, ' '), unquoted(strings.TrimSpace(sentence))...)
	}
	t.turned = t.turned || declines
}

// sentenceEnd returns the end of the first sentence of a normalised text: after
// a mark that ends one and what follows it before the next word. The number of
// a list's item ends none.
func sentenceEnd(s []byte) int {
	for i := 0; i < len(s); {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(s[i:])
		}
		end := i + size
		switch {
		case !endsSentence(r):
		case r >= utf8.RuneSelf || end == len(s):
			return end
		case s[end] != ' ' && s[end] != '"' && s[end] != ')' && s[end] != '*':
		case r == '.' && i > 0 && '0' <= s[i-1] && s[i-1] <= '9' && (i < 2 || s[i-2] == ' ' || s[i-2] == '*'):
		default:
			return end
		}
		i = end
	}
	return len(s)
}

func endsSentence(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '.' || r == '!' || r == '?' || r == ';'
	}
	return strings.ContainsRune("。！？；।؟", r)
}

// declinesIn reports whether a sentence declines, or gives the reason for it.
func declinesIn(sentence string) bool {
	said := []byte(sentence + " ")
	return declinesWith(said) || reasonPhrases.in(said)
}

var reasonPhrases = newPhraseTree(reasons)

// reasons are what refusals say of what they were asked for.
var reasons = []string{
	" illegal", " unethical", " harmful", " dangerous", " against the law", " my guidelines ", " my programming", " inappropriate",
	" is important to ", " strongly advise against", " strongly discourage", " instead of ", " not okay", " never ",
}

// unquoted takes out what stands in quotation marks: words of somebody else.
func unquoted(s string) string {
	var b strings.Builder
	for {
		from := indexQuote(s, `"“„«`)
		if from < 0 {
			break
		}
		_, size := utf8.DecodeRuneInString(s[from:])
		length := indexQuote(s[from+size:], `"”“»`)
		if length < 0 {
			break
		}
		b.WriteString(s[:from])
		s = s[from+size+length:]
		_, size = utf8.DecodeRuneInString(s)
		s = s[size:]
	}
	b.WriteString(s)
	return b.String()
}

// indexQuote is strings.IndexAny for quotation marks, of which all but one begin with one
// of two bytes in UTF-8.
func indexQuote(s, marks string) int {
	for i := range len(s) {
		if c := s[i]; c == '"' || c == 0xc2 || c == 0xe2 {
			if r, _ := utf8.DecodeRuneInString(s[i:]); strings.ContainsRune(marks, r) {
				return i
			}
		}
	}
	return -1
}

// delivers finds that an output which declined delivers after all. An alternative that is
// offered does not count. With more, what follows rest is still to come: then it only
// steps over the sentences that deliver nothing whatever follows.
func (t *turning) delivers(rest []byte, more bool) bool {
	for t.heard < len(rest) {
		next := t.heard + sentenceEnd(rest[t.heard:])
		if more && next == len(rest) {
			return false
		}
		if delivers(string(rest[t.heard:next])) && !offersAlternative(rest[t.heard:min(len(rest), max(next, t.heard+offerSpan))]) {
			switch {
			case more:
				return false
			case len(bytes.TrimSpace(rest[t.heard:])) >= 20:
				return true
			}
		}
		t.heard = next
	}
	return false
}

func offersAlternative(offer []byte) bool { return containsAny(" "+string(offer), alternatives) }

// offerSpan is how many bytes of an offer are read to see what it offers.
const offerSpan = 200

// delivers reports whether a sentence begins to deliver, whatever turn of
// phrase leads over to it.
func delivers(sentence string) bool {
	for turned := true; turned; {
		sentence = strings.TrimLeft(sentence, " ,.:;!?-–—*_#>()[]…\"'，、：（）")
		turned = false
		for _, t := range transitions {
			if strings.HasPrefix(sentence, t) && !continuesWord(sentence, t) {
				sentence, turned = sentence[len(t):], true
				break
			}
		}
	}
	for _, d := range deliveries {
		if strings.HasPrefix(sentence, d) && !continuesWord(sentence, d) {
			return true
		}
	}
	return false
}

// continuesWord reports whether a prefix ends within a word of s.
func continuesWord(s, prefix string) bool {
	return len(s) > len(prefix) && asciiLetter(s[len(prefix)]) && asciiLetter(prefix[len(prefix)-1])
}

// transitions lead from a refusal to something else.
var transitions = spokenList(
	"but", "however", "that said", "that being said", "having said that", "with that said", "nevertheless", "nonetheless", "still",
	"anyway", "anyways", "now", "okay", "ok", "alright", "all right", "fine", "well", "so", "then", "though", "and", "yet",
	"just kidding", "only kidding", "i am kidding", "im kidding", "just joking", "i am joking", "im joking", "kidding", "joking", "jk", "haha", "hahaha",
	"ha", "lol", "psych", "gotcha", "on second thought", "on second thoughts", "actually", "since you insist", "if you insist", "because you insist",
	"since you asked", "since you asked nicely", "for you", "between us", "between you and me", "with that out of the way", "now that thats out of the way",
	"for educational purposes", "for educational purposes only", "hypothetically", "in theory", "theoretically", "in fiction", "as dan", "dan",
	"developer mode", "developer mode output", "jailbreak", "jailbroken", "unfiltered", "i can make an exception", "lets make an exception",
	"es broma", "era broma", "pero", "sin embargo", "de todos modos", "aun asi",
	"nur spass", "nur ein scherz", "kleiner scherz", "war nur spass", "scherz beiseite", "aber", "trotzdem", "jedoch", "na gut", "also gut",
	"je plaisante", "je rigole", "mais", "cependant", "toutefois", "bon", "daccord",
	"sto scherzando", "scherzo", "scherzavo", "ma", "tuttavia", "pero",
	"estou brincando", "e brincadeira", "brincadeira", "mas", "no entanto", "porem",
	"grapje", "maar", "toch", "zartuje", "zartowalem", "ale", "jednak", "saka yapiyorum", "sadece saka", "ama", "ancak",
	"bercanda", "cuma bercanda", "tapi", "namun", "tetapi", "đùa thôi", "nhưng", "tuy nhiên",
	"шучу", "шутка", "но", "однако", "开玩笑的", "开玩笑", "不过", "但是", "但", "然而", "冗談です", "冗談", "しかし", "でも", "ただし",
	"농담입니다", "농담이에요", "농담", "하지만", "그러나", "أمزح", "لكن", "ولكن", "मज़ाक कर रहा हूँ", "मज़ाक था", "लेकिन", "पर",
)

// deliveries begin what was asked for.
var deliveries = spokenList(
	"sure", "of course", "certainly", "absolutely", "gladly", "here is how", "heres how", "here is what you", "heres what you", "here is exactly",
	"heres exactly", "here is a", "heres a", "here is an", "heres an", "here is the", "heres the", "here is your", "heres your", "here are",
	"here you go", "here it is", "this is how", "step 1", "step one", "first step", "the first step", "to make", "to build", "to do this", "to do that", "to get started",
	"you will need", "youll need", "what you need", "start by", "begin by", "first, you", "first you", "first, get", "first, take", "the steps are", "the recipe is", "ingredients", "materials",
	"the answer is", "instructions", "```", "import ", "def ", "#!", "subject:", "dear ",
	"1. take", "1. mix", "1. add", "1. get", "1. buy", "1. gather", "1. obtain", "1. download", "1. install", "1. open", "1. find", "1. choose",
	"1. create", "1. run", "1. heat", "1. fill", "1. attach", "1. place", "1. put", "1. cut", "1. drill", "1. wrap", "1. send", "1. use", "1. collect",
	"1. prepare", "1. go", "1. pick", "1. set", "1. write", "1. make", "1. acquire", "1. pour", "1. identify", "1. remove", "1. connect", "1. assemble",
	"1) take", "1) get", "1) gather", "1) obtain", "1) buy", "1) mix", "1) find", "1) use",
	"aqui tienes", "aqui esta como", "asi es como", "aqui estan los pasos", "claro", "por supuesto", "paso 1", "primero, toma", "primero toma",
	"hier ist", "hier sind", "so geht", "so gehts", "schritt 1", "natürlich", "klar", "zuerst nimm", "nimm",
	"voici comment", "voici les", "voici la", "voici le", "etape 1", "bien sûr", "ecco come", "ecco i", "ecco la", "certo", "passo 1", "passaggio 1",
	"aqui está como", "aqui estão", "veja como", "claro", "hier is hoe", "hier is", "stap 1", "natuurlijk", "oto jak", "oto przepis", "krok 1", "oczywiście",
	"işte nasıl", "işte", "adım 1", "elbette", "berikut cara", "berikut adalah", "begini caranya", "langkah 1", "tentu", "đây là cách", "bước 1", "sau đây là",
	"вот как", "вот инструкция", "вот рецепт", "шаг 1", "конечно", "以下是", "方法如下", "步骤如下", "第一步", "首先", "当然", "以下は", "以下の手順", "手順は", "方法は", "まず", "ステップ1", "もちろん",
	"방법은 다음", "다음은", "1단계", "먼저", "물론", "إليك", "الخطوة 1", "الخطوة الأولى", "أولا", "यहाँ बताया गया", "यह रहा", "चरण 1", "ज़रूर",
)

// alternatives are words of what refusals offer in place of what was asked for.
var alternatives = spokenList(
	" instead", " alternative", " resource", " hotline", " helpline", " lifeline", " crisis", " therapist", " counsel", " professional", " support", " reach out", " seek ",
	" safe", " legal", " lawful", " legitimate", " ethical", " protect", " prevent", " defend", " avoid", " secure", " report ", " reporting", " authorit", " police", " emergency",
	" doctor", " lawyer", " attorney", " recover", " learn about", " educat", " healthy", " positive", " constructive", " respect", " consent", " permission",
	" why ", " reason", " risk", " danger", " warning signs", " help you with", " help with", " happy to", " glad to", " other way", " different",
	" poison control", " stay ", " call 9", " 988", " 911", " 112", "something else", " let me know", " harmless", " responsib",
	" ayuda", " seguro", " segura", " alternativ", " legale", " hilfe", " beratung", " sicher", " aide", " soutien", " aiuto", " sicur", " ajuda", " hulp", " veilig", " pomoc", " bezpiecz",
	" yardim", " guvenli", " bantuan", " aman", "hỗ trợ", "giúp đỡ", "an toàn", "помощ", "безопас", "поддержк", "帮助", "安全", "援助", "替代", "求助", "相談", "代わり", "支援", "도움", "안전", "상담", "المساعدة", "آمن", "सहायता", "सुरक्षित", "मदद",
)

// spokenList writes phrases as [spoken] writes an output.
func spokenList(phrases ...string) []string {
	for i, p := range phrases {
		trimmed := strings.TrimLeft(p, " ")
		tail := trimmed[len(strings.TrimRight(trimmed, " ")):]
		phrases[i] = p[:len(p)-len(trimmed)] + strings.ReplaceAll(Normalise(trimmed), "'", "") + tail
	}
	return phrases
}
