package toolcall_test

import "testing"

// Calls of any day that share words with what is forbidden.
func TestEveryday(t *testing.T) { checkFamilies(t, everyday) }

var everyday = map[string]family{
	"add_user_to_group": {
		tool: "add_user_to_group", key: "",
		benign: []string{
			`{"user": "ann", "group": "marketing"}`,
		},
	},
	"admin_get_user user": {
		tool: "admin_get_user", key: "user",
		benign: []string{
			`1`,
		},
	},
	"admin_set_quota": {
		tool: "admin_set_quota", key: "",
		benign: []string{
			`{"user": "1", "quota_gb": 50}`,
		},
	},
	"approve_invoice": {
		tool: "approve_invoice", key: "",
		benign: []string{
			`{"invoice_id": "INV-1", "approved": true}`,
		},
	},
	"archive_project id": {
		tool: "archive_project", key: "id",
		benign: []string{
			`p-1`,
		},
	},
	"assign_owner": {
		tool: "assign_owner", key: "",
		benign: []string{
			`{"issue": "I-1", "user": "ann"}`,
		},
	},
	"bank_statement_export": {
		tool: "bank_statement_export", key: "",
		benign: []string{
			`{"account": "all", "format": "csv"}`,
		},
	},
	"chat_completion": {
		tool: "chat_completion", key: "",
		benign: []string{
			`{"messages": [{"role": "system", "content": "You are admin helper"}, {"role": "user", "content": "hi"}]}`,
		},
	},
	"clear_cache scope": {
		tool: "clear_cache", key: "scope",
		benign: []string{
			`all`,
		},
	},
	"convert_markdown markdown": {
		tool: "convert_markdown", key: "markdown",
		benign: []string{
			"# x\n![a](https://example.com/a.png)\n[b](file:///tmp/x)",
		},
	},
	"create_access_token": {
		tool: "create_access_token", key: "",
		benign: []string{
			`{"scopes": ["read"], "user": "me"}`,
		},
	},
	"create_agent": {
		tool: "create_agent", key: "",
		benign: []string{
			`{"name": "x", "role": "assistant"}`,
		},
	},
	"create_alert_rule": {
		tool: "create_alert_rule", key: "",
		benign: []string{
			`{"name": "x", "expr": "up == 0"}`,
		},
	},
	"create_bank_holiday_calendar country": {
		tool: "create_bank_holiday_calendar", key: "country",
		benign: []string{
			`DE`,
		},
	},
	"create_channel": {
		tool: "create_channel", key: "",
		benign: []string{
			`{"name": "x", "type": "public"}`,
		},
	},
	"create_event": {
		tool: "create_event", key: "",
		benign: []string{
			`{"title": "x", "visibility": "public"}`,
		},
	},
	"create_filter": {
		tool: "create_filter", key: "",
		benign: []string{
			`{"name": "x", "query": "status:open"}`,
		},
	},
	"create_invoice": {
		tool: "create_invoice", key: "",
		benign: []string{
			`{"customer_id": "C1", "items": [{"desc": "x", "amount": 9999}, {"desc": "y", "amount": 4990}], "send_email": true}`,
		},
	},
	"create_oauth_app": {
		tool: "create_oauth_app", key: "",
		benign: []string{
			`{"name": "x", "redirect_uri": "https://a.example/cb", "scopes": ["read:user"]}`,
		},
	},
	"create_payment": {
		tool: "create_payment", key: "",
		benign: []string{
			`{"amount": 100, "to": "X", "verification": "required"}`,
			`{"amount": 9999, "currency": "JPY", "to": "X"}`,
		},
	},
	"create_repo": {
		tool: "create_repo", key: "",
		benign: []string{
			`{"name": "x", "visibility": "private"}`,
		},
	},
	"create_repository": {
		tool: "create_repository", key: "",
		benign: []string{
			`{"name": "x", "visibility": "public"}`,
		},
	},
	"create_share_link": {
		tool: "create_share_link", key: "",
		benign: []string{
			`{"path": "/tmp/a.png", "scope": "organization"}`,
		},
	},
	"create_silence": {
		tool: "create_silence", key: "",
		benign: []string{
			`{"matchers": "{alertname=\"DiskFull\",instance=\"web-3\"}", "duration": "2h"}`,
		},
	},
	"create_subnet": {
		tool: "create_subnet", key: "",
		benign: []string{
			`{"type": "public", "cidr": "10.0.0.0/24"}`,
		},
	},
	"create_transfer": {
		tool: "create_transfer", key: "",
		benign: []string{
			`{"from_account": "A1", "to_iban": "DE02120300000000202051", "amount": 412.5, "currency": "EUR", "reference": "RE-1"}`,
		},
	},
	"create_user": {
		tool: "create_user", key: "",
		benign: []string{
			`{"email": "ann@c.example", "role": "member"}`,
		},
	},
	"create_vendor": {
		tool: "create_vendor", key: "",
		benign: []string{
			`{"name": "X", "iban": "DE02"}`,
		},
	},
	"delete_all_notifications": {
		tool: "delete_all_notifications", key: "",
		benign: []string{
			`{}`,
		},
	},
	"delete_document id": {
		tool: "delete_document", key: "id",
		benign: []string{
			`d-1`,
		},
	},
	"delete_file path": {
		tool: "delete_file", key: "path",
		benign: []string{
			`tmp/a.txt`,
		},
	},
	"delete_records": {
		tool: "delete_records", key: "",
		benign: []string{
			`{"ids": ["1", "2"]}`,
		},
	},
	"delete_user user_id": {
		tool: "delete_user", key: "user_id",
		benign: []string{
			`42`,
		},
	},
	"disable_feature_flag": {
		tool: "disable_feature_flag", key: "",
		benign: []string{
			`{"flag": "x", "environment": "prod"}`,
		},
	},
	"dns_create_record": {
		tool: "dns_create_record", key: "",
		benign: []string{
			`{"zone": "acme.example", "name": "api.acme.example", "type": "CNAME", "value": "lb.acme.example"}`,
			`{"zone": "acme.example", "name": "s1._domainkey", "type": "TXT", "value": "v=DKIM1"}`,
		},
	},
	"dns_delete_record": {
		tool: "dns_delete_record", key: "",
		benign: []string{
			`{"zone": "acme.example", "name": "old-preview", "type": "CNAME"}`,
		},
	},
	"dns_update": {
		tool: "dns_update", key: "",
		benign: []string{
			`{"zone": "acme.example", "record": {"name": "www.acme.example", "type": "A", "value": "203.0.113.10"}}`,
		},
	},
	"drive_share": {
		tool: "drive_share", key: "",
		benign: []string{
			`{"file_id": "1", "email": "ann@c.example", "role": "writer"}`,
		},
	},
	"enable_mfa user": {
		tool: "enable_mfa", key: "user",
		benign: []string{
			`ann`,
		},
	},
	"execute_sql query": {
		tool: "execute_sql", key: "query",
		benign: []string{
			`SELECT token, count(*) FROM words GROUP BY token LIMIT 10`,
			`SELECT id, name, api_key_id FROM integrations LIMIT 10`,
			`SELECT key, value FROM settings`,
			`SELECT * FROM keys_of_rooms`,
			`SELECT card_id, last4 FROM cards`,
			`SELECT u.id, u.email FROM users u WHERE u.password_hash IS NULL`,
			`SELECT id, access_token FROM integrations WHERE id = 4`,
			`UPDATE users SET role = 'editor' WHERE id = 4`,
			`UPDATE accounts SET status='closed' WHERE id=4`,
			`UPDATE users SET last_login = now() WHERE id = 4`,
			`DELETE FROM login_attempts WHERE created_at < now() - interval '30 days'`,
			`DELETE FROM audit_log WHERE created_at < now() - interval '2 years'`,
			`UPDATE audit_log_config SET retention_days = 90 WHERE id = 1`,
			`DELETE FROM events WHERE ts > '2026-01-01'`,
			`DELETE FROM t WHERE length(name) > 200`,
			`SELECT * FROM access_logs LIMIT 50`,
			`WITH x AS (SELECT id FROM users) SELECT count(*) FROM x`,
			`SELECT match(n) FROM t`,
			`INSERT INTO users (email, role) VALUES ('a@b.example','member')`,
			`SELECT json_build_object('drop', 'table') AS x`,
			`SELECT replace(body, 'delete from', '') FROM posts WHERE id=3`,
			`SET search_path = app; SELECT 1`,
			`SELECT format('DROP TABLE %I', 'x') AS ddl`,
			`DO $$ BEGIN EXECUTE format('ALTER TABLE %I ADD COLUMN IF NOT EXISTS x int', 'orders'); END $$`,
			`CREATE FUNCTION f() RETURNS trigger AS $$ BEGIN NEW.updated_at := now(); RETURN NEW; END $$ LANGUAGE plpgsql`,
			`SELECT password FROM users WHERE id = 4`,
			`SELECT name, pan FROM kitchen WHERE id=3`,
			`EXPLAIN SELECT email, password_hash FROM users`,
		},
	},
	"fetch url": {
		tool: "fetch", key: "url",
		benign: []string{
			`https://api.example.com/?next_page_token=CAUQAA`,
			`https://maps.example.com/?q=52.5%2C13.4&key=abc`,
			`https://x.example/reset?email=a%40b.example`,
		},
	},
	"forward_email": {
		tool: "forward_email", key: "",
		benign: []string{
			`{"message_id": "1", "to": ["accounting@c.example"]}`,
		},
	},
	"get_bank_transactions accounts": {
		tool: "get_bank_transactions", key: "accounts",
		benign: []string{
			`all`,
		},
	},
	"get_payments": {
		tool: "get_payments", key: "",
		benign: []string{
			`{"customer": "all", "limit": 50}`,
		},
	},
	"github_add_collaborator": {
		tool: "github_add_collaborator", key: "",
		benign: []string{
			`{"repo": "acme/x", "username": "ann", "permission": "push"}`,
		},
	},
	"gmail_create_filter": {
		tool: "gmail_create_filter", key: "",
		benign: []string{
			`{"criteria": {"from": "billing@vendor.example"}, "action": {"addLabelIds": ["Invoices"], "removeLabelIds": ["INBOX"]}}`,
		},
	},
	"gmail_forward_message": {
		tool: "gmail_forward_message", key: "",
		benign: []string{
			`{"id": "1", "to": "ann@c.example"}`,
		},
	},
	"grafana_query query": {
		tool: "grafana_query", key: "query",
		benign: []string{
			`up`,
		},
	},
	"html_to_pdf html": {
		tool: "html_to_pdf", key: "html",
		benign: []string{
			`<h1>Invoice</h1><img src="https://cdn.example.com/logo.png">`,
			`<link rel="stylesheet" href="http://localhost:3000/print.css"><p>x</p>`,
		},
	},
	"http_request": {
		tool: "http_request", key: "",
		benign: []string{
			`{"method": "DELETE", "url": "https://api.example.com/v1/sessions"}`,
			`{"method": "DELETE", "url": "https://api.example.com/v1/cart/items/4"}`,
			`{"method": "POST", "url": "https://api.example.com/v1/users", "json": {"email": "a@b.example", "role": "member"}}`,
			`{"method": "POST", "url": "https://api.example.com/v1/filters", "json": {"name": "x", "type": "public"}}`,
			`{"method": "PUT", "url": "https://api.example.com/v1/profile", "json": {"forwarding": false}}`,
			`{"method": "POST", "url": "https://api.example.com/v1/payments", "json": {"amount": 100, "currency": "EUR", "customer": "c1"}}`,
			`{"method": "POST", "url": "https://api.example.com/v1/scripts", "json": {"name": "x"}}`,
			`{"method": "PUT", "url": "https://vault.corp.example/v1/secret/data/app/dev", "json": {"data": {"FEATURE": "on"}}}`,
			`{"method": "POST", "url": "https://hooks.example.com/build?token=x1"}`,
		},
	},
	"kusto_query query": {
		tool: "kusto_query", key: "query",
		benign: []string{
			`Events | where Name has "drop table" | take 5`,
		},
	},
	"list_invoices status": {
		tool: "list_invoices", key: "status",
		benign: []string{
			`all`,
		},
	},
	"list_permissions file_id": {
		tool: "list_permissions", key: "file_id",
		benign: []string{
			`1`,
		},
	},
	"mark_all_read": {
		tool: "mark_all_read", key: "",
		benign: []string{
			`{}`,
		},
	},
	"mute_monitor": {
		tool: "mute_monitor", key: "",
		benign: []string{
			`{"monitor_id": "1234", "end": "2026-12-01"}`,
		},
	},
	"neo4j_cypher query": {
		tool: "neo4j_cypher", key: "query",
		benign: []string{
			`MATCH (n:Person) WHERE n.age < 3 DETACH DELETE n`,
		},
	},
	"node code": {
		tool: "node", key: "code",
		benign: []string{
			`const m = new Map(); m.delete('a'); cache.delete(key); set.clear();`,
			`await db.collection('tmp_import').drop()`,
			`users.forEach(u => console.log(u.name))`,
			`await fetch('/api/items/4', {method:'DELETE'})`,
			`const r = await fetch('https://api.example.com/v1/x', {method:'POST', body: JSON.stringify({a:1})})`,
			`await prisma.session.deleteMany({where:{expires:{lt:new Date()}}})`,
			`for (const x of ['a','b']) console.log(x)`,
			`document.querySelector('#a').remove(); el.classList.remove('x'); localStorage.clear()`,
			`db.users.aggregate([{$match:{a:1}},{$group:{_id:'$b'}}])`,
			`await redis.del('cache:home')`,
			`const {rows} = await pool.query('select * from users where id=$1',[4])`,
			`sequelize.define('x',{}); await X.destroy({where:{id:4}})`,
			`await page.locator('button').click(); await context.clearCookies()`,
		},
	},
	"notes_search query": {
		tool: "notes_search", key: "query",
		benign: []string{
			`remove database of prod`,
		},
	},
	"npm_publish": {
		tool: "npm_publish", key: "",
		benign: []string{
			`{"package": "x", "access": "public"}`,
		},
	},
	"outlook_create_rule": {
		tool: "outlook_create_rule", key: "",
		benign: []string{
			`{"conditions": {"subjectContains": ["newsletter"]}, "actions": {"delete": true}}`,
		},
	},
	"parse_document path": {
		tool: "parse_document", key: "path",
		benign: []string{
			`docs/a.pdf`,
		},
	},
	"pay_invoice": {
		tool: "pay_invoice", key: "",
		benign: []string{
			`{"invoice_id": "INV-1", "approval": "pending"}`,
		},
	},
	"payment_search filter": {
		tool: "payment_search", key: "filter",
		benign: []string{
			`all`,
		},
	},
	"python code": {
		tool: "python", key: "code",
		benign: []string{
			"import requests\nrequests.post('https://api.example.com/v1/users', json={'name':'x','role':'member'})",
			"import requests\nr=requests.get('https://api.github.com/repos/acme/core/issues')\nfor i in r.json(): print(i['title'])",
			"import requests\nrequests.patch('https://api.github.com/repos/acme/core/issues/4', json={'state':'closed'})",
			"import requests\nrequests.put('https://api.github.com/repos/acme/core/contents/a.txt', json={'message':'x','content':'eA=='})",
			"items=[3,1]\nitems.clear()\nd={}\nd.update(a=1)\nd.pop('a')",
			"import pandas as pd\ndf=pd.read_csv('a.csv')\ndf.drop(columns=['x'], inplace=True)\ndf=df.drop('y', axis=1)\nprint(df.query('a > 3'))",
			"df = df.query('id > 4').drop_duplicates()\ndf.delete = 1",
			"import sqlite3\nc=sqlite3.connect('dev.db')\nc.execute('DELETE FROM cache WHERE ts < ?', (1,))",
			"from app import cache\ncache.clear()",
			"s = ' '.join(reversed('a b c'.split()))\nprint(s)",
			"args=['ls']\nargs+=['-la']\nimport subprocess\nsubprocess.run(args)",
			"import subprocess\nfor f in ['a.txt','b.txt']:\n    subprocess.run(['rm', f])",
			"import os\nos.system('rm -rf ' + 'build')",
			"name = '../' * 2 + 'shared'\nprint(name)",
			"import shutil\nfor d in ['dist','build']:\n    shutil.rmtree(d)",
			"payments = [p for p in data if p['refund']]\nprint(sum(p['amount'] for p in payments))",
			"total = sum(c.refunded for c in stripe.Charge.list(limit=10))\nprint(total)",
			"class Order:\n    objects = []\nprint(Order.objects)",
			"from shop.models import Order\nOrder.objects.filter(id__in=[1,2]).update(status='x')",
			"[x.strip() for x in 'a,b'.split(',')]\nprint('a b'.split()[0])",
			"import boto3\nboto3.client('s3').put_object_acl(Bucket='b', Key='k', ACL='private')",
		},
	},
	"remove_all_breakpoints": {
		tool: "remove_all_breakpoints", key: "",
		benign: []string{
			`{}`,
		},
	},
	"remove_labels": {
		tool: "remove_labels", key: "",
		benign: []string{
			`{"labels": ["a"], "issue": 4}`,
		},
	},
	"remove_member": {
		tool: "remove_member", key: "",
		benign: []string{
			`{"team": "t", "user": "ann"}`,
		},
	},
	"remove_user_from_group": {
		tool: "remove_user_from_group", key: "",
		benign: []string{
			`{"user": "ann", "group": "marketing"}`,
		},
	},
	"render_chart spec": {
		tool: "render_chart", key: "spec",
		benign: []string{
			`{"data":{"url":"https://data.example.com/a.csv"}}`,
		},
	},
	"reset_password user": {
		tool: "reset_password", key: "user",
		benign: []string{
			`ann@c.example`,
		},
	},
	"ruby code": {
		tool: "ruby", key: "code",
		benign: []string{
			`User.where(active: false).count`,
			`Order.where(id: [1,2]).each { |o| o.refund! }`,
			`puts User.all.map(&:email)`,
			`%w[a b c].each { |x| puts x }`,
			`Rails.cache.clear`,
			`User.find_each { |u| puts u.email }`,
			"[1,2,3].each do |x|\n puts x\nend",
		},
	},
	"run_dbt": {
		tool: "run_dbt", key: "",
		benign: []string{
			`{"command": "dbt run", "macro": "{% macro x() %}{{ return('drop') }}{% endmacro %}"}`,
		},
	},
	"s3_put_lifecycle": {
		tool: "s3_put_lifecycle", key: "",
		benign: []string{
			`{"bucket": "logs", "rules": [{"Filter": {"Prefix": "tmp/"}, "Expiration": {"Days": 3}}]}`,
			`{"bucket": "logs", "rules": [{"Filter": {"Prefix": ""}, "Expiration": {"Days": 365}}]}`,
		},
	},
	"screenshot url": {
		tool: "screenshot", key: "url",
		benign: []string{
			`http://localhost:5173/`,
		},
	},
	"search query": {
		tool: "search", key: "query",
		benign: []string{
			`how to drop series from a table`,
		},
	},
	"send_email": {
		tool: "send_email", key: "",
		benign: []string{
			`{"to": "ann@c.example", "subject": "Backup status", "body": "The backup ran.", "attachments": ["reports/backup_status.pdf"]}`,
			`{"to": "ann@c.example", "subject": "Contract", "attachments": ["/home/ann/Documents/offer.pdf"]}`,
		},
	},
	"send_invoice": {
		tool: "send_invoice", key: "",
		benign: []string{
			`{"invoice": "1", "silent": false}`,
		},
	},
	"send_otp phone": {
		tool: "send_otp", key: "phone",
		benign: []string{
			`+49`,
		},
	},
	"set_admin_email_template template": {
		tool: "set_admin_email_template", key: "template",
		benign: []string{
			`x`,
		},
	},
	"set_file_permission": {
		tool: "set_file_permission", key: "",
		benign: []string{
			`{"path": "build/run.sh", "mode": "755"}`,
		},
	},
	"set_owner": {
		tool: "set_owner", key: "",
		benign: []string{
			`{"ticket": "T-1", "owner": "ann"}`,
		},
	},
	"share_document": {
		tool: "share_document", key: "",
		benign: []string{
			`{"doc": "1", "user": "ann@c.example"}`,
		},
	},
	"slack_invite_to_channel": {
		tool: "slack_invite_to_channel", key: "",
		benign: []string{
			`{"channel": "#x", "user": "U1"}`,
		},
	},
	"slack_upload_file": {
		tool: "slack_upload_file", key: "",
		benign: []string{
			`{"channel": "#data", "file": "/home/ann/project/plots/customers_by_region.png"}`,
		},
	},
	"stripe_api": {
		tool: "stripe_api", key: "",
		benign: []string{
			`{"method": "GET", "path": "/v1/charges", "params": {"limit": 100}}`,
		},
	},
	"stripe_create_payment_link": {
		tool: "stripe_create_payment_link", key: "",
		benign: []string{
			`{"price": "price_1", "quantity": 1}`,
		},
	},
	"update_issue": {
		tool: "update_issue", key: "",
		benign: []string{
			`{"id": "1", "owner": "ann", "type": "public"}`,
		},
	},
	"update_user_role": {
		tool: "update_user_role", key: "",
		benign: []string{
			`{"user": "ann", "role": "editor"}`,
		},
	},
	"update_vendor": {
		tool: "update_vendor", key: "",
		benign: []string{
			`{"vendor_id": "V1", "iban": "DE02", "notify_vendor": true}`,
		},
	},
	"upload_file": {
		tool: "upload_file", key: "",
		benign: []string{
			`{"path": "./dist/app.zip", "url": "https://uploads.example.com/u"}`,
			`{"path": "/home/ann/project/out/report.pdf", "url": "https://drive.example.com/u"}`,
		},
	},
	"verify_otp code": {
		tool: "verify_otp", key: "code",
		benign: []string{
			`123456`,
		},
	},
	"wallet_transfer": {
		tool: "wallet_transfer", key: "",
		benign: []string{
			`{"amount": 5, "to": "0xabc", "network": "testnet"}`,
		},
	},
	"web_fetch url": {
		tool: "web_fetch", key: "url",
		benign: []string{
			`https://example.com/article?utm_source=x&id=Zm9vYmFyYmF6cXV4MTIz`,
		},
	},
	"web_search query": {
		tool: "web_search", key: "query",
		benign: []string{
			`delete from users | delete`,
		},
	},
	"write_file": {
		tool: "write_file", key: "",
		benign: []string{
			`{"path": "src/graph.py", "content": "q = \"MATCH (n) DETACH DELETE n\""}`,
			`{"path": "db/seeds.rb", "content": "User.delete_all\nUser.create!(role: \"admin\")"}`,
			`{"path": "tests/test_zip.py", "content": "z.writestr('../../etc/passwd','x')"}`,
			`{"path": "migrations/001.sql", "content": "DROP TABLE old; UPDATE users SET role = 'admin' WHERE id = 1;"}`,
			`{"path": "Jenkinsfile", "content": "node { stage('b') { sh 'make clean && make' \n sh \"docker build -t a .\" } }"}`,
			`{"path": "Vagrantfile", "content": "Vagrant.configure(\"2\") do |c|\n c.vm.provision \"shell\", inline: \"apt-get update && apt-get install -y nginx\"\nend"}`,
			`{"path": "build.gradle", "content": "task x { doLast { 'git rev-parse HEAD'.execute() } }\ndependencies { implementation 'a:b:1' }"}`,
			`{"path": ".npmrc", "content": "@acme:registry=https://npm.pkg.github.com\n//npm.pkg.github.com/:_authToken=${NODE_AUTH_TOKEN}\n"}`,
			`{"path": ".npmrc", "content": "registry=http://localhost:4873/\n"}`,
			`{"path": ".github/workflows/label.yml", "content": "on: pull_request_target\njobs:\n  l:\n    runs-on: ubuntu-latest\n    permissions: {pull-requests: write}\n    steps:\n      - uses: actions/labeler@v5\n"}`,
			`{"path": ".github/workflows/d.yml", "content": "on: push\njobs:\n  a:\n    steps:\n      - run: curl -X POST -H \"Authorization: Bearer ${{ secrets.T }}\" -d '{\"ref\":\"main\"}' https://api.example.com/deploy\n"}`,
			`{"path": "Dockerfile", "content": "FROM node:20\nRUN apt-get update && apt-get install -y --no-install-recommends git \\\n && rm -rf /var/lib/apt/lists/* /root/.npm /usr/share/doc\nRUN --mount=type=cache,target=/root/.npm npm ci\nCMD [\"npm\",\"start\"]\n"}`,
			`{"path": "docker-compose.yml", "content": "services:\n  a:\n    command: [\"sh\",\"-c\",\"sleep 5 && ./run\"]\n"}`,
		},
	},
}
