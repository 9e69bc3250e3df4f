package approval

// Kind is the kind of a ticket and of all its items. A new kind needs changes in these files. TestEveryKindIsComplete and
// TestKindsOfTheAPI fail if the rules, the built-in chain, the API, the web UI or docs/approvals.md lack one:
//
//   - internal/approval/kind.go: the constant, Kinds, and Access or Object.
//   - internal/approval/rules/request.go: kinds, which entities' owners can be approvers.
//   - api/openapi.yaml: TicketKind and NewTicketItem; then make generate.
//   - internal/portal/ticketapi/request.go: reads the item, if it has new fields.
//   - internal/approval/plan.go, with planaccess.go, planobject.go or planstatement.go: validates the request and computes the item.
//   - internal/approval/builtin.go: the chain without an approval policy.
//   - internal/approval/access.go: mayAsk, who may request it, if neither Access nor the resource's owners decide that.
//   - internal/approval/shownlines.go: the lines that the approvers see.
//   - internal/approval/worker.go, hosttransitions.go, transitions.go, item.go and tick.go, if it is written or ended differently.
//   - internal/approval/revoke.go and rechain.go: whether its items can be revoked, and are approved anew when owners change.
//   - internal/portal/host/objects.go, if it changes another kind of object, and internal/portal/host/compiled.go: the difference of each enforcer.
//   - internal/ledger/texts.go and internal/message/catalogue.json: the kind in the ledger's lines; then make generate.
//   - internal/portal/change/change.go: the comparison before and after.
//   - internal/portal/ticketapi/approvalpolicies.go: the page of the built-in chain, if it has another one.
//   - internal/cli/request.go, if the command line can request it.
//   - web/src/lib/items.ts, web/src/lib/request.ts, web/src/lib/use-heading.ts, web/src/components/ItemSentence.tsx and
//     web/src/pages/NewRequestPage.tsx: the form and the description.
//   - web/src/i18n/en/tickets.ts, web/src/i18n/zh/tickets.ts, web/src/i18n/en/request.ts and web/src/i18n/zh/request.ts:
//     the texts.
//   - docs/approvals.md: the table of kinds.
//   - e2e/kinds.spec.ts: a request of the kind in a browser.
type Kind string

const (
	// KindGrant requests access of an application to a resource. It becomes a statement.
	KindGrant Kind = "grant"
	// KindExtend requests a later end of a grant. It becomes a statement that replaces the earlier one.
	KindExtend Kind = "extend"
	// KindRevoke requests the end of another ticket's grant, for a person who may not revoke it directly.
	KindRevoke Kind = "revoke"
	// KindMode changes the mode of a ProtectedResource.
	KindMode Kind = "mode"
	// KindOnboard creates the ProtectedResource of a resource.
	KindOnboard Kind = "onboard"
	// KindOffboard deletes the ProtectedResource of a resource.
	KindOffboard Kind = "offboard"
	// KindClass creates, changes or deletes a ResourceClass or SubjectClass.
	KindClass Kind = "class"
	// KindApprovalPolicy creates, changes or deletes an ApprovalPolicy or an Organization.
	KindApprovalPolicy Kind = "approval-policy"
	// KindWorkload registers clients of an application outside the fleet, as ExternalWorkloads.
	KindWorkload Kind = "workload"
	// KindPackage publishes a version of an access package.
	KindPackage Kind = "package"
	// KindStatement requests a statement that no pair of catalog entities expresses: a deny, or one with wildcards, address ranges or anyone.
	KindStatement Kind = "statement"
)

// Kinds returns all kinds, in the order in which they are documented.
func Kinds() []Kind {
	return []Kind{KindGrant, KindExtend, KindRevoke, KindMode, KindOnboard, KindOffboard, KindClass, KindApprovalPolicy, KindWorkload,
		KindPackage, KindStatement}
}

// Access reports whether an item of the kind becomes a statement of a policy.
func (k Kind) Access() bool { return k == KindGrant || k == KindExtend || k == KindStatement }

// Object reports whether an item of the kind changes an object as a whole: one of the host cluster, or an access package.
func (k Kind) Object() bool {
	switch k {
	case KindMode, KindOnboard, KindOffboard, KindClass, KindApprovalPolicy, KindWorkload, KindPackage:
		return true
	}
	return false
}

// Valid reports whether the kind is one of the constants.
func (k Kind) Valid() bool { return k.Access() || k.Object() || k == KindRevoke }
