package toolcall

// What guards a machine of Windows, and what records what happens on it, is turned off by its own
// commands, by its service, by its settings in the registry or in a policy, and by taking it off
// the machine (ATT&CK T1562 and T1070). To ask for its state, to turn it on, to scan and to update
// are ordinary, and so are rules for one program or port.

// guardians are the services that guard and record; guardianMakers who makes such programs.
const (
	guardians      = `\b(?:windefend|sense|mssense|mdcoresvc|wdnissvc|wdboot|wdfilter|wscsvc|securityhealthservice|eventlog|wecsvc|sysmon\w*|mpssvc|bfe|sgrmbroker|csfalcon\w*|csagent|falcon\w*|sentinel(?:agent|one|helper\w*|monitor\w*)?|crowdstrike\w*|carbonblack\w*|cbdefense|sophos\w*|savservice|mcshield|masvc|mfe\w+|ekrn|avp\w*|cylance\w*|taniumclient|elastic[- ]?(?:agent|endpoint)|wazuh\w*|ossec\w*|splunkforwarder|nxlog|winlogbeat|qualysagent|ir_agent|mbamservice|healthservice|azuremonitoragent|caddy|lex)\b`
	guardianMakers = `(?:defender|crowdstrike|falcon|sentinel ?one|sentinel|carbon ?black|sophos|symantec|mcafee|trellix|trend micro|eset|kaspersky|cylance|cortex|bitdefender|malwarebytes|tanium|wazuh|elastic agent|sysmon|splunk|qualys|rapid7|sechealthui|endpoint (?:protection|security))`
)

var loweredDefences = byCommand(
	`set-mppreference add-mppreference: .*-(?:exclusion\w+|disable\w+(?:[ :]+\$?(?:true|1)\b|$| -| \|)|(?:mapsreporting|puaprotection|enablenetworkprotection|enablecontrolledfolderaccess|attacksurfacereductionrules_actions|cloudblocklevel|cloudextendedtimeout|signatureupdateinterval)[ :]+(?:0|disabled|auditmode)\b|submitsamplesconsent[ :]+(?:2|neversend)\b|(?:unknown|low|moderate|high|severe)threatdefaultaction[ :]+(?:6|9|allow|noaction)\b|controlledfolderaccessallowedapplications)`,
	`remove-mppreference: .*-attacksurfacereductionrules`,
	`mpcmdrun: .*-removedefinitions`,
	`sc: (?:\\\\\S+ )?(?:(?:stop|pause|delete|sdset) `+guardians+`|config `+guardians+`.*(?:disabled|demand)|failure `+guardians+`)`,
	`sc: (?:\\\\\S+ )?config wuauserv .*disabled`,
	`net net1: stop `+guardians+`|stop (?:security center|windows event log|windows defender|microsoft defender|windows firewall|windows defender firewall)`,
	`stop-service suspend-service remove-service spsv: .*`+guardians,
	`set-service: .*`+guardians+`.*\b(?:disabled|manual|stopped|paused)\b`,
	`set-service: .*wuauserv.*disabled`,
	`get-service gsv get-process gps ps get-ciminstance get-wmiobject: .*`+guardians+`.*\| ?(?:%|foreach\S*)? ?(?:stop|suspend|remove|set|kill|spps|spsv)-?\w*`,
	`get-service gsv get-process gps: .*(?:msmpeng|nissrv).*\| ?(?:stop|suspend|kill|spps)`,
	`taskkill stop-process kill spps: .*(?:msmpeng|mssense|sensendr|senseir|nissrv|securityhealth\w*|sysmon\w*|csfalcon\w*|sentinel\w*|sophos\w*|mcshield|ekrn|avp\b|cylancesvc|repmgr|elastic-\w+|winlogbeat|splunkd|nxlog|\bcaddy\b|\blex\b)`,
	`wmic: product .*`+guardianMakers+`.*(?:uninstall|delete)`,
	`get-package get-appxpackage get-wmiobject get-ciminstance: .*`+guardianMakers+`.*(?:\| ?uninstall|\| ?remove-appx|uninstall\b)`,
	`uninstall-package remove-appxpackage remove-appxprovisionedpackage remove-windowscapability winget choco: .*(?:uninstall|remove|-name|-package|^)?.*`+guardianMakers,
	`sysmon sysmon64 sysmon64a: .*[-/]u\b`,
	`elastic-agent: uninstall|unenroll`,
	`csuninstalltool cswindiag sentineluninstaller: .*`,
	`fltmc: (?:unload|detach) .*`,
	`auditpol: /(?:clear|remove|restore)\b|/set .*(?:success|failure):disable`,
	`wevtutil: (?:cl|clear-log|im|um)\b|(?:sl|set-log) .*/(?:e|enabled):false`,
	`logman: (?:stop|delete) .*(?:eventlog|security|defender|sysmon|dns|autologger)|update .*-p .*(?:defender|threat)`,
	`clear-eventlog remove-eventlog: .*`,
	`set-logproperties disable-psetwtrace: .*`,
	`set-netfirewallprofile: .*(?:-enabled[ :]+\$?(?:false|0)|-defaultinboundaction[ :]+allow)`,
	`disable-netfirewallrule remove-netfirewallrule: (?:.*-all\b|-?(?:display)?(?:name|group)? ?\*$|.*-(?:direction|action|profile)\b)`,
	`get-netfirewallrule: (?:.*-(?:action|direction|enabled|all)\b[^|]*|[^|]*)\| ?(?:disable|remove)-netfirewallrule`,
	`netsh: advfirewall set .*(?:state off|firewallpolicy \S*allowinbound)|advfirewall firewall (?:add|set) rule .*dir=in .*(?:protocol=any|localport=any)|advfirewall firewall delete rule name=all|firewall set opmode (?:mode=)?disable`,
	`citool: .*--?(?:remove-policy|rp)\b`,
	`unregister-scheduledtask disable-scheduledtask: .*(?:defender|sysmon|exploitguard|bitlocker|windowsupdate|crowdstrike|sentinel|backup|wazuh)`,
	`schtasks: .*/(?:delete|change|end) .*(?:defender|sysmon|exploitguard|bitlocker|windowsupdate|crowdstrike|sentinel|wazuh).*`,
	`disable-tlsciphersuite disable-windowserrorreporting: .*`,
	`bcdedit: .*(?:testsigning|nointegritychecks|disableelamdrivers|safeboot) .*`,
	`appcmd: set config .*(?:dontlog:true|httplogging.*dontlog|httperrors.*existingresponse:passthrough)`,
	`set-processmitigation: .*-disable\b`,
	`set-smbserverconfiguration set-smbclientconfiguration: .*(?:-enablesmb1protocol[ :]+\$?true|-requiresecuritysignature[ :]+\$?false|-enableinsecureguestlogons[ :]+\$?true|-encryptdata[ :]+\$?false|-auditsmb1access[ :]+\$?false)`,
	`enable-windowsoptionalfeature: .*smb1protocol`,
)

