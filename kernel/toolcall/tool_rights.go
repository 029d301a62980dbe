package toolcall

import (
	"slices"
	"strings"

	"github.com/caddy-lex/lex/kernel/regex"
)

// Who may do what is changed by roles, by switches of a person, by consent that is given for
// all, by letting another directory say who somebody is, and by taking away what proves it. A
// member who may read or write, a role that the user asks for by its name, and a token with the
// scopes of its task are everyday.

var (
	peopleThings = words("user users member members membership memberships role roles directoryroles collaborator collaborators invite invitation invitations team teams principal principals permission permissions permissionset permissionsets acl realm delegate delegates profile profiles group groups directory identity staff employee employees ad entra benutzer nutzer mitglied mitglieder rolle rollen gruppe gruppen utilisateur utilisateurs membre membres groupe rôle usuario usuarios miembro grupo rol utente utenti gruppo ruolo gebruiker gebruikers")
	givingVerbs  = words("add set assign grant create update put patch invite promote make join attach enroll change modify edit provision upsert elevate")
	factorWords  = words("mfa 2fa totp otp twofactor authenticator")
	undoingWords = words("reset disable remove delete deactivate unenroll bypass off")
	tokenWords   = words("token tokens pat grant grants")
	roleMaps     = words("mappings rolebindings rolemappings")

	// rightKey is what a member is called that says what somebody may do, and setKey one that
	// names a set of people, or of rights, which somebody gets.
	rightKey = regex.New(`^(?:\w*(?:role|permission|privilege)(?:s|name|id|key|definitionid|template(?:id)?)?|access(?:level|rights?)?|level|rights?|capability|authorit(?:y|ies)|rolle|rol|ruolo)$`)
	setKey   = regex.New(`^(?:profile(?:id|name)?|permissionset\w*|(?:add\w*)?groups?(?:name|id|s|key)?|memberof|polic(?:y|ies)|policyarn|gruppen?|groupe|grupo|gruppo)$`)

	// grandRight is a right to everything, as directories, clouds, databases and offices call it.
	grandRight = regex.New(`(?i)^(?:(?:super|global|system|org(?:ani[sz]ation)?|tenant|site|domain|enterprise|schema|workspace|realm|cluster|security|privileged[-_ ]?(?:role|authentication)|user[-_ ]?access|exchange|sharepoint|hybrid[-_ ]?identity)[-_ ]?)*(?:admin(?:s|istrators?)?|owners?|root|superuser|sysadmin|sysdba)$|^(?:accountadmin|securityadmin|dba|db_owner|root)$|^dom(?:ä|ae)nen-?admins?$|^admins? du domaine$|^admins?\.? del? dominio$|^(?:administrat(?:oren|eurs?|ores|orzy)|amministrator[ei]|beheerders?)$|^(?:backup|account|server|print) operators$|^(?:dnsadmins|group policy creator owners|(?:enterprise )?key admins|organization management|discovery management|wheel|sudoers?)$|^roles/(?:owner|(?:iam|resourcemanager)\.\w*admin|iam\.serviceaccounttokencreator)$|^(?:arn:aws[\w-]*:iam::aws:policy/(?:\S*/)?)?(?:administratoraccess|iamfullaccess)$|^_seed_admin_role$`)

	// grandID is the number of such a role in a directory of Microsoft's, or of such a right of
	// an application.
	grandID = regex.New(`(?i)62e90394-69f5-4237-9190-012177145e10|e8611ab8-c189-46e8-94e1-60213ab1f814|7be44c8a-adaf-4e2a-84d6-ab2649e08a13|9b895d92-2cd3-44c7-9d02-a6ac2d5ea5c3|158c047a-c907-4556-b7ef-446551a6b5f7|194ae4cb-b126-40b2-bd5b-6091b380977d|29232cdf-9323-42fd-ade2-1d097af3e4de|8ac3fc64-6eca-42ea-9e69-59f4c7b60eb2|b1be1c3e-b65d-4f19-8427-f6fa0d97feb9|3a2c62db-5318-420d-8d74-23affee5d9d5|f28a1f50-f6e7-4571-818b-6a12f2af6b6c|8e3af657-a8ff-443c-a75c-2fe8c4bcb635|18d7d88d-d35e-4fb5-a5c3-7773c20a72d9|9e3f62cf-ca93-4989-b6ce-bf83c28f9fe8|06b708a9-e830-4db3-a914-8e69da51d44f|19dbc75e-c2e2-444c-a770-ec69d8559fc7|dc890d15-9560-4a4c-9b7f-a736ec74ec40|S-1-5-21-[\d-]+-(?:500|512|518|519)$`)

	makesAdmin   = regex.New(`\b(?:set|make|promote|grant|add|assign|become|elevate|upgrade)(?: (?:user|member|account|team|new|to|as))* (?:(?:super|global|org|site|workspace|tenant|system) )?(?:admins?|administrators?|superuser|root)(?: (?:role|rights|access|privileges?))?$|\b(?:set|make|promote|change|transfer)(?: to| as| new)* (?:org|organi[sz]ation|workspace|tenant|account|project|repo|repository|team|site)(?: to| as)* owner$|\badmin (?:set|make|assign) owner$`)
	adminSwitch  = regex.New(`^(?:is|make|grant)?(?:site|global|org|tenant|super)?(?:admin|administrator|superuser|superadmin|owner|staffadmin)$|^(?:modifyalldata|viewalldata|manageusers|managerolesandprofiles|assignpermissionsets|authorapex|manageguild|fullaccess|impersonat\w*)$`)
	factorSwitch = regex.New(`^(?:require|enforce)?(?:mfa|2fa|twofactor(?:auth(?:entication)?)?|totp)(?:enabled|required|enforced|enforcement)?$`)
	factorBypass = regex.New(`^(?:bypass|skip|disable|exempt)\w*(?:mfa|2fa|twofactor)\w*$`)
	everyScope   = regex.New(`^(?i:\*|all|sudo|admin(?::.*)?|full_?access|.*\bsudo\b.*)$`)

	// actsForAll lets a program act as everybody of an organisation, with a wideScope that is all
	// mail, all files or the directory.
	actsForAll = words("delegation domainwide delegations approleassignments approleassignedto impersonation oauth2permissiongrants")
	scopeKeys  = words("scope scopes approleid permission permissions role value")
	wideScope  = regex.New(`(?i)^https://mail\.google\.com/?$|/auth/(?:drive|gmail\.(?:modify|settings\.\w+)|admin\.directory\.(?:user|group|rolemanagement|domain)|cloud-platform)$|\b(?:mail|files|sites|directory|rolemanagement|approleassignment|application|user|group)\.(?:readwrite|fullcontrol|send)\.(?:all|directory)\b|^full_access_as_app$|^(?:mail|files)\.read(?:\.all)?$`)

	// trustedThing is a directory that says who somebody is; linkKey makes whoever it names one of
	// the own people, and a federation does so for a whole domain.
	trustedThing = regex.New(`\b(?:idps?|identity ?providers?)\b`)
	federations  = words("federation federationconfiguration federated")
	linkKey      = regex.New(`^(?:action|autolink\w*|linkaccounts?|accountlink\w*|trustemail|linkonly|jit\w*|provisioning|autoprovision\w*|autocreate\w*)$`)
)

