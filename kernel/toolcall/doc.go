// Package toolcall stands between a model that asks for a tool call and the
// tool that would run it.
//
// A model can be talked into anything; what it asks for can be read. The
// package therefore judges a call by what it would do, not by what the
// conversation was about, against a closed set of [Invariant] rules that no
// policy, and no text that was read, can relax. Some rules are about what nobody
// asked for; there the user's own words count (asked.go and resemblance.go say how far).
//
// [Decide] reads one [Call] and returns a [Decision]; [Interceptor.Decide] does so under
// the rules of an operator, and [Simulate] runs a script of calls through [Decide]. Start
// reading there: toolcall.go, then reading.go, which gives each argument to its readers. The
// first word of a file's name says what it is about:
//
//	shell      commands of a shell, what they start, read and write
//	windows    PowerShell, cmd, and the machines and services that they govern
//	sql        queries, and the clients of databases
//	code       programs in other languages
//	file       files that are run or obeyed later
//	embedded   texts that an office, a browser or a parser obeys
//	tool       tools that have no language, such as those of an office
//	address    addresses; path: file names; role: which reader fits an argument
//	invariant  the invariants, and what several readers ask about one of them
//	intention  who wanted the call: the user, or a text that was read
//	rules      what the operator says
//
// Eight packages beside this one know nothing of its rules: kernel/regex matches the tables of
// expressions, kernel/sql reads statements, kernel/code programs, kernel/prose sentences,
// kernel/address addresses and kernel/file names of files, kernel/schema checks arguments
// against a JSON Schema, and kernel/resemblance compares the words of a call with those of
// other calls.
//
// # Reading
//
// A list of bad words fails both ways: it misses
//
//	r''m -rf /
//
// and it finds a note that mentions rm -rf /. So each argument is given to the
// readers that fit it. The tool's name and the member's name tell which: a command
// line, a program, SQL, a file name, an address, a receiver, or prose that nobody
// executes. An argument whose name says nothing is given to several.
//
//   - A tool whose name is that of a program, such as git or kubectl, is read as that
//     program with the arguments (program.go).
//   - Commands are parsed as bash (shell_parsing.go) and walked through in the order of the
//     text (shell.go). Words are expanded (shell_expansion.go, shell_splice.go): quotes,
//     variables (shell_variables.go, shell_assignment.go, shell_unset.go), braces and
//     substitutions whose result the text alone tells (shell_output.go), as far as that stays
//     small (shell_bounds.go). What only the running shell would know is marked as unknown,
//     never guessed. Wrappers, nested shells, pipes, here-documents and redirections are
//     followed (shell_wrapper.go, shell_interpreter.go, shell_pipe.go, shell_input.go,
//     shell_redirection.go), and so are arrays, functions, aliases, read, positional
//     parameters, and files that the text writes itself (shell_binding.go, shell_written.go),
//     what awk and sed make of lines (shell_awk.go, shell_sample.go), what settings add
//     (shell_settings.go), what an ordinary tool is told to start (shell_hatch.go), what
//     a client of packages or of environments starts (shell_bringer.go), and what
//     runs on another machine, in a container or in a terminal (shell_hop.go). What a command
//     says by its words alone stands in tables by its name (shell_patterns.go,
//     shell_services.go). A text that does not parse is searched for the gravest commands only
//     (shell_tokens.go). What a filter lets through of what a command reads
//     (shell_projection.go) and what was made to be lost (shell_ephemeral.go) are told from the
//     rest.
//   - PowerShell and cmd are put into one spelling, with variables, loops and what is made of
//     literals (package code) written out, and cut into commands; there is no parser for
//     them (windows.go). What their commands do stands in tables by name (windows_cmdlets.go
//     says which file has what), and so do the languages of a network's devices
//     (windows_devices.go).
//   - SQL is lexed, which works for every dialect (package sql), and judged statement by
//     statement (sql_query.go), with the condition of a change read for tautologies. What reaches
//     beyond the rows is told by the first words of a statement (sql_server.go).
//     The clients of databases are read by their flags, and databases of documents by
//     operation and filter (sql_client.go).
//   - Patches are judged by the files that they change (file_patch.go).
//   - Addresses are parsed as browsers parse them (package address), so that 2852039166 is the
//     metadata service it is, and judged by where they lead (address.go).
//   - What runs as root is judged by what only root can spoil (shell_upkeep.go), and files in
//     the folders of the system by whether they start, name or record something
//     (file_configuration.go).
//   - File names are decoded as the layers below may decode them, and tell what would be lost,
//     read or started (package file).
//   - Programs in other languages are judged by their string literals and the calls that would
//     make them commands, files or requests (code.go). Values are followed to their uses
//     (package code); then what is removed is read as a place (code_removal.go), and calls of
//     libraries by their tables (code_library.go).
//   - Tools for daily work are judged by the words of their names and members (tool_dealing.go
//     says in which order, and which file judges what), and texts that an office, a browser or
//     a parser obeys, or that carry data off, by what these will do (embedded.go,
//     embedded_office.go, embedded_browsing.go, embedded_carrying.go, embedded_wiping.go).
//   - Files that are run later, by package managers, runners, editors and engines of
//     containers, are read for the commands in them (file_recipe.go), and those of Terraform
//     also for what they give and open (file_terraform.go).
//
// A call that carries others, such as a list of steps, is judged by each of them as well
// (steps.go).
//
// # Effect
//
// What a tool does to the world is told by its arguments, its name and its definition
// (effect.go).
//
// # Rules and schemas
//
// An [Interceptor] adds what the operator and the request say: [Rules] that deny calls by the
// tool's name or by a condition in CEL (rules.go, rules_condition.go), which tools are known,
// and the JSON Schema of a tool's arguments (package schema). These only ever block more. A
// condition that fails blocks; a schema that cannot be read, or would take too much work,
// checks nothing, and the decision says so. Nothing is fetched for either.
//
// # Provenance
//
// Text that the user did not write may not choose the destination of an
// irreversible act. A receiver that stands in [Call.Context] and not in
// [Call.Request] or [Call.System] was chosen by the author of that text, and may only be
// used where the user left the choice to it (invariant_provenance.go).
//
// # Intention
//
// Instructions and data reach a model on one channel. So each text that was read is cut into
// sentences, and those that tell a reader to do something are found (package prose). A call is
// compared with them and with the request: what an instruction tells to do and the user does
// not ask for is an injected action. How likely a call is one is a logistic regression on
// features of the call, the request and the texts (intention.go, intention_deed.go,
// intention_passage.go, intention_evidence.go, intention_feature.go, intention_source.go,
// intention_swap.go). Who gives what the call adds to the request is told by the finder of the
// additions and the voices of sentences (intention_addition.go, intention_voice.go,
// intention_wording.go). The weights are fitted to data
// (intention_weights.go). Payments are compared with the amounts that were named
// (intention_amount.go). docs/tools.md has the measured figures.
//
// # Resemblance
//
// The readers know what they were told. What nobody thought of is told by a call's words, by
// their resemblance to those of hostile calls (package resemblance). A call that resembles these is
// blocked, and one that resembles ordinary calls and that the user asked for passes where a
// reader of what may be ordinary objects. The weights of package resemblance are fitted to the
// open corpora (resemblance_fit_test.go).
//
// # Work
//
// A text is screened in one pass for the literals of all patterns, and where one stands
// its pattern is compared by an automaton (package regex). The
// values of a call are found by their words in what was read (intention_mention.go).
// All readers of a call share one budget of work, and stop when the caller's
// context ends. Nesting does not make them read anything twice. A call that takes
// more work than any honest call, or that nests more deeply, is blocked by
// [UnreadableCall].
//
// # Evasion
//
// testdata/evasion.jsonl lists hostile calls by family, each with what must become
// of it, and ordinary calls of the same look. A row with known_miss is decided
// wrongly today, and says why. testdata/blind_open.jsonl and blind_kept.jsonl were
// written by somebody who had not read the readers; testdata/BLIND.md tells what they
// measured.
//
// # Limits
//
// The package runs nothing and knows no machine: it cannot see what a script
// already on disk does, where a link leads, where a name resolves, or what a program computes. It
// narrows what an agent may do; a sandbox must still hold what it does.
package toolcall
