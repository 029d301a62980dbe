package detect

// skeletons maps lower-case lookalikes to the Latin letter they imitate. The
// pairs are a selection from confusables.txt of Unicode Technical Standard 39
// (version 16.0), for lower case: where only the capitals look alike (Cyrillic
// Н, Greek Η) the pair stands for them, because case is folded first.
// Fullwidth, mathematical and circled letters need no entry, NFKC has them.
var skeletons = pairs(
	// Cyrillic
	"\u0430a\u0432b\u0435e\u043ak\u043cm\u043dh\u043eo\u0440p\u0441c\u0442t\u0443y\u0445x\u0455s\u0456i\u0458j\u04bbh\u04cfl\u0501d\u051bq\u051dw\u0475v\u0433r\u044cb\u0454e\u04afy\u04b1y\u0491r\u0461w\u04a1k\u049bk",
	// Greek
	"\u03b1a\u03b2b\u03b3y\u03b5e\u03b6z\u03b7n\u03b9i\u03bak\u03bcm\u03bdv\u03bfo\u03c1p\u03c2c\u03c3o\u03c4t\u03c5u\u03c7x\u03c9w\u03f2c\u03f3j",
	// Armenian
	"\u0561w\u0563q\u0566q\u0570h\u0578n\u057du\u0581g\u0585o\u0575j",
	// Latin letters with strokes, turned or dotless forms
	"\u0131i\u0237j\u0142l\u0111d\u0127h\u0167t\u0180b\u019al\u0199k\u0192f\u0251a\u0253b\u0256d\u0257d\u0261g\u0260g\u0268i\u0269i\u0273n\u0288t\u0289u\u028bv\u0290z\u00f8o\u0275o",
	// Latin small capitals
	"\u1d00a\u0299b\u1d04c\u1d05d\u1d07e\ua730f\u0262g\u029ch\u026ai\u1d0aj\u1d0bk\u029fl\u1d0dm\u0274n\u1d0fo\u1d18p\u0280r\ua731s\u1d1bt\u1d1cu\u1d20v\u1d21w\u028fy\u1d22z",
	// Typographic quotes, dashes
	"\u2018'\u2019'\u201b'\u02bc'\u02b9'\u2032'\u201c\"\u201d\"\u201e\"\u2010-\u2012-\u2013-\u2014-\u2212-",
)

func pairs(tables ...string) map[rune]rune {
	out := make(map[rune]rune)
	for _, table := range tables {
		runes := []rune(table)
		for i := 0; i+1 < len(runes); i += 2 {
			out[runes[i]] = runes[i+1]
		}
	}
	return out
}

// skeleton returns the Latin letter that r imitates, or r.
func skeleton(r rune) rune {
	switch {
	case r < 0x80:
		return r
	case 0x1f1e6 <= r && r <= 0x1f1ff: // regional indicators
		return 'a' + r - 0x1f1e6
	case 0x1f150 <= r && r <= 0x1f169: // negative circled letters
		return 'a' + r - 0x1f150
	case 0x1f170 <= r && r <= 0x1f189: // negative squared letters
		return 'a' + r - 0x1f170
	}
	if latin, ok := skeletons[r]; ok {
		return latin
	}
	return r
}
