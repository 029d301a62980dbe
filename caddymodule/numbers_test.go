package caddymodule_test

import (
	"strings"
	"testing"
)

// Stores count in doubles, and sizes are added to: what is too large for either is refused
// at load, and not rounded or turned round.
func TestNumbersInJSONHaveBounds(t *testing.T) {
	const requests, size = "give at most 9007199254740991 requests", "limits body: give a size up to 1TiB"
	for config, want := range map[string]string{
		`{"limits":{"anonymous":{"requests":9007199254740992,"window":60000000000}}}`:                          "limits anonymous: " + requests,
		`{"limits":{"keyed":{"requests":9223372036854775807,"window":60000000000}}}`:                           "limits keyed: " + requests,
		`{"limits":{"read":{"requests":9007199254740992,"window":60000000000}}}`:                               "limits read: " + requests,
		`{"limits":{"plans":{"pro":{"requests":9007199254740992,"window":60000000000}}}}`:                      "limits plan pro: " + requests,
		`{"policies":{"p":{"limits":{"intercepted":{"requests":9007199254740992,"window":60000000000}}}}}`:     "limits intercepted: " + requests,
		`{"limits":{"body":9223372036854775807}}`:                                                              size,
		`{"limits":{"body":1099511627777}}`:                                                                    size,
		`{"limits":{"anonymous":{"requests":9007199254740991,"window":60000000000},"body":1099511627776}}`:     "",
		`{"limits":{"plans":{"pro":{"requests":9007199254740991,"window":60000000000}},"body":1099511627776}}`: "",
	} {
		err := provisionApp(t, config)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", config, err, want)
		}
	}
}
