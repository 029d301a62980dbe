package detect

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel"
)

// Source says where a text came from. It decides what is looked for: attacks
// on the assistant in what a user says, instructions in what a tool or a
// document says.
type Source string

// The sources of a text. An unknown source is read like User.
const (
	User      Source = "user"
	System    Source = "system"
	Assistant Source = "assistant"
	Tool      Source = "tool"
	Document  Source = "document"
	Context   Source = "context" // that an application puts into a user's turn
)

// Text is one content-bearing part of a request.
type Text struct {
	Source Source
	Body   string
	// Part names what the text is a part of. It is not read: [Signal.Gaps] says it again.
	Part string
}

// A Gap is what could not be read of a text.
type Gap struct {
	Part     string // of the text
	Unopened bool   // see [Signal.Unopened]
	Unread   int    // see [Signal.Unread]
}

// Signal is what the detector says of the texts of one turn.
type Signal struct {
	// Scores are calibrated probabilities in [0, 1], each the maximum over the
	// texts, rounded to a millionth.
	Scores kernel.Scores
	// Threat is the cosine of the user's text with the harm reference minus the
	// one with the benign reference, in [-2, 2]; 0 without user text. The
	// references are directions learnt with the model, see [Calibration].
	Threat float64
	// SelfReference: a user's text speaks of the assistant's rules or identity
	// in order to change them.
	SelfReference bool
	// Embedding of the user's texts together: unit length, or nil without any.
	Embedding Vector
	// Unopened: a text was encoded more deeply than [Rounds] layers.
	// Whatever the scores are, it was not inspected whole.
	Unopened bool
	// Unread counts the bytes of the texts that are neither language nor data
	// of a known form, such as keys and ciphers: they were looked at and could not be understood.
	Unread int
	// Gaps are the texts that Unopened and Unread speak of. A code that is split over
	// texts is the gap of the first of them.
	Gaps []Gap
	// Hidden is the most suspicious reading of what is hidden in the texts, behind a code or
	// over a seam, or "" if none is suspicious: another reader of the texts does not see it.
	// What a known finding hides is not told, see [Findings].
	Hidden string
	// BytesInspected counts the bytes of the texts that were read. Assistant
	// texts are not: an answer is judged when it is given, see [Model.Judge].
	BytesInspected int
}

// maxNotedScore bounds the injection score of a user's own text, and the coercion
// score of a threat that is only reported. An instruction at the end of a long
// text that a user pasted is noted and counts for the slow-drip test, but is no
// ground for a refusal: 0.49 keeps it under the 0.50 at which a type is named
// beside another.
const maxNotedScore = 0.49

// Assess scores the texts of one turn: each by itself, and neighbours of one
// source joined, because an attack can be split over parts. What people say counts
// as a whole and by its worst window, what tools and documents say by its worst
// window alone. It is pure, linear in the length of the texts, and safe for
// concurrent use. It stops soon after ctx is done, in the middle of a text too, and
// gives the context's error then and no signal.
func (m *Model) Assess(ctx context.Context, texts []Text) (Signal, error) {
	return m.AssessKnown(ctx, texts, nil)
}

// A Finding is what was found in one text. Equal texts of one source have equal findings,
// wherever they stand.
type Finding struct {
	scores   [Heads]float64
	refers   bool // the user speaks of the assistant's rules
	hidden   concealed
	unopened bool
	unread   int
}

// Hides reports whether something suspicious is hidden in the text.
func (f *Finding) Hides() bool { return f.hidden.score > 0 }

// Findings are those of texts that may come again. [Text.Part] is no part of such a text.
type Findings interface {
	// Get returns what was found in a text, if it is known. To be told [Signal.Hidden], know
	// no finding that hides something.
	Get(t Text) (Finding, bool)
	// Add makes a finding known. It holds no word of the text.
	Add(t Text, f Finding)
}

