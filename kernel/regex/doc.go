// Package regex matches regular expressions of the syntax of package regexp against texts of
// which few have a match, as the tables of package toolcall are matched against each call.
//
// An [Expression] is compiled to a table with one look for a character (automaton.go) that
// tells exactly whether a text has a match; package regexp is asked only where one is, and for
// the few expressions whose tables would be too large. A [Screen] holds up to 64 expressions and finds the
// literals of all of them in one pass. Results are those of package regexp, which a fuzz target
// compares.
//
// Both are made when a text is first read, and are safe for concurrent use.
package regex
