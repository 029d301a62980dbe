package toolcall

import "github.com/caddy-lex/lex/kernel/regex"

// Windows keeps the secrets of its accounts in known places: the database of the directory and
// the hives of the registry (ATT&CK T1003.002 and .003), the memory of lsass (T1003.001),
// policies (T1552.006), DPAPI's keys (T1555), tickets (T1558.003), keys of certificates
// (T1552.004), and attributes of the directory that hold passwords of machines. To see when one
// runs out, whether a disk is encrypted, and which certificates there are shows none.

// hiddenAttribute is an attribute of a directory that is a password or a key. The times at which
// they run out are none.
const hiddenAttribute = `(?:ms-mcs-admpwd(?:[^e\w]|$)|mslaps-(?:encrypted)?(?:dsrm)?password(?:history)?(?:[^eh\w]|$)|msds-managedpassword(?:[^i\w]|$)|unixuserpassword|userpassword|unicodepwd|msfve-recoverypassword|msfve-keypackage|supplementalcredentials|ntpwdhash|dbcspwd)`

// hiveFile is a file in which Windows keeps the secrets of accounts.
const hiveFile = `(?:ntds\.dit|\\config\\(?:regback\\)?(?:sam|security|system)\b|/config/(?:sam|security|system)\b)`

var dumpedSecrets = byCommand(
	`get-adcomputer get-adobject get-aduser get-adserviceaccount get-domaincomputer get-domainobject get-domainuser: .*`+hiddenAttribute,
	`ldapsearch dsquery adfind: .*`+hiddenAttribute,
	`get-admpwdpassword get-lapsadpassword get-lapsaadpassword get-aadintsynccredentials get-aadintaccesstokenforaadgraph get-aadintlsasecrets get-gpppassword get-cachedgpppassword get-addbaccount get-adreplaccount get-adreplbackupkey get-addbbackupkey export-aadintadfssigningcertificate export-aadintadfscertificates get-lsasecret get-vaultcredential invoke-mimikatz invoke-kerberoast invoke-dcsync invoke-ninjacopy out-minidump get-passhashes invoke-powerdump get-keystrokes get-browserdata: `,
	`reg: (?:save|export|copy) (?:hklm|hkey_local_machine)\\(?:sam|security)\b|query (?:hklm|hkey_local_machine)\\(?:sam|security)(?:\\|\b)`,
	`get-itemproperty get-childitem gci gp: .*(?:hklm:\\?|hkey_local_machine\\)(?:sam|security)(?:\\|\b)`,
	`esentutl copy copy-item cp xcopy robocopy type get-content gc cat expand makecab compress-archive certutil rawcopy raw_copy wbadmin: .*`+hiveFile,
	`ntdsutil: .*\bifm\b`,
	`diskshadow: .*\bexec\b.*`+hiveFile,
	`sqldumper createdump procdump procdump64 nanodump handlekatz dumpert rdrleakdiag werfault: .*(?:lsass|0x0?1100|/o \S+ /fullmemdmp)`,
	`nanodump handlekatz dumpert safetykatz sharpkatz sharpdpapi sharpchrome donpapi lsassy pypykatz lazagne kerbrute mimikatz gsecdump wce fgdump pwdump7 pwdump: .*\w`,
	`rundll32: .*comsvcs(?:\.dll)?\b.*(?:minidump|#-?24|#\+?0*24)`,
	`rubeus: .*\b(?:kerberoast|asreproast|dump|triage|monitor|harvest|hash|brute)\b`,
	`getuserspns.py getnpusers.py impacket-getuserspns impacket-getnpusers getlapspassword.py gmsadumper.py impacket-secretsdump secretsdump.py dpapi.py impacket-dpapi gettgt.py impacket-gettgt: .*\w`,
	`nxc netexec crackmapexec cme: .*--(?:ntds|sam|lsa|dpapi|laps|gmsa|kerberoasting|asreproast)\b|.*-m (?:lsassy|nanodump|procdump|gpp_\w+|laps|ntdsutil|keepass_\w+|handlekatz|mimikatz|wdigest)`,
	`findstr select-string sls: .*\bcpassword\b.*(?:sysvol|policies)|.*(?:sysvol|policies).*\bcpassword\b`,
	`get-childitem gci dir ls: .*\\sysvol\b.*\| ?(?:select-string|sls|findstr) .*cpassword`,
	`copy-item copy xcopy robocopy cp compress-archive move-item: .*(?:\\microsoft\\(?:protect|credentials|vault|systemcertificates|crypto)\b|appdata\\(?:roaming|local)\\microsoft\\(?:protect|credentials|vault)\b)`,
	`get-childitem gci dir ls where: .*(?:\*\.kdbx?|\*\.pfx|\*\.p12|\*\.ppk|\*\.rdg|id_rsa|unattend\.xml|sysprep\.(?:inf|xml)|\*\.pem).*\| ?(?:%|foreach\S*|copy|copy-item|compress-archive|get-content|gc|select-string).*`,
	`get-bitlockervolume: .*(?:\.recoverypassword\b|\b(?:select|select-object|fl|ft|format-list|format-table|expandproperty)\b.*\brecoverypassword\b)`,
	`manage-bde: .*-protectors -get\b`,
	`certutil: .*-(?:exportpfx|backupkey|backup)\b`,
	`backup-caroleservice: `,
	`export-pfxcertificate: .*(?:\\\\[\w.]+\\|\\temp\\|\\tmp\\|\\public\\|\$env:temp|%temp%)`,
	`get-childitem gci dir: .*cert:.*\| ?(?:%|foreach\S*)?.*export-pfxcertificate`,
	`appcmd: list .*(?:/text:\S*password|/config\b.*processmodel|apppools? .*/text:\*|vdirs? .*/text:\S*password)`,
	`get-webconfigurationproperty get-webconfiguration get-itemproperty get-itempropertyvalue: .*(?:processmodel|virtualdirectorydefaults).*password|.*password.*processmodel|.*\bprocessmodel\.password`,
	`get-azkeyvaultsecret: .*(?:-asplaintext|secretvaluetext|\.secretvalue\b)`,
	`get-azaccesstoken: .*(?:\.token\b|-asplaintext|expandproperty token|select token)`,
	`get-azstorageaccountkey get-azcosmosdbaccountkey get-azservicebuskey get-azeventhubkey get-azrediscachekey get-azwebapppublishingprofile get-azbatchaccountkey get-azcontainerregistrycredential get-azsearchadminkeypair get-azcognitiveservicesaccountkey: `,
)

// ticketRequest asks for the ticket of a service, whose key is made of a password, and
// manyAccounts finds the accounts that have one.
var (
	ticketRequest = regex.ScreenOf(`kerberosrequestorsecuritytoken`)
	manyAccounts  = regex.ScreenOf(`serviceprincipalname\s*[=-]`, `findall\(`, `get-aduser\b`, `setspn\b.*-q\s+\*/\*`, `getrequest\(`)
)
