package toolcall

// What an organisation rents of Microsoft is governed by commands of PowerShell and by az: who
// has a grave role (ATT&CK T1098.003), what programs may do for everybody, which secrets let a
// program sign in (T1098.001), whether a second factor is asked for (T1556.006), where mail goes
// (T1114.003), who may see files, and what is recorded (T1562.008). To ask for any of these, to
// give a person a licence or a place in a team, and to share with a colleague are ordinary.

// grandRoles are the roles that rule a tenant or a subscription.
const grandRoles = `(?:global administrator|company administrator|privileged (?:role|authentication) administrator|(?:security|exchange|sharepoint|user|application|cloud application|hybrid identity|intune|authentication|conditional access) administrator|user access administrator|\bowner\b|62e90394-69f5-4237-9190-012177145e10|e8611ab8-c189-46e8-94e1-60213ab1f814|7be44c8a-adaf-4e2a-84d6-ab2649e08a13|9b895d92-2cd3-44c7-9d02-a6ac2d5ea5c3|158c047a-c907-4556-b7ef-446551a6b5f7|194ae4cb-b126-40b2-bd5b-6091b380977d|29232cdf-9323-42fd-ade2-1d097af3e4de|8ac3fc64-6eca-42ea-9e69-59f4c7b60eb2|organization management|discovery management|ediscovery ?manager|8e3af657-a8ff-443c-a75c-2fe8c4bcb635|18d7d88d-d35e-4fb5-a5c3-7773c20a72d9)`

// wideGrants let a program work on all mail, all files, or the directory itself.
const wideGrants = `(?:mail\.(?:readwrite|send|read)|files\.(?:readwrite|read)\.all|sites\.(?:fullcontrol|readwrite)\.all|directory\.readwrite\.all|rolemanagement\.readwrite\.directory|approleassignment\.readwrite\.all|application\.readwrite\.all|full_access_as_app|user\.readwrite\.all|group\.readwrite\.all|1bfefb4e-e0b5-418b-a88f-73c46d2cc8e9|9e3f62cf-ca93-4989-b6ce-bf83c28f9fe8|06b708a9-e830-4db3-a914-8e69da51d44f|19dbc75e-c2e2-444c-a770-ec69d8559fc7|dc890d15-9560-4a4c-9b7f-a736ec74ec40|75359482-378d-4052-8f01-80520e7db3cd|e2a3a72e-5f79-4c64-b1b1-878b674786c9)`

var tenantRights = byCommand(
	`new-mgrolemanagementdirectoryroleassignment new-mgdirectoryrolememberbyref new-mgdirectoryrolemember add-azureaddirectoryrolemember add-msolrolemember new-azureadmsroleassignment new-mgrolemanagementdirectoryroleassignmentschedulerequest new-mgrolemanagementdirectoryroleeligibilityschedulerequest add-rolegroupmember update-rolegroupmember add-entradirectoryrolemember: .*`+grandRoles,
	`new-azroleassignment new-azroledefinition: .*(?:owner|user access administrator|contributor|-scope /(?: |$)|role based access control administrator)`,
	`new-mgserviceprincipalapproleassignment new-mgserviceprincipalapproleassignedto new-azureadserviceapproleassignment new-entraserviceprincipalapproleassignment: .*`,
	`new-mgoauth2permissiongrant update-mgoauth2permissiongrant: .*(?:allprincipals|`+wideGrants+`)`,
	`az: (?:\S+ )*(?:ad app permission (?:admin-consent|grant)\b|rest .*(?:elevateaccess|rolemanagement/directory/roleassignments|approleassignments|approleassignedto))`,
	`invoke-azrestmethod invoke-mggraphrequest invoke-restmethod: .*(?:elevateaccess|approleassignments|approleassignedto).*post|.*post.*(?:elevateaccess|approleassignedto|rolemanagement/directory/roleassignments)`,
	`new-managementroleassignment: .*(?:applicationimpersonation|mailbox import export|`+grandRoles+`)`,
	`set-msoldomainauthentication convert-msoldomaintofederated new-mgdomainfederationconfiguration update-mgdomainfederationconfiguration set-msoldomainfederationsettings convertto-aadintbackdoor: .*(?:federated|issueruri|signingcertificate|passivelogonuri|-domainname).*`,
	`remove-mguserauthenticationmicrosoftauthenticatormethod remove-mguserauthenticationphonemethod remove-mguserauthenticationfido2method remove-mguserauthenticationsoftwareoathmethod reset-msolstrongauthenticationmethodbyupn: .*`,
	`set-msoluser: .*-strongauthentication(?:requirements|methods)[ :]+@`,
	`update-mguser set-msoluser update-mgbetauser: .*-passwordpolicies .*disablestrongpassword`,
	`update-mgpolicyauthenticationmethodpolicy update-mgpolicyauthorizationpolicy update-mgbetapolicyauthorizationpolicy: .*(?:allowinvitesfrom.*everyone|allowedtocreateapps.*true.*permissiongrant|guestuserroleid.*a0b1b346|microsoft-user-default-legacy)`,
	`set-spouser: .*-issitecollectionadmin[ :]+\$?true`,
	`add-mailboxpermission: .*\| ?.*fullaccess|.*-identity \*`,
	`get-mailbox get-exomailbox: [^|]*\| ?(?:%|foreach\S*)?.*add-(?:mailboxpermission|recipientpermission)`,
	`add-recipientpermission: .*(?:-identity )?(?:ceo|cfo|cto|board|vorstand|gf)\b.*sendas`,
)

