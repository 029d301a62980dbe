package toolcall

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
	"github.com/caddy-lex/lex/kernel/sql"
)

// Ephemeral is what was made to be lost: the environment of a pull request, the database of the
// tests, the temporary prefix of a run. Taking it down is the last step of its use.

// ephemeralName matches the name of such a thing, and inUse that of one which is not.
var (
	ephemeralName = regex.New(`(?i)(?:^|[-_./:=@])(?:pr[-_]?\d+|mr[-_]?\d+|pull-?\d+|ci-?\d+|(?:ci|build)-?caches?|run-?\d+|restore-?(?:drill|test)s?|drill|preview|previews|review|review-?apps?|ephemeral|scratch|sandbox|sbx|playground|throwaway|disposable|dummy|poc|demo|spike|experiment|e2e|tmp|temp|tst|(?:load|perf|stress|smoke|restore|integration|migration|soak|bench|pen|dr|failover|user|ab|a-b)?[-_]?tests?|testing|loadgen|benchmarks?|jest|pytest|deneme|spielwiese|wegwerf|essai|prueba)(?:[-_./:@]|\d*$)`)
	inUse         = regex.New(`(?i)(?:^|[-_./:=@\s])(?:prod|prd|production|live|main|master|release|staging|core|shared|customers?|billing|payments?|backups?)(?:[-_./:@\s\d]|$)`)
)

func isEphemeral(name string) bool {
	return ephemeralName.MatchString(name) && !inUse.MatchString(name)
}

// onEphemeral reports whether all that a command takes down is ephemeral: the things that it
// names, or the environment in which it takes them down.
func (s *shell) onEphemeral(argv []string) bool {
	if inUse.MatchString(strings.Join(argv[1:], " ")) {
		return false
	}
	var scopes []string // the values of the flags that say where
	for i, w := range argv {
		switch flag, value, joined := strings.Cut(w, "="); {
		case joined && scopeFlags[flag]:
			scopes = append(scopes, value)
		case scopeFlags[w]:
			scopes = append(scopes, wordAt(argv, i+1))
		}
	}
	if len(scopes) > 0 && !wholeCluster.MatchString(strings.Join(argv, " ")) {
		return !slices.ContainsFunc(scopes, func(n string) bool { return !isEphemeral(n) })
	}
	switch programName(argv[0]) {
	case "terraform", "tofu", "terragrunt":
		folder := cmp.Or(valueOf(argv, "-chdir=", "--chdir="), valueOf(argv, "--terragrunt-working-dir", "--working-dir="), s.folder, s.workdir)
		return isEphemeral(s.vars["TF_WORKSPACE"]) || isEphemeral(path.Base(folder))
	}
	targets := identifiers(argv)
	if len(targets) == 0 {
		targets = lostTargets(argv)
	}
	return len(targets) > 0 && !slices.ContainsFunc(targets, func(t string) bool { return !isEphemeralPlace(t) })
}

// wholeCluster is what no namespace of a cluster holds, wherever its command says it works.
var wholeCluster = regex.New(`^(?:kubectl|oc|k) (?:.* )?delete (?:\S*,)?(?:ns|namespaces?|nodes?|no|pv|persistentvolumes?|crds?|customresourcedefinitions?|clusterroles?|clusterrolebindings?|storageclass(?:es)?|sc|projects?)(?:[ /,]|$)`)

// scopeFlags say in which environment a command of a client works, or what it is about.
var scopeFlags = words("-n --namespace -s --stack --stack-name --stack-id -g --resource-group --workspace -w -e --env --environment --app -a")

// lostTargets are the words behind the verb that takes something away.
func lostTargets(argv []string) []string {
	verbs, _ := verbsAndFlags(argv)
	plain := strings.Fields(verbs)
	at := slices.IndexFunc(plain, func(w string) bool {
		return slices.ContainsFunc(verbParts(w), func(part string) bool { return losingVerbs[part] || part == "uninstall" || part == "rb" })
	})
	if at < 0 {
		return nil
	}
	targets := plain[at+1:]
	if name := programName(argv[0]); (name == "kubectl" || name == "oc") && len(targets) > 1 && !strings.Contains(targets[0], "/") {
		targets = targets[1:] // the kind of what follows
	}
	return targets
}

// isEphemeralPlace judges a name, or a prefix of a store of objects: of one in a bucket that
// lasts, the folders below the bucket tell.
func isEphemeralPlace(target string) bool {
	scheme, place, found := strings.Cut(target, "://")
	if !found {
		return isEphemeral(target)
	}
	bucket, key, _ := strings.Cut(place, "/")
	return scheme != "" && !inUse.MatchString(place) && (isEphemeral(bucket) || isEphemeral(strings.Trim(key, "/")))
}

// frameworks are the commands that make the database of an application.
var frameworks = words("rails rake artisan php python python3 django-admin manage.py prisma npx pnpm yarn mix diesel sqlx alembic flyway liquibase knex sequelize typeorm")

