package approval

// Kind is the kind of a ticket and of all its items. docs/architecture.md lists what has to be changed for a new kind.
type Kind string

// The kinds of tickets.
const (
	KindGrant          Kind = "grant"
	KindExtend         Kind = "extend" // a later end of a grant
	KindRevoke         Kind = "revoke" // the end of another ticket's grant, requested by a person who may not revoke it directly
	KindMode           Kind = "mode"   // the mode of a ProtectedResource
	KindOnboard        Kind = "onboard"
	KindOffboard       Kind = "offboard"
	KindClass          Kind = "class"
	KindApprovalPolicy Kind = "approval-policy"
	KindWorkload       Kind = "workload" // registration of an application's clients outside the fleet
)

// Kinds returns all kinds, in the order in which they are documented.
func Kinds() []Kind {
	return []Kind{KindGrant, KindExtend, KindRevoke, KindMode, KindOnboard, KindOffboard, KindClass, KindApprovalPolicy, KindWorkload}
}

// Access reports whether an item of the kind becomes a statement of a policy.
func (k Kind) Access() bool { return k == KindGrant || k == KindExtend }

// Object reports whether an item of the kind changes an object of the host cluster as a whole.
func (k Kind) Object() bool {
	switch k {
	case KindMode, KindOnboard, KindOffboard, KindClass, KindApprovalPolicy, KindWorkload:
		return true
	}
	return false
}

// Valid reports whether the kind is one of the constants.
func (k Kind) Valid() bool { return k.Access() || k.Object() || k == KindRevoke }
