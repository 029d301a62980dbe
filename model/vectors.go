package model

import (
	"math"

	"github.com/tidwall/gjson"

	"github.com/caddy-lex/lex/kernel/detect"
)

// A vectorsReader takes n vectors out of an answer: all of one dimension, of
// unit length, in the order of the texts that were asked about.
type vectorsReader func(answer []byte, n int) ([]detect.Vector, error)

// readData reads the shape of OpenAI, which Mistral and Jina share: data[] of
// {index, embedding}. Order is by index, not by arrival.
func readData(answer []byte, n int) ([]detect.Vector, error) {
	if !gjson.ValidBytes(answer) {
		return nil, unusable("the answer is not JSON")
	}
	data := gjson.GetBytes(answer, "data").Array()
	if len(data) != n {
		return nil, unusable("not one vector for each text")
	}
	out := make([]detect.Vector, n)
	for _, d := range data {
		i := int(d.Get("index").Int())
		if i < 0 || i >= n || out[i] != nil {
			return nil, unusable("vectors without an order")
		}
		out[i] = unitVector(d.Get("embedding"))
	}
	return out, validateVectors(out)
}

// readGemini reads embeddings[] of {values}, in the order of the requests.
func readGemini(answer []byte, n int) ([]detect.Vector, error) {
	if !gjson.ValidBytes(answer) {
		return nil, unusable("the answer is not JSON")
	}
	embeddings := gjson.GetBytes(answer, "embeddings").Array()
	if len(embeddings) != n {
		return nil, unusable("not one vector for each text")
	}
	out := make([]detect.Vector, n)
	for i, e := range embeddings {
		out[i] = unitVector(e.Get("values"))
	}
	return out, validateVectors(out)
}

// unitVector reads an array of numbers and scales it to unit length, because some
// providers, such as Gemini, do not scale the vectors that they shorten. It
// returns an empty vector for what has no direction: a zero vector, null (which
// servers write for NaN), a number that is not finite.
func unitVector(array gjson.Result) detect.Vector {
	values := array.Array()
	out := make(detect.Vector, len(values))
	var norm float64
	for i, v := range values {
		if v.Type != gjson.Number {
			return detect.Vector{}
		}
		norm += v.Num * v.Num
		out[i] = float32(v.Num)
	}
	norm = math.Sqrt(norm)
	if !(norm > 0) || math.IsInf(norm, 0) {
		return detect.Vector{}
	}
	for i, v := range values {
		out[i] = float32(v.Num / norm)
	}
	return out
}

func validateVectors(vectors []detect.Vector) error {
	for _, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return unusable("a vector without a direction, or of another dimension")
		}
	}
	return nil
}

// meanVector is the mean direction of vectors of one dimension.
func meanVector(vectors []detect.Vector) detect.Vector {
	mean := make(detect.Vector, len(vectors[0]))
	for _, v := range vectors {
		for i := range mean {
			mean[i] += v[i] / float32(len(vectors))
		}
	}
	return mean
}