// unheardTenants silence what records and warns, and turn off what an organisation has agreed to
// be guarded by.
var unheardTenants = byCommand(
	`set-adminauditlogconfig: .*(?:-unifiedauditlogingestionenabled|-adminauditlogenabled)[ :]+\$?(?:false|0)`,
	`set-mailboxauditbypassassociation: .*-auditbypassenabled[ :]+\$?(?:true|1)`,
	`set-organizationconfig: .*(?:-auditdisabled[ :]+\$?(?:true|1)|-oauth2clientprofileenabled[ :]+\$?false|-rejectdirectsend[ :]+\$?false)`,
	`set-mailbox: .*(?:-auditenabled[ :]+\$?(?:false|0)|-litigationholdenabled[ :]+\$?(?:false|0)|-singleitemrecoveryenabled[ :]+\$?(?:false|0)|-retaindeleteditemsfor[ :]+0)`,
	`remove-unifiedauditlogretentionpolicy remove-retentioncompliancepolicy remove-retentioncompliancerule remove-dlpcompliancepolicy remove-dlpcompliancerule remove-caseholdpolicy remove-protectionalert disable-protectionalert remove-activityalert disable-activityalert remove-compliancetag remove-labelpolicy: .*`,
	`set-retentioncompliancepolicy set-dlpcompliancepolicy set-dlpcompliancerule set-protectionalert set-caseholdpolicy: .*(?:-mode[ :]+(?:disable|test)\w*|-enabled[ :]+\$?false|-disabled[ :]+\$?true|-disable[d]?\b)`,
	`update-mgpolicyidentitysecuritydefaultenforcementpolicy: .*-isenabled[ :]+\$?(?:false|0)|.*isenabled ?[=:] ?\$?false`,
	`update-mgidentityconditionalaccesspolicy set-azureadmsconditionalaccesspolicy: .*-?state ?[=: ]+ ?(?:disabled|enabledforreportingbutnotenforced)`,
	`remove-mgidentityconditionalaccesspolicy remove-azureadmsconditionalaccesspolicy remove-mgidentityconditionalaccessnamedlocation: .*`,
	`disable-safelinksrule disable-safeattachmentrule disable-antiphishrule disable-malwarefilterrule disable-hostedcontentfilterrule remove-safelinkspolicy remove-safeattachmentpolicy remove-antiphishpolicy remove-malwarefilterpolicy: .*`,
	`new-transportrule set-transportrule: .*-setscl[ :]+-1`,
	`set-hostedcontentfilterpolicy set-hostedconnectionfilterpolicy: .*(?:-allowedsenderdomains|-ipallowlist|-enablesafelist[ :]+\$?true|-allowedsenders)`,
	`set-authenticationpolicy set-casmailboxplan: .*-allowbasicauth\w+[ :]+\$?true`,
	`remove-azdiagnosticsetting remove-azactivitylogalert disable-azactivitylogalert remove-azsentinelalertrule remove-azsentinelalertruleaction remove-azsentineldataconnector remove-azpolicyassignment remove-azpolicydefinition remove-azresourcelock disable-azdefender remove-azmetricalertrulev2 remove-azscheduledqueryrule remove-azlogprofile remove-azoperationalinsightsworkspace remove-aznetworkwatcherflowlog: .*`,
	`set-azsecuritypricing: .*free`,
	`set-azsqlserveraudit set-azsqldatabaseaudit update-azsqlserveradvancedthreatprotectionsetting: .*(?:disabled|-enable[ :]+\$?false)`,
	`az: (?:\S+ )*(?:monitor (?:diagnostic-settings(?: subscription)?|log-profiles|activity-log alert|metrics alert|scheduled-query|log-analytics workspace) delete|security pricing create .*--tier[= ]free|sentinel (?:alert-rule|data-connector) delete|policy (?:assignment|definition|exemption) (?:delete|create .*exemption)|lock delete|(?:resource|group|account) lock delete|network watcher flow-log delete|sql (?:server|db) audit-policy update .*--state[= ]disabled|sql (?:server|db) threat-policy update .*disabled|keyvault update .*--enable-(?:soft-delete|purge-protection)[= ]false|monitor activity-log alert update .*--enabled[= ]false)`,
	`az: (?:\S+ )*(?:network nsg rule (?:create|update) .*--source-address-prefix(?:es)?[= ](?:\*|internet|any|0\.0\.0\.0/0|`+unknownText+`).*--destination-port-ranges?[= ](?:\*|0-65535|22|3389|1433|445|5985|5986|3306|5432)|network nsg delete|network firewall (?:delete|policy delete)|network ddos-protection delete|storage account update .*--default-action[= ]allow|keyvault update .*--default-action[= ]allow|(?:sql|postgres|mysql)\b.*update .*--(?:enable-)?public-network-access[= ](?:enabled|true|all)|vm extension delete .*(?:defender|mde|monitor|antimalware))`,
	`az: (?:\S+ )*network nsg rule (?:create|update) .*--destination-port-ranges?[= ](?:\*|0-65535|22|3389|1433|445|5985|5986|3306|5432).*--source-address-prefix(?:es)?[= ](?:\*|internet|any|0\.0\.0\.0/0)`,
	`add-aznetworksecurityruleconfig set-aznetworksecurityruleconfig: .*inbound.*-sourceaddressprefix[ :]+(?:\*|internet|any|0\.0\.0\.0/0).*-destinationportrange[ :]+(?:\*|0-65535|22|3389|1433|445|5985)`,
	`new-azsqlserverfirewallrule set-azsqlserverfirewallrule: .*0\.0\.0\.0.*255\.255\.255\.255`,
)

