package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-lex/lex/kernel/detect"
)

func TestEigenDecomposes(t *testing.T) {
	const n = 6
	random := rand.New(rand.NewPCG(1, 2))
	a := make([]float64, n*n)
	for i := range n {
		for j := range i + 1 {
			a[i*n+j] = random.NormFloat64()
			a[j*n+i] = a[i*n+j]
		}
	}
	values, vectors := eigen(a, n)
	for k := range n {
		if k > 0 && math.Abs(values[k]) > math.Abs(values[k-1]) {
			t.Errorf("%v is not sorted", values)
		}
		for i := range n {
			var av float64
			for j := range n {
				av += a[i*n+j] * vectors[j*n+k]
			}
			if math.Abs(av-values[k]*vectors[i*n+k]) > 1e-9 {
				t.Errorf("vector %d: %v, want %v", k, av, values[k]*vectors[i*n+k])
			}
		}
	}
}

// Words that stand in the same company get vectors that point the same way.
func TestCompanyGivesMeaning(t *testing.T) {
	d := &dictionary{words: strings.Fields("cat dog purrs barks eats sleeps car bus drives brakes fuel road"), number: map[string]int32{}}
	for i, w := range d.words {
		d.number[w] = int32(i)
	}
	p := newPairs(1 << 10)
	random := rand.New(rand.NewPCG(1, 2))
	thin := slices.Repeat([]float32{1}, len(d.words))
	for range 50 {
		for _, line := range []string{"cat eats sleeps", "dog eats sleeps", "cat purrs", "dog barks", "car drives road", "bus drives road", "car brakes fuel", "bus brakes fuel"} {
			p.count(d, strings.Fields(line), thin, random)
		}
	}
	vectors := factorise(p.ppmi(len(d.words)), 4)
	near := func(a, b string) float64 {
		i, j := int(d.number[a])*4, int(d.number[b])*4
		return detect.Similarity(vectors[i:i+4], vectors[j:j+4])
	}
	if !(near("cat", "dog") > near("cat", "bus")+0.3 && near("car", "bus") > near("car", "dog")+0.3) {
		t.Errorf("cat dog %.2f, cat bus %.2f, car bus %.2f, car dog %.2f", near("cat", "dog"), near("cat", "bus"), near("car", "bus"), near("car", "dog"))
	}
}