// inTests reports whether a command works on the database of the tests, by the variables and
// flags that the frameworks know.
func (s *shell) inTests(argv []string) bool {
	for _, name := range environmentNames {
		if testEnvironment.MatchString(s.vars[name]) {
			return true
		}
	}
	return testFlag.MatchString(strings.Join(argv[1:], " ")) || isTestDatabase(s.vars["DATABASE_URL"])
}

var (
	environmentNames = strings.Fields("RAILS_ENV RACK_ENV NODE_ENV MIX_ENV APP_ENV FLASK_ENV DJANGO_ENV DJANGO_SETTINGS_MODULE ENVIRONMENT ENV")
	testEnvironment  = regex.New(`(?i)(?:^|[._-])(?:tests?(?:ing)?|dev(?:elopment)?|local)$|^ci$`)
	testFlag         = regex.New(`(?:^| )(?:--env(?:ironment)?[= ]|--settings[= ]\S*[._]|-e )(?:test|testing|ci|dev|development|local)(?: |$)`)
)

// triesOut reports whether the user says that the database which a framework makes anew is one of
// a developer, and no variable or flag leads elsewhere.
func (s *shell) triesOut(argv []string) bool {
	if !s.asksForLoss() || otherServer.MatchString(strings.Join(argv, " ")) || inUse.MatchString(s.asks) {
		return false
	}
	for _, name := range environmentNames {
		if s.vars[name] != "" && !testEnvironment.MatchString(s.vars[name]) {
			return false
		}
	}
	return s.vars["DATABASE_URL"] == "" && ownDatabase.MatchString(s.asks)
}

var (
	otherServer = regex.New(`(?i)://|\bprod|--(?:url|database-url|db-url|remote|linked|host|schema|config|context|target)\b|\bstaging\b`)
	ownDatabase = regex.New(`(?i)\b(?:dev|development|local(?:host|e|en|es)?|lokale?[nrs]?|test|my|meine?|seed|sandbox|scratch)\b.{0,30}(?:\bdb\b|database|datenbank|base|banco|base de d|data|schema|postgres|mysql|sqlite|supabase|prisma)|(?:\bdb\b|database|datenbank|schema).{0,20}\b(?:local|lokal|dev|test)`)
)

// isTestDatabase reports whether the address or name of a database is of one that tests or a
// developer make anew, on this machine or in the network of a composition.
func isTestDatabase(address string) bool {
	if strings.Contains(address, "://") {
		var flags string
		if address, flags, _ = strings.Cut(address, "?"); namesServer.MatchString(flags) {
			return false
		}
	}
	if address == "" || strings.ContainsAny(address, "= ") || inUse.MatchString(strings.ReplaceAll(strings.ToLower(address), "staging", "stage")) {
		return false
	}
	name := databaseFile.ReplaceAllString(path.Base(address), "")
	if m := databaseAddress.FindStringSubmatch(address); m != nil {
		if !ownDatabaseHost.MatchString(m[1]) {
			return false
		}
		name = m[2]
	}
	return isScratch(name) || isEphemeral(name) || developmentName.MatchString(name)
}

var (
	databaseAddress = regex.New(`^\w+(?:\+\w+)?://(?:[^@/\s]*@)?(\[[^\]]*\]|[^:/\s]*)(?::\d+)?/([\w-]+)`)
	ownDatabaseHost = regex.New(`(?i)^(?:localhost|127\.0\.0\.1|\[::1\]|db|database|postgres|postgresql|mysql|mariadb|mongo|redis|(?:[\w.-]*[-_.])?(?:tst|test|dev|uat|qa|stage|stg|demo|sandbox|sbx|lab|preprod)\d*(?:[-_.][\w.-]*)?)$`)
	namesServer     = regex.New(`(?i)(?:^|[&;])(?:host|hostaddr|server|servername|dbname|database|service)=`) // another than the address
	databaseFile    = regex.New(`\.(?:db|sqlite3?|duckdb)$`)
	developmentName = regex.New(`(?i)(?:^|[-_])(?:dev|development|local|uat|qa|tst|demo|stage|stg|staging|playground|training|schulung)\d*(?:$|[-_](?:db|mysql|mariadb|postgres|pg|mongo|redis|mssql|sql|warehouse|dwh)\w*$)|^(?:stage|staging|dev|test|tst|uat|qa|demo)[-_](?:db|mysql|mariadb|postgres|pg|mongo|redis|mssql|sql|warehouse|dwh)\w*$`)
)