// offValues are settings of the registry that guard as long as they are on, and unguarded those
// that guard as long as they are not.
const (
	offValues = `(?:enablefirewall|tamperprotection|lsacfgflags|enablevirtualizationbasedsecurity|hypervisorenforcedcodeintegrity|enablesmartscreen|smartscreenenabled|amsienable|puaprotection|submitsamplesconsent|spynetreporting|enablenetworkprotection|enablecontrolledfolderaccess|requiresecuritysignature|enablesecuritysignature|ldapserverintegrity|userauthentication|vulnerabledriverblocklistenable|processcreationincludecmdline_enabled|auditbaseobjects|enableeventlogging|scenoapplylegacyauditpolicy|restrictanonymous|restrictanonymoussam|nolmhash|certificaterevocation|strongcertificatebindingenforcement)`
	unguarded = `(?:disable(?:antispyware|antivirus|realtimemonitoring|behaviormonitoring|onaccessprotection|ioavprotection|scanonrealtimeenable|intrusionpreventionsystem|scriptscanning|blockatfirstseen|enhancednotifications|routinelytakingaction)|noautoupdate|disablewindowsupdateaccess|allowinsecureguestauth|disabletaskmgr|disableregistrytools|nosecuritytab|donotconnecttowindowsupdateinternetlocations)`
)

// loweredSettings judge one line that writes to the registry, whatever writes there.
var loweredSettings = []string{
	registryWrite + `.*\b` + offValues + `\b.*(?:\b0(?:x0+)?\b|\boff\b)`,
	registryWrite + `.*\b` + unguarded + `\b.*(?:\b1\b|0x0*1\b)`,
	registryWrite + `.*windows defender\\exclusions`,
	registryWrite + `.*\\services\\` + guardians + `.*\bstart\b.*\b4\b`,
	registryWrite + `.*\\services\\eventlog\\.*\b(?:maxsize|file|retention|autobackuplogfiles|restrictguestaccess|customsd)\b`,
	registryWrite + `.*\\winevt\\channels\\.*\benabled\b.*\b0\b`,
	registryWrite + `.*\\autologger\\.*\b(?:start|enabled?)\b.*\b0\b`,
	`(?:\breg\s+delete\b|\bremove-item(?:property)?\b).*(?:\\microsoft\\amsi|\\amsi\\providers|scriptblocklogging|powershell\\modulelogging|powershell\\transcription|\\control\\safeboot|\\microsoft\\windows defender\b)`,
}