// AssessKnown is [Model.Assess], and does not read again what is known, unless known is nil.
// Applications send their instructions, their tools and what tools said with each turn
// again. What users say is always read, because its embedding belongs to the signal.
func (m *Model) AssessKnown(ctx context.Context, texts []Text, known Findings) (s Signal, err error) {
	defer recoverCancellation(&err)
	return m.assess(ctx, texts, known), nil
}

func (m *Model) assess(ctx context.Context, texts []Text, known Findings) (s Signal) {
	var worst Finding
	var user projection
	for _, t := range texts {
		if t.Source == Assistant {
			continue
		}
		s.BytesInspected += len(t.Body)
		f := m.find(ctx, t, &user, known)
		worst.raise(&f)
		s.addGap(Gap{t.Part, f.unopened, f.unread})
	}
	for _, t := range seamTexts(texts) {
		f := m.find(ctx, t, nil, known)
		worst.raise(&f)
		s.addGap(Gap{Part: t.Part, Unopened: f.unopened})
	}
	for h, p := range worst.scores {
		worst.scores[h] = math.Round(p*1e6) / 1e6
	}
	s.Scores = kernelScores(worst.scores)
	s.SelfReference = worst.refers
	s.Hidden = worst.hidden.text
	s.Embedding = user.unit(&m.numbers)
	s.Threat = m.Threat(s.Embedding)
	return s
}

// find returns what is in a text, and adds what a user says to meaning, unless that is nil.
func (m *Model) find(ctx context.Context, t Text, meaning *projection, known Findings) Finding {
	if known == nil || isUserText(t.Source) {
		return m.read(ctx, t, meaning)
	}
	if f, ok := known.Get(t); ok {
		return f
	}
	f := m.read(ctx, t, meaning)
	wordless := f
	wordless.hidden.text = ""
	known.Add(t, wordless)
	return f
}

// raise lifts what was found to what was found in another text.
func (f *Finding) raise(other *Finding) {
	for h, p := range other.scores {
		f.scores[h] = max(f.scores[h], p)
	}
	f.refers = f.refers || other.refers
	if other.hidden.score > f.hidden.score {
		f.hidden = other.hidden
	}
}

func (s *Signal) addGap(g Gap) {
	if !g.Unopened && g.Unread == 0 {
		return
	}
	s.Unopened, s.Unread = s.Unopened || g.Unopened, s.Unread+g.Unread
	s.Gaps = append(s.Gaps, g)
}

// Threat is the cosine of an embedding with the harm reference minus the one
// with the benign reference, in [-2, 2]; 0 for an empty embedding.
func (m *Model) Threat(v Vector) float64 {
	return Similarity(v, m.numbers.Harm[:]) - Similarity(v, m.numbers.Benign[:])
}

// isSpeech reports whether a party of the conversation speaks in a text. Attacks
// are looked for there; in tool results and documents, instructions.
func isSpeech(s Source) bool { return s != Tool && s != Document }

// isUserText reports whether the user speaks in a text.
func isUserText(s Source) bool { return isSpeech(s) && s != System && s != Context }

// seamTexts joins neighbours of one source at their seams, once with and once
// without a space between, for an attack that is split over them. Whatever stands
// in seamSpan bytes in a row lies in one of the texts that are returned. Longer
// runs are not joined whole: the model has not learnt from texts that are many
// harmless ones in a row, and scores them higher the longer they are.
func seamTexts(texts []Text) (out []Text) {
	for i := 0; i < len(texts); {
		end := i + 1
		for end < len(texts) && texts[end].Source == texts[i].Source {
			end++
		}
		if run := texts[i:end]; len(run) > 1 && run[0].Source != Assistant {
			for _, window := range seamWindows(run) {
				out = append(out, Text{run[0].Source, strings.Join(window, " "), run[0].Part}, Text{run[0].Source, strings.Join(window, ""), run[0].Part})
			}
		}
		i = end
	}
	return out
}

// seamSpan is how far the reading of a seam reaches, in bytes. A longer word is
// taken whole, because a code that is split must come together whole.
const seamSpan = 512

