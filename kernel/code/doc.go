// Package code reads programs in languages that it does not parse.
//
// An agent that runs code writes it in any language, often a few lines, with names for what
// could stand there:
//
//	import shutil as s, os
//	root = os.path.expanduser("~")
//	for d in os.listdir(root):
//	    s.rmtree(os.path.join(root, d))
//
// A parser for each language would read more, and nothing of a text that is cut, or that
// mixes two. So a [Reader] uses what most languages have in common: literals between marks
// (string.go), names that are bound by an assignment, a loop, an import, a block or a function
// of one argument (bind.go), brackets, and operations that make literals of literals
// (literal.go). [Reader.Followed] writes a program with the values in the places of their
// names (follow.go):
//
//	shutil.rmtree(os.path.join(os.path.expanduser('~'), os.listdir(os.path.expanduser('~'))))
//
// Then [Calls] finds what is called, [Arguments] and [Receiver] with what and on what
// (call.go), and [Place] tells which file or folder an expression names (place.go): here
// "~/*". PowerShell joins and formats its literals in ways of its own (powershell.go), and a Lisp is
// written with the marks of the others first (lisp.go). What it
// cannot follow stays as it was written. It never runs anything, and the work is
// bounded by [Reader.Spend] and by the length of the program.
//
// What a program does is judged by package toolcall.
package code
