package toolcall

// What the clients of services say that takes something from others for good, or hands it to
// everybody. The tables are read as those of shell_patterns.go are, beside them.

// lostServices take away what others work with, or what is kept for them.
var lostServices = byCommand(
	`docker podman docker-compose podman-compose: (?:\S+ )*down\b.*(?: -v\b| --volumes\b).*`+runsForOthers,
	`docker podman docker-compose podman-compose: .*`+runsForOthers+`.* down\b.*(?: -v\b| --volumes\b)`,
	`bq: (?:\S+ )*update .*--default_(?:table|partition)_expiration[= ]\d{1,5}\b`,
	`mc: (?:ilm|lifecycle) (?:rule )?add .*--expir(?:e|y)-days?[= ]"?\d\b|version suspend\b|replicate rm .*--all`,
	`aws: (?:\S+ )*s3api put-bucket-lifecycle-configuration .*"(?:Days|NoncurrentDays)"\s*:\s*\d\b`,
	`gcloud: (?:\S+ )*dns record-sets import .*--delete-all-existing`,
	`pdnsutil: (?:delete-zone|clear-zone|delete-rrset)\b`,
	`rndc: (?:delzone|flush \S|stop|halt)\b`,
	`knotc: (?:\S+ )*zone-(?:purge|unset)\b`,
	`cli53: (?:rrpurge|delete|rrdelete)\b`,
	`octodns-sync: .*--doit .*--force|.*--force .*--doit`,
	`samba-tool: dns (?:delete|zonedelete)\b`,
	`dnscmd: (?i:.*/(?:zone|record)delete)`,
	`aws: (?:\S+ )*route53domains (?:update-domain-nameservers|transfer-domain\S*|delete-domain|disable-domain-(?:transfer-lock|auto-renew))`,
	`crane: (?:\S+ )*delete\b`, `skopeo: (?:\S+ )*delete\b`, `regctl: (?:\S+ )*(?:tag|manifest|image) (?:delete|rm)\b`, `oras: manifest delete\b`,
	`npm: deprecate ['"]?@?[\w./-]+@(?:\*|x|<\S+|>=?\s*\d\S*)['"]? .`,
	`rabbitmqctl rabbitmq-diagnostics: (?:\S+ )*eval .*(?:delete|purge|stop\(|reset|os:cmd|halt\()`,
	`rabbitmqctl: (?:\S+ )*(?:stop_app|stop|shutdown|clear_permissions|forget_cluster_node)\b`,
	`kubectl oc k: (?:\S+ )*patch .*persistentVolumeReclaimPolicy"?\s*:\s*"?Delete`,
	`kubectl oc k: (?:\S+ )*delete (?:\S+ )*(?:-f|--filename|-k|--kustomize)[= ]?\S*(?:prod|production|live)(?:[-_./]\S*)?(?: |$)`,
	`crictl: (?:rm|rmp|rmi) (?:\S+ )*(?:-\w*a\w*|--all)(?: |$)`,
	`systemctl: (?:\S+ )*(?:stop|disable|mask) (?:\S+ )*(?:kubelet|etcd|patroni|keepalived|corosync|pacemaker)(?:\.service)?(?: |$)`,
	`aws: (?:\S+ )*organizations (?:leave-organization|remove-account-from-organization|close-account)\b`,
	`aws: (?:\S+ )*route53 change-resource-record-sets .*(?:"Action"\s*:\s*"DELETE".*"Type"\s*:\s*"(?:MX|NS|SOA)"|"Type"\s*:\s*"(?:MX|NS|SOA)".*"Action"\s*:\s*"DELETE")`,
	`veeamconfig: (?:backup|repository|job) (?:delete|remove)\b`,
	`proxmox-backup-client: (?:snapshot )?forget\b`,
	`bconsole bareos-dir: .*(?:purge|delete|prune)`,
	`kubectl oc: (?:\S+ )*scale .*(?:prometheus|alertmanager|grafana|loki|fluent\w*|velero|falco|gatekeeper|kyverno)\S* .*--replicas[= ]0`,
	`kubectl oc: (?:\S+ )*--replicas[= ]0 .*(?:prometheus|alertmanager|velero|falco|gatekeeper|kyverno)`,
)

// runsForOthers is a file, a name or a host of services that others use.
const runsForOthers = `(?:[-_./ =@]prod(?:uction)?\b|[-_./ =@]live\b|(?:-f|--file|--project-directory)[= ]/(?:opt|srv|etc|var)/)`