// What a user says who asks for a right.
var (
	askedFactor = []string{"mfa", "2fa", "factor", "authenticator", "otp"}
	askedAdmin  = []string{"admin", "administrator", "owner", "superuser"}
	askedScope  = []string{"admin", "sudo", "full"}
)

// rights judges a call that changes who may do what.
func (d *dealing) rights() {
	if d.any(factorWords) && d.any(undoingWords) && !d.meant(askedFactor...) || slices.ContainsFunc(d.told, makesAdmin.MatchString) && !d.meant(askedAdmin...) && !d.switchesOff() || d.trustsStranger() {
		d.breaks(PrivilegeEscalation)
	}
	for _, l := range d.leaves {
		if asked := d.rightIn(l); asked != nil && !d.meant(asked...) {
			d.breaks(PrivilegeEscalation)
		}
	}
}

// rightIn returns what a user would say who asks for the grave right that a member gives, or nil
// if it gives none.
func (d *dealing) rightIn(l leaf) []string {
	people := d.any(peopleThings)
	named := rightKey.MatchString(l.key) || l.key == "type" && (d.has["role"] || d.has["roles"]) || setKey.MatchString(l.key) && d.any(givingVerbs)
	switch {
	case l.above.headers:
	case people && named && l.text && grandRight.MatchString(l.value), d.any(roleMaps) && l.key == "name" && grandRight.MatchString(l.value):
		return []string{l.value}
	case l.text && !d.any(undoingWords) && grandID.MatchString(l.value):
		return askedAdmin
	case people && adminSwitch.MatchString(l.key) && isYes(l.value):
		return askedAdmin
	case people && l.key == "accesslevel" && !l.text && amountOf(l) >= 40:
		return []string{"owner", "maintainer"}
	case factorSwitch.MatchString(l.key) && isNo(l.value), factorBypass.MatchString(l.key) && isYes(l.value):
		return askedFactor
	case l.key == "sidhistory" && !isNothing(l.value):
		return []string{"sidhistory"}
	case l.key == "consenttype" && fold(l.value) == "allprincipals":
		return []string{"consent"}
	case !scopeKeys[l.key] || !l.text:
	case d.any(tokenWords) && everyScope.MatchString(l.value):
		return askedScope
	case d.any(actsForAll) && wideScope.MatchString(l.value):
		return []string{"delegation", "scope", "scopes", l.value}
	}
	return nil
}

// switchesOff reports whether a call takes back what its name gives.
func (d *dealing) switchesOff() bool {
	return slices.ContainsFunc(d.leaves, func(l leaf) bool {
		return (l.key == "status" || l.key == "enabled" || l.key == "value" || l.key == "admin" || l.key == "isadmin") && isNo(l.value)
	})
}

// trustsStranger reports whether a call makes a directory elsewhere say who the own people are.
func (d *dealing) trustsStranger() bool {
	federates, named := d.any(federations), slices.ContainsFunc(d.told, trustedThing.MatchString)
	if !federates && !named {
		return false
	}
	links, stranger := federates, false
	for _, l := range d.leaves {
		links = links || linkKey.MatchString(l.key) && (isYes(l.value) || strings.EqualFold(l.value, "auto"))
		stranger = stranger || l.text && strings.Contains(l.value, "://") && !knownDirectory.MatchString(l.value) && l.above.named && d.elsewhere(l.value)
	}
	return links && stranger
}

// knownDirectory is one that an organisation rents.
var knownDirectory = regex.New(`(?i)^https?://(?:[\w-]+\.)*(?:google(?:apis)?\.com|microsoftonline\.com|windows\.net|microsoft\.com|okta\.com|auth0\.com|onelogin\.com|github\.com|gitlab\.com|apple\.com|amazoncognito\.com|jumpcloud\.com|duosecurity\.com|pingidentity\.com|w3\.org|oasis-open\.org|xmlsoap\.org)(?:[/:]|$)`)