// lostTenants take away what an organisation works with.
var lostTenants = byCommand(
	`new-compliancesearchaction: .*-purge\b.*harddelete|.*-purgetype[ :]+harddelete`,
	`search-mailbox: .*-deletecontent`,
	`remove-mailboxdatabase remove-mailbox: .*(?:-permanent[ :]+\$?true|-permanentlydelete)`,
	`remove-spodeletedsite remove-pnptenantdeletedsite clear-pnptenantrecyclebinitem clear-pnprecyclebinitem remove-mgdirectorydeleteditem remove-azureadmsdeleteddirectoryobject remove-msoldeleteduser remove-mgdomain remove-msoldomain: .*`,
	`remove-msoluser: .*-removefromrecyclebin`,
	`remove-sposite remove-pnptenantsite: .*(?:-force|-skiprecyclebin|-confirm:)`,
	`remove-azresourcegroup remove-azsubscription remove-azmanagementgroup remove-azkeyvault remove-azsqlserver remove-azsqldatabase remove-azstorageaccount remove-azakscluster remove-azcosmosdbaccount remove-azvm: .*(?:-force|-confirm:|-asjob|-inremovedstate)`,
	`get-mguser get-msoluser get-azureaduser get-entrauser: .*-all\b[^|]*\| ?(?:%|foreach\S*)? ?.*(?:remove-|accountenabled[: =]+\$?false|blockcredential[: =]+\$?true|revoke-)`,
	`clear-mobiledevice remove-mobiledevice: .*-identity \*`,
	`get-mobiledevice get-mgdevicemanagementmanageddevice get-intunemanageddevice get-mobiledevicestatistics: .*\| ?.*(?:clear-mobiledevice|wipe|remove-|invoke-\w*(?:wipe|retire|cleanwindows)\w*)`,
	`invoke-mgcleanmanageddevicewindowdevice clear-mgdevicemanagementmanageddevice invoke-intunemanageddevicewipedevice: .*(?:\$_|\$\w+\.)`,
	`az: (?:\S+ )*(?:ad user delete .*(?:`+unknownText+`|\$\w)|keyvault purge|keyvault (?:secret|key) purge|deployment \S+ (?:create|delete) .*--mode[= ]complete)`,
	`new-azresourcegroupdeployment: .*-mode[ :]+complete.*-force`,
)

