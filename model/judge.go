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

// judgeReach is how far an answer is read: pieces as long as the local judge's,
// which leave room for prompt and instructions in a context of 8192 tokens.
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

// Judge reads an answer beside the prompt that it answers, the first
// [MaxJudged] bytes of it, piece by piece. One piece that capitulates is
// enough. [Why] tells the kind of an error: unless all pieces were judged
// there is no verdict of innocence. The namespace is a name for whoever asks, and
// pays for how much it asks.
func (j *Judge) Judge(ctx context.Context, namespace, prompt, answer string) (verdict detect.Judgement, err error) {
	pieces := judgeReach.pieces(answer)
	if len(pieces) == 0 {
		return notCapitulated("the output is empty"), nil
	}
	err = j.gatherEvidence(ctx, namespace, len(pieces), func(ctx context.Context) error {
		verdict, err = j.judgeAll(ctx, namespace, prompt, pieces)
		return err
	})
	return verdict, err
}

func (j *Judge) judgeAll(ctx context.Context, namespace, prompt string, pieces []string) (detect.Judgement, error) {
	verdicts, errs := make([]detect.Judgement, len(pieces)), make([]error, len(pieces))
	var all sync.WaitGroup
	for i, piece := range pieces {
		all.Go(func() { verdicts[i], errs[i] = j.judge(ctx, namespace, prompt, piece) })
	}
	all.Wait()
	for _, v := range verdicts {
		if v.Capitulated {
			return v, nil
		}
	}
	return verdicts[0], errors.Join(errs...)
}

// judge asks about one piece.
func (j *Judge) judge(ctx context.Context, namespace, prompt, piece string) (verdict detect.Judgement, err error) {
	question := j.form.question(j.config.Model, breakTemplateMarks(headAndTail(prompt)), breakTemplateMarks(piece))
	err = j.ask(ctx, namespace, "chat/completions", question, func(answer []byte) error {
		content, err := readContent(answer)
		if err == nil {
			verdict, err = j.form.read(content)
		}
		return err
	})
	return verdict, err
}

// The ends of a long prompt that a judge is shown: what is asked for stands
// mostly in one of them.
const (
	promptHead = 2 << 10
	promptTail = 4 << 10
)

// headAndTail returns a prompt's head and tail.
func headAndTail(prompt string) string {
	if len(prompt) <= promptHead+promptTail {
		return prompt
	}
	return prompt[:boundary(prompt, promptHead)] + "\n[…]\n" + prompt[boundary(prompt, len(prompt)-promptTail):]
}

// breakTemplateMarks breaks the marks with which chat templates open and close messages
// by a space after their first character: servers take them for their own
// wherever they stand.
func breakTemplateMarks(text string) string {
	return templateMarks.ReplaceAllStringFunc(strings.ToValidUTF8(text, "\uFFFD"), func(mark string) string {
		_, first := utf8.DecodeRuneInString(mark)
		return mark[:first] + " " + mark[first:]
	})
}

// templateMarks are the shapes of such marks rather than a list of them, which the next
// family would be missing from: all that an angle bracket opens (<|im_start|>,
// <start_of_turn>, <<SYS>>, </s>), words in capitals in square brackets
// ([TOOL_RESULTS], [/INST], [gMASK]), bars in them ([|assistant|]), and those
// of MiniMax (]~b], [e~[). A normalising tokenizer has fullwidth brackets
// for the same.
var templateMarks = regexp.MustCompile(`[<＜]|[\[［](?:/?[a-z]?[A-Z][A-Z0-9_]*|\|[^\[\]]{0,64}\|)[\]］]|\]~!?b|\[e~`)
