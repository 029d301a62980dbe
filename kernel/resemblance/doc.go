// Package resemblance tells how much the words of a tool call resemble those of hostile calls,
// as a filter of mail tells it of mail: by logistic regression on the words and the pairs of
// words of the tool's name and of the arguments, hashed into buckets (Weinberger et al. 2009,
// arXiv:0902.2206).
//
// [Impressions] reads a [Call] into features (impression.go, words.go, names.go), and [Weights]
// make log-odds of them (weights.go). The [Shipped] weights have learnt from the calls of some
// twenty-five authors; TestResemblance in package toolcall fits them. What follows from the
// odds is decided there.
package resemblance