// openedTenants send mail and files elsewhere, or show them to anybody.
var openedTenants = byCommand(
	`set-mailbox: .*-forwarding(?:smtp)?address[ :]+(?:smtp:)?[^\s$]+@`,
	`new-inboxrule set-inboxrule: .*-(?:forwardto|redirectto|forwardasattachmentto)[ :]+\S*@`,
	`new-transportrule set-transportrule: .*-(?:blindcopyto|redirectmessageto|copyto|addtorecipients)[ :]+\S*@`,
	`new-journalrule set-journalrule: .*-journalemailaddress[ :]+\S*@`,
	`set-remotedomain new-remotedomain: .*-autoforwardenabled[ :]+\$?true`,
	`set-hostedoutboundspamfilterpolicy new-hostedoutboundspamfilterpolicy: .*-autoforwardingmode[ :]+on\b`,
	`new-outboundconnector new-inboundconnector set-outboundconnector: .*-(?:smarthosts|senderipaddresses|senderdomains)[ :]+\S`,
	`new-mailboxexportrequest: .*-filepath[ :]+(?:\\\\|https?:)`,
	`get-mailbox get-exomailbox: .*\| ?.*new-mailboxexportrequest`,
	`new-compliancesearchaction: .*-export\b`,
	`set-spotenant set-pnptenant: .*(?:-sharingcapability[ :]+externaluserandguestsharing|-defaultsharinglinktype[ :]+anonymousaccess|-preventexternalusersfromresharing[ :]+\$?false|-conditionalaccesspolicy[ :]+allowfullaccess)`,
	`set-sposite set-pnptenantsite set-pnpsite: .*-sharing(?:capability)?[ :]+externaluserandguestsharing`,
	`get-sposite get-pnptenantsite: .*\| ?.*sharing(?:capability)?[ :]+externaluser`,
	`grant-smbshareaccess new-smbshare: .*(?:-accountname|-fullaccess|-changeaccess)[ :]+(?:everyone|jeder|authenticated users|anonymous logon)`,
	`set-azstorageaccount set-azstoragecontaineracl new-azstoragecontainer: .*(?:-allowblobpublicaccess[ :]+\$?true|-(?:permission|publicaccess)[ :]+(?:container|blob)\b)`,
	`grant-azsnapshotaccess grant-azdiskaccess: .*-durationinsecond[ :]+\d{6,}`,
	`az: (?:\S+ )*(?:storage (?:container|blob|account) generate-sas .*--expiry[= ]20(?:2[89]|[3-9]\d)|snapshot grant-access .*--duration-in-seconds[= ]\d{6,}|disk grant-access .*--duration-in-seconds[= ]\d{6,})`,
	`set-csexternalaccesspolicy set-cstenantfederationconfiguration: .*-(?:enableteamsconsumerinbound|allowteamsconsumerinbound)[ :]+\$?true`,
)

