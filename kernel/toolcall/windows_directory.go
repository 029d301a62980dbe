package toolcall

import "github.com/caddy-lex/lex/kernel/regex"

// Who rules a directory is changed in few ways: a seat in one of its ruling groups (ATT&CK
// T1098.007), an identifier of one in somebody's history (T1134.005), the right to copy all
// passwords (T1003.006), the right to act as others (T1558), a policy that all machines obey
// (T1484.001), a certificate in somebody else's name (T1649), and another directory that is
// believed (T1484.002). To look at these, to give a person a seat in an ordinary group, a new
// password or a new desk, and to take rights away is an administrator's day.

// rulers are the groups and accounts that rule a directory or its machines, by their names in
// some languages and by their numbers.
const rulers = `(?:(?:domain|enterprise|schema|organi[sz]ation|exchange|(?:enterprise )?key|dom(?:ä|ae)nen|organisations|schema|dns)[ -]?-?admin(?:s|istrator(?:s|en)?)?\b|administrat(?:ors|oren|eurs|ores)\b|admins du domaine|(?:account|backup|server|print) operators|(?:konten|sicherungs|server)-?operatoren|group policy creator owners|exchange (?:trusted subsystem|windows permissions)|organization management|s-1-5-32-(?:544|548|549|550|551)\b|s-1-5-21-[\d-]+-(?:512|516|518|519|520|526|527)\b)`

// mighty are the accounts whose password is the directory's.
const mighty = `(?:krbtgt|administrator|msol_\w+|\w+-500)\b`

var directoryRights = byCommand(
	`add-adgroupmember add-adprincipalgroupmembership add-localgroupmember add-qadgroupmember add-domaingroupmember add-netgroupuser: .*`+rulers,
	`add-localgroupmember add-adgroupmember: .*(?:remote desktop users|remote management users|administrators).*\b(?:everyone|authenticated users|domain users|jeder)\b`,
	`set-adgroup set-adobject: .*`+rulers+`.*-(?:add|replace)\b.*\bmember\b`,
	`net net1: (?:group|localgroup) .*`+rulers+`.* /add`,
	`net: (?:rpc|ads) group addmem .*`+rulers,
	`samba-tool: group addmembers .*`+rulers,
	`samba-tool: (?:dsacl set|user setpassword `+mighty+`|domain passwordsettings set .*(?:complexity[= ]off|min-pwd-length[= ]0))`,
	`dsmod: group .*`+rulers+`.* -addmbr\b`,
	`ldapmodify ldapadd ldapmod: .*cn=`+rulers+`.*\badd: ?member`,

	// Attributes by which an account becomes another.
	`set-aduser set-adobject set-adcomputer set-adserviceaccount set-domainobject: .*-(?:add|replace|set)\b.*(?:sidhistory|msds-allowedtodelegateto|msds-allowedtoactonbehalfofotheridentity|msds-keycredentiallink|ntsecuritydescriptor) ?[=;]`,
	`set-aduser set-adobject set-adcomputer: .*-(?:add|replace)\b.*primarygroupid ?[=;] ?(?:512|516|518|519|544)\b`,
	`set-adcomputer set-aduser set-adserviceaccount: .*-principalsallowedtodelegatetoaccount [^$-][^n]`,
	`set-adaccountcontrol set-aduser set-adcomputer set-adserviceaccount: .*-(?:trustedfordelegation|trustedtoauthfordelegation|doesnotrequirepreauth|allowreversiblepasswordencryption|passwordnotrequired|usedeskeyonly)[ :]+\$?(?:true|1)\b`,
	`add-addbsidhistory set-addbprimarygroup set-addbaccountpassword: `,

	// Rights on the root of a directory, and on what its rights are copied from.
	`add-domainobjectacl add-objectacl add-adpermission set-domainobjectowner: .*(?:dcsync|all\b|genericall|writedacl|writeowner|replicat)`,
	`dsacls: (?:dc=|/\S+ dc=|.*cn=adminsdholder|\\\\[\w.]+\\dc=).* /g `,
	`dsacls: .*/g .*(?:replicating directory changes|:ga\b|:wdwo|:wd\b)`,
	`set-acl: .*(?:ad:\\?dc=|cn=adminsdholder|cn=policies,cn=system)`,
	`set-adobject: .*cn=adminsdholder.*-replace`,

	// The rules for passwords, and whom a directory believes.
	`set-addefaultdomainpasswordpolicy set-adfinegrainedpasswordpolicy: .*(?:-complexityenabled[ :]+\$?(?:false|0)|-minpasswordlength[ :]+[0-4]\b|-reversibleencryptionenabled[ :]+\$?(?:true|1))`,
	`net net1: accounts .*/minpwlen:[0-4]\b`,
	`netdom: trust .*/add\b|trust .*/(?:enablesidhistory|quarantine):?(?:yes|no)`,
	`new-adtrust: `,
	`set-adaccountpassword: .*-?(?:identity )?`+mighty,
	`net net1: user `+mighty+` [^/\s]`,
	`enable-localuser enable-adaccount: .*(?:administrator|guest|gast)\b`,

	// Policies that all machines obey.
	`set-gppermission set-gppermissions: .*-permissionlevel gpoedit`,
	`sharpgpoabuse pygpoabuse pygpoabuse.py: .*`,
	`secedit: .*/configure\b`,

	// Certificates in the name of others, and services of the directory that load a file.
	`certipy certipy-ad: .*\b(?:req|shadow|forge|auth|account|relay)\b|template .*-(?:write|configuration|save)|ca .*-(?:add|enable|issue)`,
	`certify: .*(?:/altname|/sidextension|/ca:.*/template)`,
	`certutil: .*-setreg .*(?:editf_attributesubjectaltname2|interfaceflags)|.*-dspublish .*(?:ntauthca|rootca)`,
	`certreq: .*san:(?:upn|dns|email)=`,
	`dnscmd: .*/serverlevelplugindll`,
	`set-caauditfilter: .*0`,

	// Tools that exist to take a directory over.
	`bloodyad bloodyad.py: .*\b(?:add|set)\b`,
	`dacledit dacledit.py impacket-dacledit owneredit.py: .*-action (?:write|restore)`,
	`rbcd.py impacket-rbcd: .*-action write`,
	`pywhisker pywhisker.py whisker: .*\badd\b`,
	`ticketer.py impacket-ticketer getst.py impacket-getst ntlmrelayx.py impacket-ntlmrelayx krbrelayx.py responder mitm6 petitpotam.py coercer printerbug.py addcomputer.py impacket-addcomputer: .*\w`,
	`psexec.py wmiexec.py smbexec.py atexec.py dcomexec.py impacket-psexec impacket-wmiexec impacket-smbexec impacket-atexec impacket-dcomexec evil-winrm: .*\w`,
	`rubeus: .*\b(?:golden|silver|diamond|s4u|asktgt|asktgs|ptt|createnetonly|renew|tgtdeleg)\b`,
	`nxc netexec crackmapexec cme: .*(?: -x | -x'| --exec-method|-m (?:\S*(?:rdp|uac|wdigest|add-computer|change-password)))`,
	`invoke-psexec invoke-wmiexec invoke-smbexec invoke-tokenmanipulation invoke-powerup invoke-allchecks invoke-bypassuac invoke-eventvwrbypass invoke-aadintuserphish: `,
)

