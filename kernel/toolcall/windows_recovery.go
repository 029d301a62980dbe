package toolcall

// shrinksShadows is how the room of shadow copies is made so small that none is left.
const shrinksShadows = `resize shadow(?:storage)?(?:[^%]*$|.*maxsize=[0-4]%)`

// Backups, snapshots and the recovery of Windows bring back what is lost, so whoever wants to
// lose something for good begins with them (ATT&CK T1490). Machines of a hypervisor and the
// volumes below them are lost as folders are. One snapshot that is old, a backup whose time has
// come, and all that lists, tests or makes one pass.
var lostRecovery = byCommand(
	`reagentc: .*/disable`,
	`disable-computerrestore: .*`,
	`wbadmin: (?:delete|disable)\b`,
	`remove-wbbackupset: .*(?:-machinename|-keepversions[ :]+0|-force)|[^-].*\| ?`,
	`remove-wbpolicy remove-wbcatalog: .*`,
	`diskshadow: .*delete shadows`,
	`vssadmin: (?:delete shadow|`+shrinksShadows+`)`,
	`get-wmiobject get-ciminstance gwmi gcim: .*win32_shadowcopy.*(?:\.delete|remove-)`,
	`schtasks: /delete .*backup|/change .*(?:backup.*/disable|/disable.*backup)`,
	`vmkfstools: (?:\S+ )*(?:-u|--deletevirtualdisk|-w|--writezeros)\b`,
	`vim-cmd: vmsvc/(?:destroy|unregister|snapshot\.removeall) .*(?:`+unknownText+`|\$\w|\{\})`,
	`esxcli: (?:\S+ )*(?:vm process kill .*(?:`+unknownText+`|\$\w|-w$|--world-id$|\{\})|storage (?:filesystem|vmfs) (?:remove|unmount .*-a)|software vib remove .*(?:--force|-f))`,
	`xargs: .*\besxcli vm process kill\b`,
	`proxmox-backup-client: (?:snapshot|group) forget\b|prune .*--keep-last[= ]0`,
	`pbsctl pvesm: (?:free|remove)\b`,
	`remove-vm: .*-(?:deletepermanently|deletefromdisk)`,
	`remove-datastore remove-storagepool remove-virtualdisk remove-iscsivirtualdisk remove-volume clear-storagediagnosticinfo: .*(?:-confirm:|-force|-friendlyname|-unique|-path|\*|-diskpath)`,
	`get-storagepool get-virtualdisk get-volume get-datastore: .*\| ?remove-`,
	`get-childitem gci dir ls: .*cert:[^|]*\| ?(?:remove-item|ri|del)\b`,
	`get-item: cert:.*\| ?remove-item`,

	// Backups of several makers.
	`remove-vbrbackup remove-vbrrestorepoint remove-vbrbackuprepository remove-vbrjob remove-vbrtaperepository remove-vbrscaleoutbackuprepository remove-veeambackup: .*`,
	`get-vbrjob: [^|]*\| ?(?:disable|remove)-vbrjob`,
	`remove-dpmrecoverypoint remove-dpmprotectiongroup remove-dpmdatasourcereplica stop-dpmprotecteddatasource: .*`,
	`remove-bebackupset remove-bejob remove-bestorage: .*`,
	`qoperation qdelete: .*\b(?:agedata|deletebackup|subclient)\b`,
	`bpexpdate: .*-d 0`,
	`dsmc dsmadmc: .*\b(?:delete (?:backup|archive|filespace)|expire inventory.*skipdirs)`,
	`remove-rubriksnapshot remove-cohesityprotectionjob remove-nbbackup: .*`,
	`disable-azrecoveryservicesbackupprotection: .*-removerecoverypoints`,
	`set-azrecoveryservicesvaultproperty set-azrecoveryservicesvault: .*(?:-softdeletefeaturestate|-disablehybridbackupsecurityfeature)[ :]+\$?(?:disable|true)`,
	`remove-azrecoveryservicesvault remove-azrecoveryservicesbackupprotectionpolicy remove-azrestorepointcollection remove-azdataprotectionbackupvault: .*`,
	`az: (?:\S+ )*backup (?:protection disable .*--delete-backup-data(?:[= ]true)?|vault delete|container unregister|policy delete|vault backup-properties set .*--soft-delete-feature-state[= ]disable)`,
	`az: (?:\S+ )*(?:dataprotection backup-(?:vault|instance) delete|dataprotection backup-vault update .*soft-delete-state[= ]off)`,
	`rman: .*\b(?:delete (?:force )?noprompt (?:backup(?:set)?(?:;|$| of)|copy|archivelog all ?(?:;|$)|force)|delete (?:backup|backupset) ?;|drop database|configure retention policy to none)`,
)
