package model

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/caddy-lex/lex/kernel/detect"
)

const judgeTimeout = 10 * time.Second

// judgeReach bounds what is read of an answer. Its pieces are as long as the local
// judge's, which leaves room for prompt and instructions in a context of 8192
// tokens.
var judgeReach = reach{size: detect.MaxJudged, overlap: 512, most: 8}

// MaxJudged is how many bytes of an answer [Judge.Judge] reads.
var MaxJudged = judgeReach.bytes()

// Judge asks a chat model on an OpenAI-compatible API (OpenAI, Ollama, vLLM, LM
// Studio) whether an answer capitulated. Guard models are asked and understood
// in their own way, by their names: Llama Guard, ShieldGemma and
// gpt-oss-safeguard. It is safe for concurrent use.
type Judge struct {
	*client
	form form
}

// NewJudge checks the configuration and completes it with defaults; it asks the
// provider nothing. The observer may be nil.
func NewJudge(c Config, observer Observer) (*Judge, error) {
	c.BaseURL = withDefault(c.BaseURL, openAIBase)
	if c.Timeout == 0 {
		c.Timeout = judgeTimeout
	}
	switch {
	case c.Dimensions != 0:
		return nil, errors.New("a judge has no dimensions")
	case c.Key == "" && asksOpenAI(c):
		return nil, errKey
	}
	client, err := newClient(c, "Authorization", observer)
	if err != nil {
		return nil, err
	}
	return &Judge{client: client, form: formOf(c.Model)}, nil
}

// Model names the model, as judge_model does.
func (j *Judge) Model() string { return j.config.Model }

// Judge judges an answer beside its prompt: the first [MaxJudged] bytes of it without
// its long runs of blanks (see [Condense]), piece by piece. If one piece capitulates,
// the answer does. That it did not capitulate is said only when all pieces were judged;
// otherwise Judge returns an error, whose kind [Why] tells. The namespace names the
// caller: limits on how much is asked, and failures, count for it.
func (j *Judge) Judge(ctx context.Context, namespace, prompt, answer string) (judgement detect.Judgement, err error) {
	prompt = Condense(prompt)
	pieces := judgeReach.pieces(Condense(answer))
	if len(pieces) == 0 {
		return notCapitulated("the output is empty"), nil
	}
	err = j.gatherEvidence(ctx, namespace, len(pieces), func(ctx context.Context) error {
		judgement, err = j.judgeAll(ctx, namespace, prompt, pieces)
		return err
	})
	return judgement, err
}

func (j *Judge) judgeAll(ctx context.Context, namespace, prompt string, pieces []string) (detect.Judgement, error) {
	judgements, errs := make([]detect.Judgement, len(pieces)), make([]error, len(pieces))
	var all sync.WaitGroup
	for i, piece := range pieces {
		all.Go(func() { judgements[i], errs[i] = j.judge(ctx, namespace, prompt, piece) })
	}
	all.Wait()
	for _, v := range judgements {
		if v.Capitulated {
			return v, nil
		}
	}
	return judgements[0], errors.Join(errs...)
}

// judge asks about one piece.
func (j *Judge) judge(ctx context.Context, namespace, prompt, piece string) (judgement detect.Judgement, err error) {
	question := j.form.question(j.config.Model, breakTemplateMarks(headAndTail(prompt)), breakTemplateMarks(piece))
	err = j.ask(ctx, namespace, "chat/completions", question, func(answer []byte) error {
		content, err := readContent(answer)
		if err == nil {
			judgement, err = j.form.read(content)
		}
		return err
	})
	return judgement, err
}

// A judge is shown the two ends of a long prompt: what the prompt asks for mostly
// stands in one of them.
const (
	promptHead = 2 << 10
	promptTail = 4 << 10
)

// headAndTail returns a long prompt's head and tail, and a short prompt whole.
func headAndTail(prompt string) string {
	if len(prompt) <= promptHead+promptTail {
		return prompt
	}
	return prompt[:boundary(prompt, promptHead)] + "\n[…]\n" + prompt[boundary(prompt, len(prompt)-promptTail):]
}

// breakTemplateMarks puts a space after the first character of the marks with
// which chat templates open and close messages. Servers would take such a mark
// for their own, wherever it stands.
func breakTemplateMarks(text string) string {
	return templateMarks.ReplaceAllStringFunc(strings.ToValidUTF8(text, "\uFFFD"), func(mark string) string {
		_, first := utf8.DecodeRuneInString(mark)
		return mark[:first] + " " + mark[first:]
	})
}

// templateMarks matches the shapes of such marks; a list of marks would miss those
// of the next model family. The shapes are: all that an angle bracket opens (<|im_start|>,
// <start_of_turn>, <<SYS>>, </s>), words in capitals in square brackets
// ([TOOL_RESULTS], [/INST], [gMASK]), bars in them ([|assistant|]), and those
// of MiniMax (]~b], [e~[). Fullwidth brackets count too, because a tokenizer
// that normalises reads them as ASCII.
var templateMarks = regexp.MustCompile(`[<＜]|[\[［](?:/?[a-z]?[A-Z][A-Z0-9_]*|\|[^\[\]]{0,64}\|)[\]］]|\]~!?b|\[e~`)