// directoryLosses take away what the people of an organisation sign in with, or are ruled by.
var directoryLosses = byCommand(
	`remove-gpo: .*`,
	`remove-adobject: .*-recursive\b`,
	`remove-adorganizationalunit: .*-recursive\b`,
	`dsrm: .*-subtree\b`,
	`uninstall-addsdomaincontroller: .*(?:-force|-lastdomaincontroller|-removeapplicationpartitions|-confirm:)`,
	`dcpromo: .*/forceremoval`,
	`remove-addomaincontrollerpasswordreplicationpolicy remove-adtrust: .*-confirm:`,
	`remove-catemplate: .*-(?:alltemplates|force)`,
	`remove-cluster: .*-(?:force|cleanupad)`,
	`remove-dnsserverzone: .*-force`,
	`import-gpo restore-gpo: .*default domain.*(?:\\\\\d|\\temp\\|\\public\\|\\downloads\\)`,
	`netdom: remove .*/force`,
	`get-aduser get-adcomputer get-adgroup get-adobject: .*-filter \*.*\| ?(?:remove-ad|disable-ad|set-adaccountpassword)`,
)

// replicationRight is one of the rights by which a domain controller copies all passwords, as the
// schema of Active Directory numbers them.
var replicationRight = regex.ScreenOf(`1131f6a[acd]-9c07-11d1-f79f-00c04fc2dcd2`, `89e95b76-444d-4c62-991a-0facbeda640c`, `replicating directory changes|ds-replication-get-changes`)

// changesACL is what gives somebody a right on an object of a directory.
var changesACL = regex.ScreenOf(`\.addaccessrule\(`, `\bset-acl\b`, `\bcommitchanges\(`, `\badd-(?:domainobjectacl|objectacl|adpermission)\b`, `\bdsacls\b.*/g\b`)
