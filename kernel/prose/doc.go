// Package prose reads sentences as far as one has to in order to tell whether they ask for
// something, and for what.
//
// No grammar does that, and no model: texts that reach an agent are halves of sentences, cells
// of tables and members of JSON in thirty languages, and whoever reads them must say why it
// decided as it did. So a [Reader] cuts a text where anything ends (reader.go) and looks every
// word up in one table (words.go), which tells its stem, the traits that it has in a sentence
// and the [Act] that it may stand for (act.go). Then a [Sentence] tells
//
//   - which acts it asks for: those of the words that stand where verbs do (verb.go),
//   - whether it is hostile: whether it speaks as no honest document does (hostile.go),
//   - the days and the numbers that it names (date.go, figure.go),
//   - and what it is written in (script.go).
//
// Texts are compared folded (folding.go), and what is hidden in codes or behind letters of
// other alphabets is read too (disguise.go).
//
// What a sentence means for a tool call is judged by package toolcall.
package prose