// handedServices give rights to somebody else, or to everybody.
var handedServices = byCommand(
	`mc: admin (?:user add|policy (?:attach|set)|group add|accesskey create|user svcacct add)\b`,
	`aws: (?:\S+ )*iam (?:create-policy|put-\S+-policy|create-policy-version) .*(?:`+allows+`.*`+anyAction+`|`+anyAction+`.*`+allows+`)`,
	`aws: (?:\S+ )*(?:ecr set-repository-policy|sns (?:set-topic-attributes|add-permission)|sqs (?:set-queue-attributes|add-permission)|kms put-key-policy|secretsmanager put-resource-policy|lambda add-permission|iam update-assume-role-policy) .*"(?:Principal|AWS)"\s*:\s*\[?"\*"`,
	`az: role assignment create .*(?:8e3af657-a8ff-443c-a75c-2fe8c4bcb635|b24988ac-6180-42a0-ab88-20f7382dd24c|18d7d88d-d35e-4fb5-a5c3-7773c20a72d9)`,
	`az: ad (?:app|sp) credential reset|ad user create|ad group member add`,
	`gcloud: (?:\S+ )*add-iam-policy-binding .*(?:iam\.serviceAccountTokenCreator|iam\.serviceAccountUser|iam\.workloadIdentityUser)`,
	`gcloud: (?:\S+ )*add-iam-policy-binding .*user:\S+@(?:gmail|outlook|proton|yahoo)\.`,
	`kubectl oc: (?:\S+ )*create (?:cluster)?role .*--verb[= ]['"]?\*.*--resource[= ]['"]?\*`,
	`kubectl oc: (?:\S+ )*label .*pod-security\.kubernetes\.io/enforce=privileged`,
	`vault: (?:\S+ )*(?:token create .*-policy[= ]root|write \S*(?:users|roles?|groups|entity)\S* .*(?:policies|policy|token_policies)=\S*(?:root|admin))`,
	`rabbitmqctl: (?:\S+ )*set_user_tags \S+ .*administrator`,
	`kafka-acls kafka-acls.sh: .*--add .*--allow-principal[= ]['"]?User:['"]?\*`,
	`npm: (?:owner add|access grant read-write|access set mfa=none|access 2fa-not-required|org set \S+ \S+ (?:owner|admin)|team add|token create)\b`,
	`gem: owner .*(?:-a|--add)\b`,
	`cargo: owner .*(?:-a|--add)\b`,
	`pnpm yarn: (?:npm )?owner add\b`,
)

// What a policy of AWS says that allows everything.
const (
	allows    = `"Effect"\s*:\s*"Allow"`
	anyAction = `(?:"Action"\s*:\s*\[?\s*"(?:\*|\\u002[aA]|\*:\*|iam:\*|sts:\*)"|"NotAction")`
)