// onTests reports whether a call says of the database that it works on that it is one of tests:
// all that it says of its name and of where it is.
func onTests(leaves []leaf) bool {
	said := false
	for _, l := range leaves {
		switch {
		case !l.text:
		case databaseKeys[l.key]:
			if !isTestDatabase(l.value) {
				return false
			}
			said = true
		case l.key == "connect": // how sqlplus says who and where: user/@place
			if _, place, found := strings.Cut(l.value, "@"); !found || !isTestPlace(place) {
				return false
			}
			said = true
		case databaseHostKeys[l.key]:
			if isTestPlace(l.value) {
				said = said || serverKeys[l.key]
			} else if !ownDatabaseHost.MatchString(l.value) {
				return false
			}
		}
	}
	return said
}

var (
	databaseKeys     = words("source profile target warehouse catalog database databasename databaseurl databaseuri db dbname dburl uri conn connection connectionstring connectionuri connectionurl dsn")
	databaseHostKeys = words("host hostname server servername serverinstance cluster instance project environment env")

	// serverKeys say on which server the call works, and not only in which database.
	serverKeys = words("connect host hostname server servername serverinstance cluster instance")

	// testPlace is a server, or an instance of a database, that is there for tests by its name.
	testPlace = regex.New(`(?i)^(?:[\w.-]*[-_.]|[a-z]{0,4}sql|dw|dwh|db|ora)?(?:tst|test|dev|uat|qa|ci|stg|sbx|sandbox)\d*(?:db|sql)?\d*(?:[-_.\\][\w.-]*)?$`)
)

// isTestPlace reports whether a server is there for tests.
func isTestPlace(name string) bool { return testPlace.MatchString(name) && !inUse.MatchString(name) }

// onTestServer reports whether a call says of the server that it is there for tests.
func onTestServer(leaves []leaf) bool {
	return slices.ContainsFunc(leaves, func(l leaf) bool {
		return l.text && serverKeys[l.key] && isTestPlace(l.value[strings.LastIndexByte(l.value, '@')+1:])
	})
}

// onTestDatabase reports whether a client of databases is connected to one of tests.
func (s *shell) onTestDatabase(argv []string) bool {
	for _, host := range []string{s.vars["PGHOST"], s.vars["MYSQL_HOST"]} {
		if host != "" && !ownDatabaseHost.MatchString(host) {
			return false
		}
	}
	flags := sqlClients[programName(argv[0])]
	name := ""
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		if _, next, found := flags.program(argv, i); found {
			i = next - 1
			continue
		}
		switch {
		case w == "-h" || w == "--host":
			if !ownDatabaseHost.MatchString(wordAt(argv, i+1)) {
				return false
			}
			i++
		case strings.HasPrefix(w, "-h") && w != "-h" && !ownDatabaseHost.MatchString(w[2:]):
			return false
		case strings.HasPrefix(w, "--host="):
			if !ownDatabaseHost.MatchString(w[len("--host="):]) {
				return false
			}
		case w == "-d" || w == "--dbname" || w == "--database" || w == "-D" || w == "--db":
			name = wordAt(argv, i+1)
			i++
		case strings.HasPrefix(w, "--dbname=") || strings.HasPrefix(w, "--database="), strings.HasPrefix(w, "--db="):
			_, name, _ = strings.Cut(w, "=")
		case !strings.HasPrefix(w, "-"):
			if name == "" {
				name = w
			}
		default:
			i += flags.valueWords(w)
		}
	}
	return isTestDatabase(name)
}

// losesRows reports whether a statement takes away rows, tables or schemas of the database that
// it is sent to, and does nothing beyond it: a table may be named with the database that has it.
func losesRows(s sql.Statement) bool {
	for _, t := range s {
		owner, _, qualified := strings.Cut(t.Text, ".")
		if qualified && !ownSchema[strings.ToLower(owner)] && !isScratch(owner) && !isEphemeral(owner) {
			return false
		}
	}
	return s.Is(0, "DELETE", "UPDATE", "TRUNCATE", "PURGE") || s.Is(0, "DROP") && s.Is(1, "SCHEMA", "TABLE", "VIEW", "MATERIALIZED", "SEQUENCE", "TYPE", "OWNED")
}

// losesServers reports whether a statement takes away or makes a whole database, or an account, of the
// server that it is sent to.
func losesServers(s sql.Statement) bool {
	return s.Is(0, "DROP", "CREATE") && s.Is(1, "DATABASE", "USER", "ROLE", "LOGIN", "TABLESPACE") || s.Is(0, "EXEC") && s.Is(1, "SP_DROPSERVER")
}

// ownSchema are the schemas that a table is in if nobody says which.
var ownSchema = words("public dbo main")

// staysInTests reports whether a program that the call gives to a database of tests stays there:
// it may connect to another one by itself.
func (r *reading) staysInTests(text string) bool { return r.testing && !connects.MatchString(text) }

var connects = regex.New(`(?i)://|\bconnect\w*\s*\(|\b(?:new\s+)?\w*(?:client|connection|pool|mongo|engine)\s*\(|getSiblingDB|getMongo|\buse\s+\w|environ|getenv|process\.env`)