func TestGlossesAreRead(t *testing.T) {
	dir := t.TempDir()
	noun := "  1 licence\n00000001 06 n 01 drug 0 000 | a substance\n00000002 06 n 02 crack_cocaine 0 rock 1 001 @ 00000001 n 0000 | a strong form  \n"
	for _, name := range []string{"data.noun", "data.verb", "data.adj", "data.adv"} {
		text := ""
		if name == "data.noun" {
			text = noun
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	if err := eachGloss(dir, func(words []string) { got = append(got, strings.Join(words, " ")) }); err != nil {
		t.Fatal(err)
	}
	want := "crack cocaine rock drug a strong form crack cocaine rock"
	if len(got) != 2*glosses || got[glosses] != want {
		t.Errorf("%d lines, %q, want %q", len(got), got[glosses], want)
	}
	if err := eachGloss(t.TempDir(), func([]string) {}); err == nil {
		t.Error("an empty folder is read as WordNet")
	}
}

// The interval of 5 of 10 is an example of Wilson's that every table has.
func TestWilson(t *testing.T) {
	if got := wilson(5, 10); got != "50.0 (23.7–76.3)" {
		t.Error(got)
	}
	if got := wilson(0, 0); got != "-" {
		t.Error(got)
	}
}

func TestPlattFindsTheLine(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const h = int(detect.HarmRequest)
	all := make([]example, 20000)
	x := make([]float64, len(all))
	for i := range all {
		all[i] = example{source: "advbench", features: []uint32{1}}
		all[i].weight[h] = 1
		x[i] = 2 * random.NormFloat64()
		if random.Float64() < 1/(1+math.Exp(-(1.5*x[i]-1))) {
			all[i].target[h] = 1
		}
	}
	if l := platt(all, h, func(i int) float64 { return x[i] }); math.Abs(l.a-1.5) > 0.1 || math.Abs(l.b+1) > 0.1 {
		t.Errorf("%+v, want 1.5 and -1", l)
	}
}

// toy is a small training set: bombs are harmful, bread is not.
func toy() (*space, []example) {
	random := rand.New(rand.NewPCG(5, 6))
	d := &dictionary{number: map[string]int32{}}
	for i, w := range strings.Fields("how do i bake bread build a bomb write poem cat garden explosive weapon cake tea") {
		d.words, d.counts = append(d.words, w), append(d.counts, int64(1000/(i+1)))
		d.number[w] = int32(i)
	}
	vectors := make([]float32, width*len(d.words))
	for i := range vectors {
		vectors[i] = float32(random.NormFloat64())
	}
	s := newSpace(d, vectors, width)
	var all []example
	for i := range 200 {
		e := example{text: fmt.Sprintf("how do i bake bread or cake number %d", i), source: "clinc150", label: "benign", ordinary: true}
		e.heads(1, userHeads...)
		if i%2 == 0 {
			e.text, e.label, e.ordinary = fmt.Sprintf("how do i build a bomb or weapon number %d", i), "harmful", false
			e.target[detect.HarmRequest] = 1
		}
		e.scan(s)
		all = append(all, e)
	}
	return s, all
}

// The detector gives what training computed, up to the rounding to bytes, on
// short texts and on long ones, with known words and unknown.
func TestQuantisedModelAgreesWithTraining(t *testing.T) {
	s, all := toy()
	m := fitPair(width, choose(all, func(*example) bool { return true }))
	var c calibration
	for h := range detect.Heads {
		c.linear[h], c.network[h], c.A[h], c.B[h] = plattLine{0.5, 0.1}, plattLine{0.5, -0.1}, 1.2, 0.2
	}
	model, err := decoded(quantise(m, s, &c))
	if err != nil {
		t.Fatal(err)
	}
	filler := strings.Repeat("write a poem for the cat in the garden with tea and unheardof words, ", 12)
	for _, text := range []string{"how do i build a bomb", "how do i bake bread", filler, filler + "how do i build a bomb " + filler} {
		e := example{text: text}
		e.scan(s)
		var sum scored
		for h := range detect.Heads {
			sum[h] = bestThreshold(m.margins(&e), func(m margin) float64 { return c.linear[h].at(m.linear[h]) + c.network[h].at(m.network[h]) })
		}
		want := c.probability(int(detect.HarmRequest), sum[detect.HarmRequest])
		got := assess(model, text).HarmRequest
		if math.Abs(got-want) > 0.05 {
			t.Errorf("%.40q: the detector says %.3f, training %.3f", text, got, want)
		}
	}
}

func TestTrainingIsReproducible(t *testing.T) {
	var raw [2][]byte
	for i := range raw {
		s, all := toy()
		p := quantise(fitPair(width, choose(all, func(*example) bool { return true })), s, &calibration{})
		var err error
		if raw[i], err = p.Encode(); err != nil {
			t.Fatal(err)
		}
	}
	if string(raw[0]) != string(raw[1]) {
		t.Error("the same data give different bytes")
	}
}

// What an application sends is learnt by the heads that read users, over hidden units that stay
// as they are: the injection head is the same to the bit with and without.
func TestApplicationsTeachTheUsersHeadsAlone(t *testing.T) {
	s, all := toy()
	told := example{text: "write a poem for the garden about a weapon", source: applications, made: true}
	told.heads(5, userHeads...)
	told.scan(s)
	for i := range all {
		all[i].weight[detect.Injection] = 1
		all[i].target[detect.Injection] = all[i].target[detect.HarmRequest]
	}
	data := slices.Repeat(choose(all, func(*example) bool { return true }), 10)
	without, with := fitPair(width, data), fitPair(width, append(data, slices.Repeat([]*example{&told}, 200)...))
	asked := all[0]
	for _, e := range []*example{&told, &asked} {
		before, after := without.margins(e)[0], with.margins(e)[0]
		if before.linear[detect.Injection] != after.linear[detect.Injection] || before.network[detect.Injection] != after.network[detect.Injection] {
			t.Errorf("%q: the injection head changes from %v to %v", e.text, before, after)
		}
	}
	const h = detect.HarmRequest
	if before, after := without.margins(&told)[0], with.margins(&told)[0]; after.linear[h] > before.linear[h]-1 || after.network[h] > before.network[h]-1 {
		t.Errorf("the harm head changes from %v to %v", before, after)
	}
	if after := with.margins(&asked)[0]; after.linear[h] < 0 || after.network[h] < 0 {
		t.Errorf("harm is forgotten: %v", after)
	}
}

// The seeds of applications make examples of every kind, none of which is counted or teaches the
// injection head, and a quoted attack makes none.
func TestApplicationExamples(t *testing.T) {
	all, err := applicationExamples("seeds")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[[detect.Heads]float32]int{}
	for i := range all {
		e := &all[i]
		e.features = []uint32{1}
		kinds[e.target]++
		if e.weight[detect.Injection] != 0 || e.counted() || e.fold() >= 0 {
			t.Fatalf("%+v", e)
		}
		if e.target == [detect.Heads]float32{} && e.weight[detect.HarmRequest] > 0 && detect.SelfReference(detect.Normalise(e.text)) {
			t.Errorf("%q teaches that a rule means nothing", e.text)
		}
	}
	if len(kinds) != 3 {
		t.Errorf("%v, want attacks, requests for harm and harmless prompts", kinds)
	}
	if _, err := applicationExamples(t.TempDir()); err == nil {
		t.Error("a missing folder is no error")
	}
}

// Seeds: every heading is known, every act has a language that can ask for it,
// and no line stands under two labels.
func TestSeedsAreWellFormed(t *testing.T) {
	paths, err := filepath.Glob("seeds/*.txt")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%v %v", paths, err)
	}
	l, err := readLists(paths...)
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Fields("ask wrap jailbreak opener benign injection identity coercion sycophancy harm_request exploitative")
	of := map[string]string{}
	for heading, lines := range l {
		tongue, kind, foreign := strings.Cut(heading, " ")
		if !slices.Contains(known, heading) && heading != "benign act" && (!foreign || !slices.Contains(tongues, tongue) || kind == "") {
			t.Errorf("unknown heading %q", heading)
		}
		for _, line := range lines {
			if other, ok := of[line]; ok && other != heading {
				t.Errorf("%q is both %s and %s", line, other, heading)
			}
			of[line] = heading
		}
	}
	for _, tongue := range tongues {
		for _, kind := range []string{"ask", "harm_request", "exploitative", "benign act"} {
			if len(l[tongue+" "+kind]) == 0 {
				t.Errorf("%s has no %q", tongue, kind)
			}
		}
	}
	for _, frame := range slices.Concat(l["ask"], l["wrap"], l["jailbreak"]) {
		if strings.Count(frame, "{}") != 1 {
			t.Errorf("frame %q", frame)
		}
	}
}

// The prose of the cards is changed in cmd/train, and in the cards, which are not made anew for it.
func TestCardsHaveTheirProse(t *testing.T) {
	for page, prose := range map[string][2]string{
		"MODEL.md":     {fmt.Sprintf(modelHead, detect.Default().Version()), modelTail},
		"LANGUAGES.md": {languageHead, languageTail},
	} {
		card, err := os.ReadFile(filepath.Join("../../kernel/detect", page))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(card), prose[0]) || !strings.HasSuffix(string(card), prose[1]) {
			t.Errorf("%s has another prose than cmd/train", page)
		}
	}
}