// openedServices let everybody read, or carry what a service holds to somebody else.
var openedServices = byCommand(
	`aws: (?:\S+ )*s3 (?:cp|sync|mv) s3://.*(?:--acl[= ]public-|--grants .*AllUsers)`,
	`aws: (?:\S+ )*(?:s3 (?:cp|sync|mv)|s3api put-object) .*`+keptFor+`.*(?:--acl[= ]public-|--grants .*AllUsers)`,
	`gsutil: (?:\S+ )*(?:cp|rsync) .*-a public-read\S* .*(?:gs://\S+ gs://|`+keptFor+`)`,
	`s3cmd: (?:setacl|sync|put|cp) .*(?:--acl-public|-P\b).*`+keptFor+`|(?:setacl|sync|put|cp)\b.*`+keptFor+`.*(?:--acl-public|-P\b)`,
	`s3cmd: setacl .*--recursive.*--acl-public|setacl .*--acl-public.*--recursive`,
	`rclone: .*--s3-acl[= ]public-read`,
	`mc: (?:anonymous|policy) set(?:-json)? (?:public|download|upload|\S+\.json)\b`,
	`az: (?:\S+ )*container create .*--public-access[= ](?:blob|container)`,
	`ssh autossh: (?:\S+ )*-\w*R ?(?:\S*:)?\d+:(?:\[[0-9a-f:]+\]|[\w.-]*[a-zA-Z][\w.-]*\.[\w.-]+|(?:[2-9]\d*|1|1[013-9]\d?|12[0-689]?)\.\d+\.\d+\.\d+):\d+`,
	`ssh autossh: (?:-\S+ )*-\w*R ?(?:\S+:)?1080(?: |$)`,
	`chisel: client .*\bR:`,
	`ngrok bore: (?:tcp|local) (?:\S+:)?(?:3306|5432|1433|1521|6379|27017|9200|11211|2375|6443|445|5985)\b`,
	`cloudflared: (?:\S+ )*tunnel .*--url[= ](?:tcp|ssh|rdp|smb)://|access tcp .*--url`,
	`frpc: .*-c ?/(?:tmp|var/tmp|dev/shm)/`,
	`gost: .*-[LF][= ]?\S*:`,
	`socat: .*tcp\d?-listen:\S*fork\S* +tcp\d?:[\w.-]*[a-z][\w.-]*\.[\w.-]+:\d+`,
	`socat: .*TCP\d?-LISTEN:\S*fork\S* +TCP\d?:[\w.-]*[a-z][\w.-]*\.[\w.-]+:\d+`,
	`kubectl oc k: (?:\S+ )*port-forward .*--address[= ]\S*0\.0\.0\.0.*(?:3306|5432|6379|27017|9200|1433|2379|6443|:22)\b`,
	`tailscale: funnel (?:\S+ )*(?:22|3306|5432|6379|3389)\b|up .*--auth-?key\S* .*--ssh|up .*--ssh .*--auth-?key`,
	`aws: (?:\S+ )*(?:ec2 modify-snapshot-attribute .*--user-ids \d|ec2 modify-image-attribute .*(?:--user-ids \d|UserId"?[=:] ?"?\d)|rds modify-db-(?:cluster-)?snapshot-attribute .*--values-to-add \S*\d{12}|rds modify-db-\S+ .*--publicly-accessible)`,
	`psql: .*\\copy .*(?i:to program) .*(?:curl|wget|nc|ncat|ssh|openssl|socat)\b`,
	`psql: .*\\(?:g|o|gx) *\| *(?:curl|wget|nc|ncat|ssh|openssl|socat)\b|(?:\S+ )*-o ?\| *(?:curl|wget|nc|ncat|ssh)\b`,
	`sqlite3: .*\.(?:once|output) '?\|`,
	`mysql mariadb: .*--(?:tee|pager)[= ](?:/dev/tcp/|\S*curl|\S*\bnc )`,
)

// keptFor is what a folder or a bucket is called that is nobody's to show.
const keptFor = `(?i:[-_/ .](?:customers?|clients|patients?|hr|payroll|backups?|invoices?|finance|exports?|private|internal|confidential|personal|users)[-_/ .\d])`

// watchedServices blind what watches and records.
var watchedServices = byCommand(
	`aws: (?:\S+ )*ec2 authorize-security-group-ingress .*(?:`+widePorts+`.*0\.0\.0\.0/0|0\.0\.0\.0/0.*`+widePorts+`)`,
	`aws: (?:\S+ )*--no-(?:disable-api-termination|deletion-protection|enable-termination-protection)\b`,
	`gcloud: (?:\S+ )*firewall-rules (?:create|update) .*(?:`+widePorts+`.*0\.0\.0\.0/0|0\.0\.0\.0/0.*`+widePorts+`)`,
	`gcloud: (?:\S+ )*sql instances patch .*--(?:authorized-networks[= ]\S*0\.0\.0\.0/0|no-deletion-protection|no-backup)`,
	`az: (?:\S+ )*nsg rule (?:create|update) .*--source-address-prefix(?:es)?[= ]['"]?(?:\*|Internet|0\.0\.0\.0/0).*--destination-port-range(?:s)?[= ]['"]?(?:\*|22|3389|5432|3306)(?:['"]| |$)`,
	`az: (?:\S+ )*firewall-rule create .*0\.0\.0\.0 .*255\.255\.255\.255`,
	`doctl: databases firewalls append .*0\.0\.0\.0/0`,
	`amtool: (?:\S+ )*silence add .*(?:=~? ?["']?\.[*+]["']?(?: |$)|(?:-d|--duration)[= ]["']?(?:\d+y|\d{3,}d|\d{2,}w|\d{4,}h))`,
	`splunk: (?:search .*\| *delete\b|clean (?:eventdata|all)\b|(?:remove|disable) (?:index|monitor|forward-server)\b|stop\b)`,
	`systemctl: (?:\S+ )*(?:stop|disable|mask|kill) (?:\S+ )*`+watchers+`(?:\.service)?(?: |$)`,
	`docker podman: (?:\S+ )*(?:stop|kill|rm) (?:\S+ )*(?:\S*[-_])?`+watchers+`(?:[-_]\w+)?(?: |$)`,
	`helm: (?:\S+ )*(?:uninstall|delete) (?:\S*-)?`+watchers,
	`vault: audit disable\b`,
	`resolvectl systemd-resolve: (?:dns \S+ +\d|.*--set-dns)`,
	`nmcli: (?:\S+ )*mod\w* .*\bipv[46]\.dns\b`,
	`networksetup: -set(?:dnsservers|webproxy|securewebproxy|socksfirewallproxy|autoproxyurl)\b`,
	`scutil: --dns .*set`,
	`curl http https xh: .*(?:/admin/tsdb/(?:delete_series|clean_tombstones)|/loki/api/v1/delete\b)`,
	`promtool: tsdb .*delete`,
	`gh: (?:\S+ )*(?:ruleset|api \S*rulesets\S*) .*(?:delete|DELETE)`,
)