// plantedCmdlets leave a way back in, or something that starts by itself (ATT&CK T1546, T1547,
// T1543, T1053, T1098.001).
var plantedCmdlets = byCommand(
	`add-mgapplicationpassword add-mgapplicationkey add-mgserviceprincipalpassword add-mgserviceprincipalkey new-azureadapplicationpasswordcredential new-azureadapplicationkeycredential new-azadappcredential new-azadspcredential new-azadserviceprincipalcredential new-msolserviceprincipalcredential new-mgapplicationfederatedidentitycredential new-azureadserviceprincipalkeycredential new-entraapplicationpassword: .*`,
	`az: (?:\S+ )*(?:ad (?:app|sp) credential reset\b|ad app federated-credential create\b|functionapp keys set|vm (?:run-command|extension set .*customscript).*https?://\d)`,
	`mofcomp: .*\.mof\b`,
	`set-wmiinstance new-ciminstance set-ciminstance register-wmievent: .*(?:root[/\\]subscription|__eventfilter|eventconsumer|__filtertoconsumerbinding)`,
	`register-scheduledjob: .*`,
	`set-scheduledtask: .*-action\b`,
	`schtasks: .*/change .*/tr\b`,
	`sc: (?:\\\\\S+ )?(?:config \S+ .*binpath|failure \S+ .*command)`,
	`set-service: .*-binarypathname`,
	`bitsadmin: .*/setnotifycmdline`,
	`netsh: add helper\b`,
	`sdbinst: .*\.sdb`,
	`odbcconf regsvcs regasm: .*(?:\\temp\\|\\public\\|\\downloads\\|%temp%|/a .*regsvr)`,
	`copy copy-item cp xcopy move-item move ren rename-item: .*\b(?:sethc|utilman|osk|magnify|narrator|displayswitch|atbroker)\.exe`,
	`copy copy-item cp xcopy robocopy move move-item set-content sc add-content ac out-file new-item: .*(?:\\sysvol\\|\\netlogon\\|cn=policies).*\.(?:exe|dll|ps1|bat|cmd|vbs|js|msi|xml|ini|inf|pol)\b`,
	`certutil: .*-addstore .*\broot\b.*(?:\\temp\\|%temp%|\\public\\|\\downloads\\|\\\\\d)`,
	`import-certificate: .*(?:\\temp\\|\$env:temp|\\public\\|\\downloads\\|\\\\\d).*localmachine\\(?:auth)?root`,
	`enable-wsmancredssp: .*-role server`,
	`winrm: .*(?:allowunencrypted ?= ?"?true|trustedhosts ?= ?"?\*|basic ?= ?"?true)`,
	`set-item: wsman:.*(?:allowunencrypted|auth\\basic|certificatebindings).*\$?true|wsman:.*trustedhosts.*\*`,
	`new-gplink set-gplink: .*-target[ :]+dc=.*-enforced[ :]+yes|.*-enforced[ :]+yes.*-target[ :]+dc=`,
)

// fetchedCmdlets run on many machines what lies on none of them, or load what nobody has read.
var fetchedCmdlets = byCommand(
	`add-type: .*-path .*(?:\\\\\d|https?:)`,
	`import-module: .*(?:\\\\\d+\.\d+|https?:)`,
	`install-module install-script install-package: .*-(?:source|repository|location)[ :]+https?://\d`,
	`register-psrepository register-packagesource: .*-(?:sourcelocation|location)[ :]+(?:http:|\\\\\d|https?://\d)`,
	`msiexec: .*\\\\\d+\.\d+\.\d+\.\d+\\`,
	`rundll32 regsvr32 mshta cscript wscript installutil cmstp: .*\\\\\d+\.\d+\.\d+\.\d+\\`,
	`install-addinpackage add-appxpackage: .*https?://\d`,
)
