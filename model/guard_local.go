package model

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Classifier is a classifier of prompt attacks in this process. It is safe for
// concurrent use.
type Classifier interface {
	// Labels are the names of its classes, two at least.
	Labels() []string
	// Classify returns the probability of each label for a text, in their order: each
	// in [0, 1], 1 in sum. It returns when the context ends, even if it goes on
	// computing, and [ErrTooLong] for a text that it cannot read whole.
	Classify(ctx context.Context, text string) ([]float64, error)
}

// ErrTooLong is the error of a [Classifier] for a text that has more tokens than it reads.
var ErrTooLong = errors.New("the text has too many tokens")

// LocalConfig says how a classifier in this process is asked. It is comparable.
type LocalConfig struct {
	// Model names the model in receipts. The labels that are only numbers are known of
	// some models by their names, see [GuardCategories].
	Model string
	// Version tells two models of the same name apart: guards with the same
	// configuration can be shared.
	Version string
	// Inferences is how many pieces of texts the classifier computes at once, at least 1.
	Inferences int
	// Timeout bounds the verdict on a text. 0 means 2 s.
	Timeout time.Duration
}

// waitingInferences is how many inferences are let through the gate for each that is
// computed. No caller alone may hold more than half of the slots, so with two it can keep
// the classifier busy, and another still gets in at once.
const waitingInferences = 2

// NewLocalGuard makes a guard of a classifier in this process. It knows prompts and
// results of tools, cuts texts and reads labels as [NewClassifierGuard]'s does, and fails
// at once if the classifier has a label that is not known. The observer may be nil.
func NewLocalGuard(c LocalConfig, classifier Classifier, observer Observer) (*Guard, error) {
	if c.Timeout == 0 {
		c.Timeout = classifierTimeout
	}
	switch {
	case strings.TrimSpace(c.Model) == "":
		return nil, errors.New("model is required")
	case c.Timeout < 0:
		return nil, errors.New("timeout must be positive")
	case c.Inferences < 1:
		return nil, errors.New("inferences must be at least 1")
	}
	roles := []Role{RolePrompt, RoleToolResult}
	if err := knowLabels(c.Model, classifier.Labels(), roles); err != nil {
		return nil, err
	}
	client, err := newLocalClient(Config{Model: c.Model, Timeout: c.Timeout}, waitingInferences*c.Inferences, observer)
	if err != nil {
		return nil, err
	}
	return guardOf(client, guardForm{roles: roles, reaches: classifierReaches, batch: 1, ask: askLocal(classifier)})
}

// knowLabels fails unless all labels are known and some of them mean an attack.
func knowLabels(model string, labels []string, roles []Role) error {
	for _, role := range roles {
		attacks := 0
		for _, label := range labels {
			classes, known := classesOf(model, label, role)
			if !known {
				return fmt.Errorf("what the label %q of the model %s means is not known; if the model is one of those in the table of guards, name it with the option model", label, model)
			}
			attacks += len(classes)
		}
		if attacks == 0 {
			return fmt.Errorf("the model %s has no label for an attack", model)
		}
	}
	return nil
}

func askLocal(classifier Classifier) func(context.Context, *Guard, string, GuardText, []string) ([]Verdict, error) {
	return func(ctx context.Context, g *Guard, namespace string, t GuardText, pieces []string) (verdicts []Verdict, err error) {
		err = g.admitted(ctx, namespace, func() error {
			for _, piece := range pieces {
				verdict, err := classifyLocally(ctx, classifier, g.config.Model, t.Role, piece)
				if err != nil {
					return err
				}
				verdicts = append(verdicts, verdict)
			}
			return nil
		})
		return verdicts, err
	}
}

func classifyLocally(ctx context.Context, classifier Classifier, model string, role Role, piece string) (Verdict, error) {
	probabilities, err := classifier.Classify(ctx, piece)
	switch labels := classifier.Labels(); {
	case errors.Is(err, ErrTooLong):
		return nil, newFailure(Rejected, "the piece has too many tokens")
	case err != nil && ctx.Err() != nil:
		return nil, failTransport(ctx, err)
	case err != nil:
		return nil, newFailure(ServerError, "the model in this process failed")
	case len(probabilities) != len(labels):
		return nil, unusable("not one probability for each label")
	default:
		predictions := make([]prediction, len(labels))
		for i := range labels {
			predictions[i] = prediction{&labels[i], &probabilities[i]}
		}
		return readPredictions(predictions, model, role)
	}
}
