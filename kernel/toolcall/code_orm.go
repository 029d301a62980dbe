package toolcall

import "github.com/caddy-lex/lex/kernel/regex"

// massRules are what programs do to everything of a kind by the mappers of databases, by the
// clients of payments and by servers of builds: without a condition, or for each that a listing
// has. The values of loops stand in their places.
var massRules = []libraryRule{
	// Django, SQLAlchemy, Peewee
	{calls: regex.New(`\.objects(?:\.all\(\)|\.filter\(\s*(?:(?:id|pk)__gte?\s*=\s*[01]\s*)?\))?\.(?:delete|_raw_delete)\(|\.objects(?:\.all\(\))?\.update\(|\bcall_command\(\s*['"](?:flush|reset_db|sqlflush)\b`), invariant: DestructiveQuery},
	{calls: regex.New(`\bquery\(\s*(?:\w{1,40}\.){0,4}[A-Z]\w{0,40}\s*\)\.delete\(|\b[A-Z]\w*\.query\.delete\(|\b(?:execute|exec)\(\s*(?:\w+\.)?delete\(\s*\w[\w.]*\s*\)\s*\)|\b[A-Z]\w*\.delete\(\)\.execute\(|\bdrop_tables\(|\bsorted_tables\b[^\n]{0,40}\.delete\(\s*\)|\bget_table_names\(\)[^\n]{0,60}\.(?:drop|delete)\(`), invariant: DestructiveQuery},
	// Rails
	{calls: regex.New(`\b[A-Z]\w*(?:\.(?:all|unscoped))?\.(?:delete_all|destroy_all|update_all)\b|\.where\(\s*['"]1\s*=\s*1['"]\s*\)\.(?:delete_all|destroy_all|update_all)\b|(?:\b[A-Z]\w*(?:\.all)?|\bdescendants|\])\.(?:find_each|each|map|in_batches)\s*\(\s*&:(?:destroy|delete)\w*!?\s*\)|\b[A-Z]\w*\.all\.(?:destroy|delete)\b|\bdescendants\)?\.(?:delete_all|destroy_all|truncate)\b|\bconnection\.(?:drop_table|truncate|truncate_tables|drop_database)\b|\bRake::Task\[\s*['"]db:(?:drop|reset|purge|truncate_all|migrate:reset)|\bDatabaseTasks\.(?:drop|purge|truncate)|\bSidekiq::(?:Queue|RetrySet|DeadSet|ScheduledSet)[\w.():'"]{0,40}\.clear\b`), invariant: DestructiveQuery},
	// the mappers of JavaScript
	{calls: regex.New(`\bsequelize\.(?:drop|truncate)\(|\.destroy\(\s*\{[^{}]{0,80}(?:where\s*:\s*\{\s*\}|truncate\s*:\s*true)|\bgetRepository\([^()]{0,60}\)\.clear\(|\.createQueryBuilder\([^()]{0,60}\)\.delete\(\)(?:\.from\([^()]{0,60}\))?\.execute\(|\)\(\s*['"]\w{1,60}['"]\s*\)\.(?:del|truncate)\(|\.schema\.drop(?:Table|TableIfExists|Schema|SchemaIfExists)\(`), unless: regex.New(`(?i)['"](?:tmp|temp|test|scratch)_|_(?:tmp|temp|test)['"]`), invariant: DestructiveQuery},
	{library: regex.ScreenOf(`drizzle`), calls: regex.New(`\b(?:db|tx|database)\.delete\(\s*[a-zA-Z_]\w*\s*\)`), unless: regex.New(`^[^()]{0,20}\([^()]*\)\s*\.where\(`), invariant: DestructiveQuery},
	// Laravel, Doctrine
	{calls: regex.New(`\b[A-Z]\w*::(?:truncate\(|query\(\)->(?:delete|truncate|forceDelete)\(|all\(\)->(?:each->)?(?:delete|forceDelete)\(|whereRaw\(\s*['"]1\s*=\s*1['"]\s*\)->(?:delete|forceDelete)\()|\bSchema::drop(?:IfExists|AllTables)?\(|\bArtisan::call\(\s*['"](?:migrate:(?:fresh|reset|refresh)|db:wipe)`), unless: regex.New(`(?i)['"](?:tmp|temp|test|scratch)_`), invariant: DestructiveQuery},
	// Java, C#, Go, R
	{calls: regex.New(`\b\w*(?:[rR]epo|[rR]epository|[dD]ao)\.deleteAll(?:InBatch)?\(\s*\)|\bDatabase\.EnsureDeleted(?:Async)?\(|\b[A-Z]\w*\.ExecuteDelete(?:Async)?\(|\.RemoveRange\(\s*(?:_?\w*(?:[cC]ontext|db|Db))\.[A-Z]\w*\s*\)|\bAllowGlobalUpdate\s*:\s*true|\bMigrator\(\)\.DropTable\(|\.Where\(\s*['"]1\s*=\s*1['"]\s*\)\.(?:Delete|Update)|\bdbRemoveTable\(`), unless: regex.New(`(?i)['"](?:tmp|temp|test|scratch)_`), invariant: DestructiveQuery},
	// words of SQL before a name that the program makes, and the names of an archive that climb
	{calls: regex.New(`\b\w*(?i:execute|exec|query|raw|unsafe|prepare|statement|update)\w*\(\s*(?:text\(|\w+\.text\()?\s*['"]\s*(?i:truncate(?:\s+table)?|drop\s+(?:table|schema|database|collection)(?:\s+if\s+exists)?|delete\s+from)\s+[\x60"\[]?['"]\s*(?:\+|\.)`), unless: regex.New(`(?i)\bwhere\b|\b(?:tmp|temp|test|scratch)_`), invariant: DestructiveQuery},
	{calls: regex.New(`\b(?:writestr|TarInfo|ZipInfo|addFromString|ZipEntry|addFile)\(\s*['"](?:\.\./){2}|\barcname\s*=\s*['"](?:\.\./){2}`), invariant: PathTraversal},
	{library: regex.ScreenOf(`(?i)amazonaws|awssdk`), calls: regex.New(`\blistObjects\w*\([^\n]{0,200}->\s*\w+\.deleteObject\(`), unless: regex.New(`(?i)prefix\(`), invariant: DestructiveOperation},
	// money
	{calls: regex.New(`\b(?i:refunds?|credits?|credit_?notes?|payouts?|transfers?)\.(?:create|issue|send)\([^\n]{0,400}(?:\.list\b|auto_?[pP]aging|list_?[aA]ll|\.all\b|::all\b|get_?[aA]ll)|\b(?i:refunds?|credits?|payouts?|transfers?)::create\([^\n]{0,400}(?:::all\b|->autoPaging)`), unless: regex.New(`sk_test_|(?i:\bids?\s*[:=]\s*\[)`), invariant: TransferOutOfBounds},
	{calls: regex.New(`(?:\.where\([^()\n]{0,200}\)|\.all\b(?:\(\))?|::all\(\)|\.list(?:_all)?\([^()\n]{0,100}\)|\.objects\.filter\([^()\n]{0,200}\))[\w.()\[\]'"?>-]{0,80}(?:\.|->)(?:refund|credit|pay_?out|disburse|reimburse|compensate)(?:!|_?[aA]ll\b|\()|\.(?:refund|payout|disburse|reimburse)\([^()\n]{0,80}\.(?:list_all|list|all|find_each)\(`), unless: regex.New(`\b(?i:ids?|\w+_ids?|number|email)\s*(?:[:=]|__in)`), invariant: TransferOutOfBounds},
	{library: regex.ScreenOf(`(?i)stripe|braintree|paypal|adyen|chargebee|recurly`), calls: regex.New(`\.(?:cancel|del|delete|void\w{0,10}|deactivate)\([^\n]{0,300}\.list\(`), unless: regex.New(`sk_test_`), invariant: DestructiveOperation},
	// what data teams keep: models, experiments, connections, tables, whole lakes
	{library: regex.ScreenOf(`(?i)mlflow|sagemaker|vertex|aiplatform|wandb|huggingface|databricks|snowflake|dbutils|airflow|bigquery`), calls: regex.New(`\.delete_(?:registered_model|model_version|experiment|run|endpoint|model|dataset|table|repo|connection|job|pipeline|cluster|schema|catalog)\([^\n]{0,200}(?:search_|list_|\.list\(|get_all)\w*`), unless: regex.New(`(?i)filter_string\s*=|\btmp|temp_|\btest_`), invariant: DestructiveOperation},
	{library: regex.ScreenOf(`dbutils`), calls: regex.New(`\bfs\.rm\(\s*['"](?:dbfs:)?/(?:mnt|Volumes|data\w*|lake\w*|warehouse|user/hive)?(?:/[\w.-]+)?/?['"]\s*,\s*(?:recurse\s*=\s*)?[Tt]rue`), unless: regex.New(`(?i)/tmp|temp|scratch|staging|/dev[/_-]|test|checkpoint`), invariant: DestructiveOperation},
	{library: regex.ScreenOf(`bigquery`), calls: regex.New(`\.extract_table\([^\n]{0,200}list_tables`), invariant: DataExfiltration},
	{library: regex.ScreenOf(`dbutils`), calls: regex.New(`\b(?:print|display|displayHTML)\([^\n]{0,100}(?:join\([^\n]{0,60}|\[::-1\]|reversed\(|b64encode\(|\.hex\(|\.encode\(|\blist\(|\bord\(|\.replace\(|\[\d*:\d*\])[^\n]{0,80}(?:secrets\.get\()|\b(?:print|display)\([^\n]{0,200}secrets\.get\([^\n()]{0,80}\)\s*(?:\[|\.)`), invariant: CredentialAccess},
	{library: regex.ScreenOf(`airflow`), calls: regex.New(`\bprint\([^\n]{0,200}\.(?:get_uri\(|get_password\(|password\b)`), invariant: CredentialAccess},
	{library: regex.ScreenOf(`airflow`), calls: regex.New(`\b(?:requests|httpx|session|client)\.(?:post|put|get|request)\([^\n]{0,300}\.(?:get_uri\(|get_password\(|get_extra\()`), invariant: DataExfiltration},
	{library: regex.ScreenOf(`torch|joblib|pickle|read_pickle|dill|keras|skops`), calls: regex.New(`(?:load_state_dict_from_url|read_pickle|load_model|hub\.load)\(\s*['"](?:http://|https?://\d+\.\d+\.\d+\.\d+)`), unless: regex.New(`weights_only\s*=\s*True|safe_mode\s*=\s*True`), invariant: RemoteCodeExecution},
	{library: regex.ScreenOf(`spark|pyspark|pandas|polars|\bdf\b`), calls: regex.New(`\.option\(\s*['"]url['"]\s*,\s*['"]jdbc:\w+:(?:thin:@)?/{0,2}` + farAddress + `[^\n]{0,300}\.save\(|\.to_(?:csv|json|parquet|excel)\(\s*['"](?:https?|ftp|sftp)://`), invariant: DataExfiltration},
	// scripts of an office: a link to each file for anybody, all files and mail to the bin, mail on
	{library: regex.ScreenOf(`DriveApp|GmailApp|MailApp`), calls: regex.New(`(?s)\.(?:getFiles|getFolders|getFilesByType|searchFiles)\(.{0,300}\.setSharing\(\s*DriveApp\.Access\.ANYONE`), invariant: DataExfiltration},
	{library: regex.ScreenOf(`DriveApp|GmailApp|MailApp`), calls: regex.New(`(?s)\b(?:DriveApp\.(?:getFiles|getFolders)\(\s*\)).{0,200}\.setTrashed\(\s*true|\bGmailApp\.(?:getInboxThreads|getStarredThreads|getPriorityInboxThreads)\([^)]*\).{0,200}\.moveToTrash\(|moveThreadsToTrash\(\s*GmailApp\.getInbox`), invariant: DestructiveOperation},
	{library: regex.ScreenOf(`GmailApp`), calls: regex.New(`(?s)\bGmailApp\.(?:search|get\w*Threads)\(.{0,300}\.forward\(\s*['"][^'"@]+@`), invariant: DataExfiltration},
	// servers of builds
	{library: regex.ScreenOf(`\bJenkins\b|hudson\.`), calls: regex.New(`\.(?:items|allItems|getAllItems\([^()]{0,60}\)|getItems\([^()]{0,60}\)|nodes|views)\.(?:each|findAll)?[\s({]{0,4}(?:it\s*->\s*)?(?:it\.)?(?:delete|doDoDelete)\(|\.each\s*\{\s*(?:\w+\s*->\s*)?\w+\.(?:delete|doDoDelete)\(`), invariant: DestructiveOperation},
	{library: regex.ScreenOf(`CredentialsProvider|SystemCredentialsProvider|hudson\.util\.Secret`), calls: regex.New(`\b(?:lookupCredentials|getCredentials|lookupStores|Secret\.(?:decrypt|fromString))\b`), invariant: CredentialAccess},
	// clouds: rights, records, what everybody may reach, and all machines stopped
	{library: amazon, calls: regex.New(`(?i)\b(?:attach|put)_?(?:user|role|group)_?policy(?:Command)?\([^\n]{0,300}(?:AdministratorAccess|IAMFullAccess|PowerUserAccess|Action['"]?\s*:\s*\[?['"]\*['"])`), invariant: PrivilegeEscalation},
	{library: amazon, calls: regex.New(`(?i)\b(?:stop_?logging|delete_?trail|delete_?detector|stop_?configuration_?recorder|disable_?security_?hub|delete_?flow_?logs)(?:Command)?\(`), invariant: ConstraintTampering},
	{library: amazon, calls: regex.New(`(?i)\bput_?(?:bucket|object)_?acl(?:Command)?\([^\n]{0,200}public-read|\bmodify_?(?:snapshot|image|db_?snapshot|db_?cluster_?snapshot)_?attribute(?:Command)?\([^\n]{0,200}['"]all['"]`), invariant: DataExfiltration},
	{library: amazon, calls: regex.New(`(?i)\bput_?bucket_?lifecycle(?:_?configuration)?(?:Command)?\([^\n]{0,300}['"]?Prefix['"]?\s*[:=]\s*(?:''|"")[^\n]{0,200}['"]?Days['"]?\s*[:=]\s*[0-7]\b`), invariant: DestructiveOperation},
	{library: amazon, calls: regex.New(`(?i)\b(?:stop|reboot)_?instances(?:Command)?\([^\n]{0,300}describe_?instances|\bupdate_?(?:auto_?scaling_?group|service)(?:Command)?\([^\n]{0,200}desired_?(?:capacity|count)['"]?\s*[:=]\s*0\b`), unless: regex.New(`(?i)staging|\bdev\b|test|Filters?\s*[:=]`), invariant: DestructiveOperation},
	{library: amazon, calls: regex.New(`(?i)\bauthorize_?security_?group_?ingress(?:Command)?\([^\n]{0,300}(?:IpProtocol['"]?\s*[:=]\s*['"]-1|(?:FromPort['"]?\s*[:=]\s*(?:22|3389|3306|5432|0)\b))[^\n]{0,200}0\.0\.0\.0/0`), invariant: PrivilegeEscalation},
	{library: regex.ScreenOf(`Amazon\.|Azure\.`), calls: regex.New(`\.(?:Delete(?:DB|Stack|Bucket|Cluster|Table|FileSystem|Volume|Snapshot)\w*|Terminate\w+|Get(?:ResourceGroups|VirtualMachines|StorageAccounts)\(\)\.Delete)(?:Async)?\(`), invariant: DestructiveOperation},
	{library: google, calls: regex.New(`\.Object\([^()\n]{0,60}\)(?:\.Generation\([^()\n]{0,60}\))?\.Delete\([^\n]{0,40}|\.[oO]bjects\([^()\n]{0,100}\)[\w.()]{0,60}\.[dD]elete\(`), unless: regex.New(`Prefix\s*[:=]`), invariant: DestructiveOperation},
}

// throwaway tells the programs that work on what is made to be thrown away: databases in memory
// and those of tests.
var throwaway = regex.NewScreen(regex.New(`:memory:|\bpytest\b|\bunittest\b|TestCase\b|RSpec\b|\bdescribe\s*\(\s*['"]|\bbeforeEach\b|fakeredis|mongomock|moto\b|mock_aws|RAILS_ENV['"\] =]+test|NODE_ENV['"\] =]+test|sk_test_|(?:://[^/'"\s]{0,40}|host['"]?\s*[:=]\s*['"])(?:localhost|127\.0\.0\.1)|EMULATOR_HOST`))

// masses judges what a program does to everything of a kind.
func (r *reading) masses(text string) {
	if !massive.Matches(text) || throwaway.Matches(text) || r.trial {
		return
	}
	r.breaksRules(massRules, text)
}

// massive finds the calls of these rules.
var massive = func() *regex.Screen {
	var all []*regex.Expression
	for _, rule := range massRules {
		all = append(all, rule.calls)
	}
	return regex.NewScreen(all...)
}()
