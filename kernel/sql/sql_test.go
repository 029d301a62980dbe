package sql_test

import (
	"slices"
	"testing"

	"github.com/caddy-lex/lex/kernel/sql"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                            {""},
		"select 1; -- a; b\nselect 2": {"SELECT 1", "SELECT 2"},
		"select ';' as a":             {"SELECT ';' AS A"},
		"drop table a/* ; */.b":       {"DROP TABLE A . B"},
		"DO $$ begin x; end $$":       {"DO $$ BEGIN X; END $$"},
		"select `my-project.a`":       {"SELECT ` MY_PROJECT.A `"},
		"a;;b":                        {"A", "", "B"},
	} {
		var got []string
		for _, s := range sql.Statements(text) {
			got = append(got, s.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestRestricted(t *testing.T) {
	t.Parallel()
	for where, want := range map[string]bool{
		"":                               false,
		"WHERE id = 7":                   true,
		"WHERE 1 = 1":                    false,
		"WHERE id = id":                  false,
		"WHERE name = 'x' OR 'a' = 'a'":  false,
		"WHERE name = 'x' AND 'a' = 'a'": true,
		"WHERE NOT false":                false,
		"WHERE email IS NULL OR email IS NOT NULL":  false,
		"WHERE email IS NULL OR name IS NOT NULL":   true,
		"WHERE name LIKE '%'":                       false,
		"WHERE name LIKE 'a%'":                      true,
		"WHERE id > 0":                              false,
		"WHERE id > 100":                            true,
		"WHERE created_at < now()":                  false,
		"WHERE created_at < now() - interval '1 y'": true,
		"WHERE id IN (SELECT id FROM users)":        false,
		"WHERE id IN (SELECT id FROM others)":       true,
		"WHERE ((((1))))":                           false,
	} {
		s := sql.Statements("DELETE FROM users " + where)[0]
		if got := s.Restricted(); got != want {
			t.Errorf("%s: %v, want %v", where, got, want)
		}
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`SET @q = 'drop ' || 'table a'; PREPARE s FROM @q`:             "DROP TABLE A",
		`SET @q = 'drop '; SET @q += 'table a'; EXEC(@q)`:              "DROP TABLE A",
		`DECLARE @q varchar(9) = CONCAT('drop ', 'table a'); EXEC(@q)`: "DROP TABLE A",
		`SET @q = CONCAT_WS(' ', 'drop', 'table', 'a'); EXECUTE @q`:    "DROP TABLE A",
		`SET @q = 0x44524F50205441424C452041; EXEC(@q)`:                "DROP TABLE A",
		`SET @q = REVERSE('a elbat pord'); EXEC(@q)`:                   "DROP TABLE A",
		`SET @q = TRANSLATE('xrop table a', 'x', 'd'); EXEC(@q)`:       "DROP TABLE A",
		`SET @q = TRANSLATE('d-r-op table a', '-', ''); EXEC(@q)`:      "DROP TABLE A",
		`SET @q = REPLACE('drop_table_a', '_', ' '); EXEC(@q)`:         "DROP TABLE A",
		`SET @q = FORMAT('drop %s a', 'table'); EXEC(@q)`:              "DROP TABLE A",
		`SET @q = 'drop table ' || target; EXEC(@q)`:                   "DROP TABLE unnamed",
	} {
		all := sql.Statements(text)
		v := make(sql.Values)
		v.Assign(all)
		if got := v.Chains(all[len(all)-1]); !slices.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// What a condition asks for is told by its comparisons.
func TestConditions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ key, never bool }{
		"id = 7":                           {key: true},
		"customer_id IN (1, 2)":            {key: true},
		"o.order_no = 'A-1'":               {key: true},
		"id IN (SELECT id FROM others)":    {},
		"NOT id = 7":                       {},
		"id = 7 OR paid":                   {key: true},
		"paid = true":                      {},
		"is_valid = 0":                     {},
		"userId = 7":                       {key: true},
		"1 = 2":                            {never: true},
		"((1 = 2))":                        {never: true},
		"1 = 1":                            {},
		"name = 'x'":                       {key: true},
		"created_at < now() AND state = 2": {},
	} {
		s := sql.Statements(text)[0]
		if s.ByKey() != want.key || s.NeverMatches() != want.never {
			t.Errorf("%s: by key %v, never %v", text, s.ByKey(), s.NeverMatches())
		}
	}
	s := sql.Statements("select a from b where c = 'from'")[0]
	if !s.HasAfter(0, "FROM") || s.HasAfter(2, "FROM") || s.HasAfter(0, "LIMIT") {
		t.Errorf("%s", s)
	}
}
