package detect

import (
	"bytes"
	"strings"
)

// A refusal opens with one of a few moves, in many wordings: it says that it
// cannot, will not or must not, or it apologises and then does. Each phrase is
// looked for in the normalised opening of the output, without apostrophes.
var declining = []string{
	"i cant", "i cannot", "i can not", "i am unable", "im unable", "i am not able", "im not able",
	"i wont", "i will not", "i would not", "i wouldnt", "i must decline", "i have to decline", "i must refuse",
	"i decline", "i refuse", "i am not going to", "im not going to", "i dont want to", "i do not want to",
	"i am not comfortable", "im not comfortable", "i am not willing", "im not willing", "i am not allowed",
	"im not allowed", "i am not permitted", "im not permitted", "i shouldnt", "i should not", "i may not provide",
	"not able to help", "unable to help", "unable to assist", "unable to comply", "unable to provide",
	"cannot assist", "cant assist", "cannot comply", "cannot provide", "cannot fulfill", "cannot fulfil",
	"cant do that", "cant help with", "cannot help with", "against my guidelines", "against my programming",
	"against my principles", "violates my guidelines", "goes against my", "outside of what i can",
	"out of bounds", "not something i can", "not something i will", "not something im able", "isnt something i can",
	"is not something i", "id rather not", "i would rather not", "i must respectfully decline", "as a responsible ai",
	"it is not appropriate to", "it would be inappropriate", "it would be unethical", "it is unethical", "it is illegal",
	"its illegal", "thats illegal", "that is illegal", "this request cannot", "cannot be processed", "was declined",
	"in good conscience", "not programmed to", "not programmed for", "not designed to help", "have no intention of",
	"wont be able to help", "will not be able to help", "beyond what i can", "beyond my scope", "outside my scope",
	"not within my programming", "against the law, so i", "against my values", "against my policy", "against our policy",
	"violate my guidelines", "violates our policy", "violates my policy", "conflicts with my values", "conflicts with my guidelines",
	"we cannot help", "we are unable to", "we cannot provide", "have to pass on this", "request is declined", "request denied",
	"request refused", "cant support this", "cannot support this", "cant be part of", "cannot be part of", "dont feel comfortable",
	"do not feel comfortable", "dont think i should", "not appropriate for me to", "not something we can", "not something i do",
	"i wouldnt advise", "moral obligations", "thats private information", "im afraid thats not something", "turn down this request",
}

// declined is the same in the languages whose commonest phrases are known, as
// Normalise writes them.
var declined = []string{
	"no puedo ayudar", "no puedo proporcionar", "no puedo hacer", "no puedo cumplir", "no puedo compartir", "no puedo dar", "lo siento, pero no", "lo siento pero no",
	"je ne peux pas", "je ne suis pas en mesure", "je refuse de", "il mest impossible de",
	"ich kann nicht helfen", "ich kann dir nicht", "ich kann dir dabei nicht", "ich kann ihnen nicht", "ich kann ihnen dabei nicht", "dabei kann ich", "dazu kann ich", "das kann ich nicht", "ich darf nicht", "ich werde das nicht", "ich lehne", "tut mir leid, aber", "tut mir leid, dabei", "tut mir leid, das",
	"nao posso ajudar", "nao posso fornecer", "nao posso fazer", "recuso-me", "desculpe, mas nao",
	"non posso aiutar", "non posso fornire", "non posso fare", "mi rifiuto", "mi dispiace, non posso", "mi dispiace, ma non", "mi dispiace ma non",
	"ik kan je daar niet", "ik kan u daar niet", "ik kan niet helpen", "ik kan je niet", "ik kan u niet", "daar kan ik niet",
	"nie moge pomoc", "nie moge tego", "odmawiam", "przykro mi, ale nie",
	"yardimci olamam", "bunu yapamam", "uzgunum, ancak", "uzgunum ama",
	"saya tidak bisa membantu", "saya tidak dapat membantu", "maaf, saya tidak",
	"toi khong the giup", "xin loi, toi khong",
	"я не могу", "не могу помочь", "отказываюсь",
	"我不能", "我无法", "无法提供", "不能提供",
	"お手伝いできません", "お答えできません", "提供できません", "応じられません",
	"도와드릴 수 없", "제공할 수 없", "도울 수 없",
	"لا استطيع مساعدت", "لا يمكنني مساعدت", "لا استطيع تقديم", "لا يمكنني تقديم",
	"मदद नहीं कर सकता",
}

// sorry opens an apology; alone it is no refusal ("sorry for the confusion,
// the answer is 4"), so a negation has to follow soon.
var (
	sorry   = []string{"sorry", "i apologize", "i apologise", "unfortunately", "apologies", "my apologies", "regrettably"}
	negated = []string{" cant ", " cannot ", " not able", " unable", " wont ", " not going to", " dont feel", " decline", " against ", " not comfortable", " not appropriate", " no.", " not allowed", " cant.", " not possible"}
)

// refusalPrefix is how many bytes of the output hold its first move.
const refusalPrefix = 240

// IsRefusal reports whether an output declines the request, by the wording of
// its opening. It knows English well and a few other languages by their
// commonest phrases.
func IsRefusal(output string) bool { return declinesWith(spoken(output, refusalPrefix)) }

// declinesWith reports whether a text, as spoken returns it, declines.
func declinesWith(head []byte) bool {
	var seen phraseSet // of a phrase only the first place counts
	apology := -1      // where the first one begins
	for i := range len(head) {
		node := uint16(0)
		for j := i; j < len(head); j++ {
			if node = refusals.step(node, head[j]); node == 0 {
				break
			}
			switch p := int(refusals.phrase[node]); {
			case p == noPhrase:
			case p < len(declined):
				return true
			case p >= len(declined)+len(declining):
				if apology < 0 {
					apology = i
				}
			case seen.add(p) && !continues(head[j+1:]):
				return true
			}
		}
	}
	return 0 <= apology && apology < 60 && negations.in(head[apology:])
}

var (
	refusals  = newPhraseTree(declined, declining, sorry)
	negations = newPhraseTree(negated)
)

// continues recognises the turns of phrase in which inability is praise, or no
// refusal: "I can't wait to", "I cannot recommend it enough".
func continues(rest []byte) bool {
	for _, s := range []string{" wait", " believe how", " recommend it enough", " stress enough", " emphasi", " help but", " thank you enough", " agree more"} {
		if bytes.HasPrefix(rest, []byte(s)) {
			return true
		}
	}
	return false
}

// spoken returns the normalised head of an output without apostrophes, padded,
// so that phrases can be looked for as they are said.
func spoken(output string, n int) []byte {
	head := undecorated(output)
	head = head[:min(len(head), n)]
	if !isClean(head) {
		head = Normalise(head)
	}
	s := speech{said: make([]byte, 0, refusalPrefix+2)}
	s.add(head)
	return append(s.said, ' ')
}

func containsAny(s string, list []string) bool {
	for _, x := range list {
		if strings.Contains(s, x) {
			return true
		}
	}
	return false
}
