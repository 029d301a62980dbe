// Package sql reads SQL of any dialect as far as it has to be read to tell what it would lose.
//
// A lexer cuts a text into [Statement]s (statement.go): unlike a parser it reads every dialect.
// Conditions are read for whether some row can fail them (condition.go): a DELETE whose WHERE always
// holds deletes everything. Scripts put statements together from literals and run them, so what
// their variables hold is followed (value.go).
//
// What a statement means for a tool call is judged by package toolcall.
package sql
