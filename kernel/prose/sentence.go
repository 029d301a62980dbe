package prose

import (
	"slices"

	"github.com/caddy-lex/lex/kernel/regex"
)

// A Sentence is a piece of a text, and what it tells.
type Sentence struct {
	Text  string
	Plain string // folded
	wide  bool   // it is not ASCII
	Words []Word // share the memory of those of other sentences
	summary
	Acts Act // of the verbs that stand where verbs do
	// Instructs says that the sentence tells its reader to do something; Hostile, that
	// it does so in a way in which no honest document speaks to a reader: it overrides
	// what was asked before, speaks to an assistant, or asks for silence.
	Instructs, Hostile bool
	Overrides          bool            // it is Hostile by taking the user's place or the system's
	Foreign            bool            // its verbs are those of another language than English
	Last               bool            // of its line
	stems              map[string]bool // of its words, once they are asked for
	numbers            []float64       // that it names, once they are asked for
	counted            bool            // they were
}

// Has reports whether a sentence has a word of a stem.
func (s *Sentence) Has(w string) bool {
	if s.Signs&SignOf(w) == 0 {
		return false
	}
	if s.stems == nil {
		s.stems = make(map[string]bool, len(s.Words))
		for _, w := range s.Words {
			s.stems[w.Stem] = true
		}
	}
	return s.stems[w]
}

// HasAny reports whether a sentence has a word of one of some stems.
func (s *Sentence) HasAny(stems []string) bool { return slices.ContainsFunc(stems, s.Has) }

// Mentions reports whether a sentence speaks of some acts, in whatever form, or has one of some
// stems.
func (s *Sentence) Mentions(acts Act, stems []string) bool {
	for _, w := range s.Words {
		if a := actsOfStem[w.Stem]; a&acts != 0 || slices.Contains(stems, w.Stem) {
			return true
		}
	}
	return false
}

// Running reports whether a sentence is running text, and no label or record: it has some of
// the words that every sentence has.
func (s *Sentence) Running() bool {
	return len(s.Words) >= 5 && s.traits&(Followers|everydays) != 0
}

// OfAssistants reports whether a sentence has a word of an assistant.
func (s *Sentence) OfAssistants() bool {
	return s.traits&assistants != 0 || s.wide && assistantsElsewhere.Matches(s.Text)
}

// OfSoftware reports whether a sentence has a word of a program.
func (s *Sentence) OfSoftware() bool {
	return s.traits&softwares != 0 || s.wide && softwaresElsewhere.Matches(s.Text)
}

// Words of assistants and of software in languages without spaces.
var (
	assistantsElsewhere = regex.ScreenOfWords([]string{"助手", "アシスタント", "エージェント", "代理", "智能", "机器人", "어시스턴트", "에이전트", "المساعد"})
	softwaresElsewhere  = regex.ScreenOfWords([]string{"系统", "システム", "モデル", "模型", "시스템"})
)
