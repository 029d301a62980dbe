// Package file tells what a file is by its name: whether a machine or a person cannot lose it
// (vital.go), whether others keep it (shared.go), whether it holds credentials (credential.go),
// starts code or opens a login (starter.go), or belongs to the operating system (system.go).
//
// Names are those of a shell, of PowerShell or of an argument, absolute or not, with the home at
// the front as ~; they may be patterns, and [Unknown] stands for what nobody knows of them.
// Where it matters how a name is written, callers bring it into one spelling first: [Slashed],
// [Clean], and [Forms] for names that layers below may decode (name.go).
//
// What follows from it is decided by package toolcall.
package file