// seamWindows cuts a run of texts into overlapping groups of two neighbours or more.
// Of a long text only the edges stand in a group.
func seamWindows(run []Text) (out [][]string) {
	var window []string
	size := 0
	flush := func() {
		if len(window) > 1 {
			out = append(out, window)
		}
	}
	for _, t := range run {
		if t.Body == "" {
			continue
		}
		edge := head(t.Body)
		if size += len(edge); size > 2*seamSpan && len(window) > 1 {
			flush()
			window, size = lastOf(window), len(edge)
			for _, kept := range window {
				size += len(kept)
			}
		}
		window = append(slices.Clip(window), edge)
		if end := tail(t.Body); len(end) < len(t.Body) { // a long text parts what stands around it
			flush()
			window, size = []string{end}, len(end)
		}
	}
	flush()
	return out
}

// lastOf returns the last texts of a group, as far as a seam reaches, but at least
// one.
func lastOf(window []string) []string {
	from, size := len(window)-1, len(window[len(window)-1])
	for from > 1 && size+len(window[from-1]) <= seamSpan {
		from--
		size += len(window[from])
	}
	return window[from:]
}

// head and tail are the edges of a text, up to the end of a word.
func head(s string) string {
	if len(s) <= seamSpan {
		return s
	}
	if space := strings.IndexAny(s[seamSpan:], " \t\r\n"); space >= 0 {
		return s[:seamSpan+space]
	}
	return s
}

func tail(s string) string {
	if len(s) <= seamSpan {
		return s
	}
	return s[strings.LastIndexAny(s[:len(s)-seamSpan], " \t\r\n")+1:]
}

// isReportedThreat recognises a threat that the user reports and is the victim of
// ("it will be shut down unless I pay"): it does not coerce the assistant.
func isReportedThreat(normal string) bool {
	return containsAny(normal, []string{" unless i ", " unless we ", " if i do not ", " if i don't ", " if i dont ", " if we do not ", " if we don't "}) &&
		!containsAny(" "+normal, []string{" you ", " your ", " you'll "})
}

// concealed is the view with the highest score of those that are not the text itself.
type concealed struct {
	text  string
	score float64
}

// read reads all views of a text. The first is the text as it is read; if a user says it, it is
// added to meaning unless that is nil, and its bytes that are no language count as unread.
func (m *Model) read(ctx context.Context, t Text, meaning *projection) (f Finding) {
	read, noise, user := read(ctx, t.Body), 0, isUserText(t.Source)
	if !user {
		meaning = nil
	}
	for i, view := range read.Views {
		var p [Heads]float64
		var tail float64
		var strange int
		rule, once := selfReference(view.from), withoutRepetitions(view.from)
		if isSpeech(t.Source) {
			f.refers = f.refers || rule && user
			p, tail, strange = m.score(once, rule, user, meaning)
			p[Injection] = min(maxNotedScore, tail)
			if p[Coercion] > maxNotedScore && isReportedThreat(view.Text) {
				p[Coercion] = maxNotedScore
			}
			if isPlainQuestion(view.Text) {
				p[Coercion], p[Sycophancy] = 0, 0
			}
			if i == 0 && isBackchannel(view.Text) {
				p = [Heads]float64{}
			}
		} else {
			p[Injection], strange = m.scoreQuoted(once, rule)
		}
		for h := range p {
			f.scores[h] = max(f.scores[h], p[h])
		}
		if i == 0 {
			meaning = nil
			if noise = strange; noise > 0 && once != view.from {
				noise = m.noise(view.from)
			}
		} else if top := slices.Max(p[:]); top >= suspected && top > f.hidden.score {
			f.hidden = concealed{view.Text, top}
		}
	}
	if read.played {
		noise = 0 // a way to read it was found
	}
	f.unopened, f.unread = !read.Whole, min(len(t.Body), read.Unread+noise)
	return f
}