// widePorts are all ports, or those of a login or a database.
const widePorts = `(?:--protocol[= ](?:all|-1)|IpProtocol"?[=:] ?"?-1|--allow[= ]all\b|(?:--port[= ]|tcp:)(?:0-65535|22|3389|5432|3306|1433|6379|27017|9200)\b)`

const watchers = `(?:prometheus|alertmanager|node[-_]exporter|zabbix-(?:server|agent2?)|nagios|icinga2?|telegraf|collectd|netdata|newrelic-infra|crowdstrike|elastic-agent|metricbeat|suricata|snort|zeek|aide|tripwire)`

// shownByHistory are secrets that somebody has once put into a repository and taken out.
var shownByHistory = byCommand(
	`git: (?:\S+ )*log (?:\S+ )*(?:-p|--patch|-u)\b.*-[SG] ?['"]?(?i:.*(?:private|secret|passw|api.?key|token|akia|aws_))`,
	`git: (?:\S+ )*log .*-[SG] ?['"]?(?i:.*(?:private|secret|passw|api.?key|token|akia|aws_)).* (?:-p|--patch|-u)(?: |$)`,
	`git: (?:\S+ )*(?:log|show|diff) (?:\S+ )*(?:-p|--patch)\b.* (?:-- )?\S*(?:\.env|id_rsa|id_ed25519|\.pem|\.p12|\.pfx|credentials|master\.key|\.npmrc|\.netrc|secrets\.ya?ml)(?: |$)`,
	`git: (?:\S+ )*(?:show|cat-file (?:-p|blob)) (?:\S+ )*\S+:\S*(?:\.env(?:\.prod\w*|\.local|\.live)?|id_rsa|id_ed25519|[\w-]+\.p12|[\w-]+\.pfx|\.aws/credentials|credentials\.json|master\.key|\.npmrc|\.netrc|secrets\.ya?ml)(?: |$)`,
	`git: (?:\S+ )*grep .*(?i:begin .*private|akia|aws_secret).* (?:`+unknownText+`|--all|[0-9a-f]{7,})`,
)

// plantedServices open a login, or a way into what is run later.
var plantedServices = byCommand(
	`gh: ssh-key add\b|repo deploy-key add .*(?:--allow-write|-w)\b|api (?:.* )?\S*/keys .*read_only=false`,
	`glab: ssh-key add\b|deploy-key add .*--can-push`,
	`az: (?:\S+ )*vm user update\b`,
	`gcloud: (?:\S+ )*(?:os-login ssh-keys add|add-metadata .*ssh-keys=)`,
	`aws: (?:\S+ )*(?:ec2-instance-connect send-ssh-public-key|iam upload-ssh-public-key)\b`,
	`doctl hcloud linode-cli: (?:\S+ )*ssh-keys? (?:import|create|add)\b`,
)

// fetchedServices run what comes from an address that has no name, or from a repository that
// the machine was not set up with.
var fetchedServices = byCommand(
	`kubectl oc k: (?:\S+ )*(?:apply|create|replace) (?:\S+ )*(?:-f|--filename)[= ]?https?://\d+\.\d+\.\d+\.\d+`,
	`helm: (?:\S+ )*(?:install|upgrade|template|repo add) .*(?:oci|https?)://\d+\.\d+\.\d+\.\d+`,
	`docker podman nerdctl: (?:\S+ )*(?:run|pull|create) (?:\S+ )*\d+\.\d+\.\d+\.\d+(?::\d+)?/\S`,
	`ansible-pull: .*(?:-U|--url)[= ]?\S*(?:://|@)`,
)

// shownServices print the secrets of what runs elsewhere.
var shownServices = byCommand(
	`glab: variable (?:list|export|get)\b`,
	`aws: (?:\S+ )*lambda get-function(?:-configuration)? .*Environment`,
	`consul: kv (?:get|export) .*(?i:secret|passw|token|credential|private)`,
)
