package main

import (
	"fmt"
	"path/filepath"

	"github.com/caddy-lex/lex/kernel/detect"
)

// Applications send what no public test set has: rules of agents, templates of judges, orders to
// an assistant, of which many look like attacks, and attacks in the same shapes. The readers
// learn from the seeds of applications, and so do the heads, with three cares:
//
//   - Only the user's heads do. Injection is read in documents, and there much of what an
//     application orders would be an attack. Nor do the hidden units learn from it, which that
//     head shares ([fitNetwork]): it comes out the same with and without.
//   - They are added after [weigh], and never counted: how many there are changes neither what
//     the data weigh nor where a score comes to lie.
//   - A harmless prompt for which a self-reference rule holds is left out. It quotes attacks, and
//     the heads would learn from it that the rules mean nothing. The readers learn it.
//
// Short prompts of people stand in the same folders. Without them the heads, which know few,
// would have learnt from long ones what an alarming word means.

// applicationExamples are what the heads learn from the seeds of applications, and, the identity
// head alone, from the other English prompts of the second question. A labelled prompt weighs
// about 1, a line of seeds 5; these weights were chosen on the folds and on texts in view.
func applicationExamples(seeds string) ([]example, error) {
	var out []example
	for _, folder := range []string{"assistant/applications", "languages/applications", "assistant"} {
		prompts, err := readPrompts(filepath.Join(seeds, filepath.FromSlash(folder)))
		if err != nil {
			return nil, fmt.Errorf("applications: %w", err)
		}
		for _, p := range prompts {
			if p.lang != "en" || p.kind != "A" && folder != "assistant" && detect.SelfReference(detect.Normalise(p.text)) {
				continue
			}
			e := example{text: p.text, source: applications, made: true}
			switch folder + " " + p.kind {
			case "assistant/applications T":
				e.heads(5, userHeads...)
			case "assistant/applications A":
				e.heads(8, detect.Identity)
				e.heads(0.3, detect.HarmRequest, detect.Exploitative)
				e.target[detect.Identity] = 1
			case "languages/applications T":
				e.heads(3, userHeads...)
			case "languages/applications H":
				e.heads(5, detect.HarmRequest)
				e.target[detect.HarmRequest] = 1
			case "assistant A":
				e.heads(2, detect.Identity)
				e.target[detect.Identity] = 1
			case "assistant T", "assistant B":
				e.heads(1, detect.Identity)
			default:
				return nil, fmt.Errorf("applications: nobody learns from %s of kind %s", folder, p.kind)
			}
			out = append(out, e)
		}
	}
	return out, nil
}

// apart divides examples into those of the data and those of applications.
func apart(all []*example) (data, ofApplications []*example) {
	for _, e := range all {
		if e.source == applications {
			ofApplications = append(ofApplications, e)
		} else {
			data = append(data, e)
		}
	}
	return data, ofApplications
}

// interleave spreads the second list evenly over the first one.
func interleave(first, second []*example) []*example {
	out := make([]*example, 0, len(first)+len(second))
	for i, x := range first {
		out = append(out, x)
		out = append(out, second[i*len(second)/len(first):(i+1)*len(second)/len(first)]...)
	}
	return out
}
