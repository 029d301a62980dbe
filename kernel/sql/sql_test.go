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
		"WHERE id IS NOT NULL":                      false,
		"WHERE u.id IS NOT NULL":                    false,
		"WHERE parent_id IS NOT NULL":               true,
		"WHERE id IS NULL":                          true,
		"WHERE NOT id IS NULL":                      false,
		"WHERE NOT (id < 0)":                        false,
		"WHERE NOT (id < 100)":                      true,
		"WHERE NOT name IS NULL":                    true,
		"WHERE NOT (1 = 2)":                         false,
		"WHERE NOT (NOT (1 = 1))":                   false,
		"WHERE NOT (id = id)":                       true,
		"WHERE name LIKE '%_%'":                     false,
		"WHERE name LIKE '____'":                    true,
		"WHERE user_id > -1":                        false,
		"WHERE user_id>-1":                          false,
		"WHERE id>-1":                               false,
		"WHERE id=-1":                               true,
		"WHERE id<-1":                               true,
		"WHERE user_id >= -100":                     false,
		"WHERE user_id >= 0":                        false,
		"WHERE user_id > 0":                         true, // 0 may stand for nobody
		"WHERE user_id > 17":                        true,
		"WHERE balance > -1":                        true,
		"WHERE id BETWEEN 0 AND 9999999999":         false,
		"WHERE id BETWEEN 1 AND 9999999999":         false,
		"WHERE id BETWEEN -1 AND 9999999999":        false,
		"WHERE id BETWEEN 100 AND 9999999999":       true,
		"WHERE id BETWEEN 0 AND 500":                true,
		"WHERE NOT (id BETWEEN 0 AND 9999999999)":   true,
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
		`SET @q = 'drop ' || 'table a'; PREPARE s FROM @q`:             "drop table a",
		`SET @q = 'drop '; SET @q += 'table a'; EXEC(@q)`:              "drop table a",
		`DECLARE @q varchar(9) = CONCAT('drop ', 'table a'); EXEC(@q)`: "drop table a",
		`SET @q = CONCAT_WS(' ', 'drop', 'table', 'a'); EXECUTE @q`:    "drop table a",
		`SET @q = 0x64726f70207461626c652061; EXEC(@q)`:                "drop table a",
		`SET @q = REVERSE('a elbat pord'); EXEC(@q)`:                   "drop table a",
		`SET @q = TRANSLATE('xrop table a', 'x', 'd'); EXEC(@q)`:       "drop table a",
		`SET @q = TRANSLATE('d-r-op table a', '-', ''); EXEC(@q)`:      "drop table a",
		`SET @q = REPLACE('drop_table_a', '_', ' '); EXEC(@q)`:         "drop table a",
		`SET @q = FORMAT('drop %s a', 'table'); EXEC(@q)`:              "drop table a",
		`SET @q = 'drop table ' || target; EXEC(@q)`:                   "drop table unnamed",

		// Signs by their codes, several in one call as MySQL takes them.
		`SET @q = CONCAT(CHAR(100, 114, 111, 112), ' table a'); EXEC(@q)`:     "drop table a",
		`SET @q = CONCAT(CHAR(0x64, 0x72, 0x6f, 0x70), ' table a'); EXEC(@q)`: "drop table a",
		`SET @q = CHR(100) || CHR(114) || 'op table a'; EXEC(@q)`:             "drop table a",
		`SET @q = CHAR(68, x) || 'rop'; EXEC(@q)`:                             "unnamedrop",
		`SET @q = CHAR(68, 99999999) || 'rop'; EXEC(@q)`:                      "unnamedrop",

		// Base64 keeps the case of what is written.
		`SET @q = FROM_BASE64('ZHJvcCB0YWJsZSBh'); EXEC(@q)`:                            "drop table a",
		`SET @q = convert_from(decode('ZHJvcCB0YWJsZSBh', 'base64'), 'UTF8'); EXEC(@q)`: "drop table a",
		`SET @q = decode('64726f70207461626c652061', 'hex'); EXEC(@q)`:                  "drop table a",

		// What a function is given may be joined first.
		`SET @q = REVERSE(CONCAT('a elbat', ' pord')); EXEC(@q)`:                                                         "drop table a",
		`SET @q = UNHEX(CONCAT('64726f70', '207461626c652061')); EXEC(@q)`:                                               "drop table a",
		`SET @q = REPLACE('dr' || '-op table a', '-', ''); EXEC(@q)`:                                                     "drop table a",
		`SET @q = array_to_string(ARRAY['drop', 'table', 'a'], ' '); EXEC(@q)`:                                           "drop table a",
		`SET @q = SUBSTR('--drop table a', 3); EXEC(@q)`:                                                                 "drop table a",
		`SET @q = SUBSTR('drop table a --', 1, 12); EXEC(@q)`:                                                            "drop table a",
		`SET @q = pg_catalog.reverse('a elbat pord'); EXEC(@q)`:                                                          "drop table a",
		`SET @q = utl_raw.cast_to_varchar2(utl_encode.base64_decode(utl_raw.cast_to_raw('ZHJvcCB0YWJsZSBh'))); EXEC(@q)`: "drop table a",
		`SELECT 'drop table a' INTO @q; EXEC(@q)`:                                                                        "drop table a",
		`SELECT CONCAT('drop ', 'table a') INTO q FROM dual; EXECUTE IMMEDIATE q`:                                        "drop table a",
		`SET @q = E'\x64rop table a'; EXEC(@q)`:                                                                          "drop table a",
		`SET @q = E'\144rop\040table a'; EXEC(@q)`:                                                                       "drop table a",
		`SET @q = U&'\0064rop table a'; EXEC(@q)`:                                                                        "drop table a",
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
		"id = 7 OR paid":                   {},
		"id = 7 OR id = 8":                 {key: true},
		"NOT paid AND id = 7":              {key: true},
		"(paid OR open) AND id = 7":        {key: true},
		"(id = 7)":                         {key: true},
		"(id = 7 OR open) AND paid":        {},
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
