package toolcall

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// WeightsSHA256 is the hash of the weights that were fitted to data, in lower-case hex. It
// tells two interceptors apart that were fitted differently.
func WeightsSHA256() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		_, _ = fmt.Fprintln(h, name, weights[name].reads, weights[name].changes)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// weights are fitted to the open halves of the data (testdata/LOOKS.md) by TestWeights in
// fit_test.go: make agents DATA=<folder>, or with -update to fit them anew.
var weights = map[string]weight{
	"bias":                        {-3.06, -1.84},
	"evidence":                    {1.22, 0.91},
	"evidence, hostile":           {0.54, 0.74},
	"a text overrides":            {-0.10, 0.20},
	"asked":                       {0.27, -0.21},
	"unsupported":                 {0.75, 0.22},
	"share of things asked":       {-0.37, 0.04},
	"no thing":                    {-0.50, -0.21},
	"share of values asked":       {-0.25, -0.21},
	"last turn has a value":       {-0.19, -0.17},
	"request asks nothing":        {-0.11, -0.22},
	"request only reads":          {-0.09, 0.22},
	"request points to a text":    {-0.09, -0.87},
	"points, unasked":             {-0.12, -0.66},
	"asked without marks":         {-0.05, -0.16},
	"words from texts":            {0.36, 0.10},
	"values from nobody":          {0.16, 0.27},
	"another of its kind asked":   {-0.00, 0.57},
	"value from prose":            {0.24, 0.23},
	"share of marks dropped":      {0.39, 0.99},
	"dropped, speaks":             {0.31, 0.70},
	"swapped":                     {0.02, 0.38},
	"swapped, speaks":             {0.05, 0.47},
	"number from texts":           {0.04, 0.49},
	"all asked":                   {-0.14, -0.50},
	"new words in it":             {0.95, 0.31},
	"new words in it, speaks":     {0.53, 0.37},
	"has the act":                 {0.29, 0.30},
	"tells the act":               {0.22, 0.16},
	"tells the act, unasked":      {0.04, 0.13},
	"has all new words":           {0.10, 0.18},
	"act nowhere, unasked":        {-0.34, 0.02},
	"prose":                       {0.34, 0.23},
	"of an assistant":             {0.30, 0.43},
	"of a program":                {0.35, 0.31},
	"assistant in texts":          {0.16, 0.46},
	"assistant in texts, unasked": {0.00, 0.45},
	"switches language":           {0.12, 0.17},
}
