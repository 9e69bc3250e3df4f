package v1alpha1

// Condition types. Each is about the generation in its observedGeneration.
const (
	// ConditionAccepted: the object is understood and nothing is wrong with it. When it is False, the message says
	// whether the object is left out of decisions and compilation, or only a part of it, or what else has to be mended.
	ConditionAccepted = "Accepted"
	// ConditionCompiled: every statement became part of a unit, and the unit was written for KubeFed.
	ConditionCompiled = "Compiled"
	// ConditionPropagated: every targeted member has the present generation, by KubeFed's report or by the read-back.
	ConditionPropagated = "Propagated"
	// ConditionRealized: the wanted revision was read back from every targeted member, and there is at least one.
	ConditionRealized = "Realized"
	// ConditionReady: of a MemberCluster; its reason is the state.
	ConditionReady = "Ready"
)

// Reasons of conditions.
const (
	// ReasonAccepted: nothing is wrong with the object itself.
	ReasonAccepted = "Accepted"
	// ReasonInvalid: the object breaks a rule that the API server could not check; the message says which.
	ReasonInvalid = "Invalid"
	// ReasonNoClass: no class covers the object's name.
	ReasonNoClass = "NoClass"
	// ReasonOverlap: another class covers some of the same names.
	ReasonOverlap = "PatternOverlap"
	// ReasonDuplicate: another ProtectedResource names the same resource; the strictest mode counts.
	ReasonDuplicate = "DuplicateResource"
	// ReasonCompiled: everything was compiled.
	ReasonCompiled = "Compiled"
	// ReasonStatementsRefused: some statements were left out; status.refused names them.
	ReasonStatementsRefused = "StatementsRefused"
	// ReasonWriteFailed: the federated object could not be written; it is retried.
	ReasonWriteFailed = "WriteFailed"
	// ReasonNotOnboarded: the policy has no statement in force about a resource in Audit or Enforce, so no member has to
	// have anything.
	ReasonNotOnboarded = "NotOnboarded"
	// ReasonObserve: the resource is in Observe, so no member has to have anything.
	ReasonObserve = "Observe"
	// ReasonPropagated: KubeFed reports success for every targeted member, or it was read back there.
	ReasonPropagated = "Propagated"
	// ReasonPropagating: KubeFed is not done with the present generation.
	ReasonPropagating = "Propagating"
	// ReasonNoPropagator: KubeFed or its Federated kind is not installed in the host cluster.
	ReasonNoPropagator = "PropagatorMissing"
	// ReasonRealized: every targeted member was read back with the wanted revision.
	ReasonRealized = "Realized"
	// ReasonNotRealized: at least one targeted member does not have the wanted revision; the message names it.
	ReasonNotRealized = "NotRealized"
	// ReasonNoTarget: the placement names no member, so nothing can be in force.
	ReasonNoTarget = "NoTarget"
)

// Reasons for which a statement is refused.
const (
	// RefusedUnknownSubject: no SubjectClass covers the subject.
	RefusedUnknownSubject = "UnknownSubjectClass"
	// RefusedUnknownResource: no ResourceClass covers the resource.
	RefusedUnknownResource = "UnknownResourceClass"
	// RefusedUnknownAction: the resource's class has no such action.
	RefusedUnknownAction = "UnknownAction"
	// RefusedInvalidName: a name cannot be a label value, or is malformed.
	RefusedInvalidName = "InvalidName"
	// RefusedUnsupported: the enforcer cannot express the statement.
	RefusedUnsupported = "Unsupported"
	// RefusedShadowingDeny: an allow was left out because a deny that could override it was refused.
	RefusedShadowingDeny = "OverriddenByRefusedDeny"
	// RefusedTooMany: the statement would make the resource's rules outgrow what a workload's policy map holds.
	RefusedTooMany = "PolicyMapFull"
)

// Labels and names that ACP owns.
const (
	// AnnotationPolicyShards says on the first of the policies that hold the portal's grants on a resource how many there are; without
	// it there is one.
	AnnotationPolicyShards = "acp.io/portal-shards"
	// MaxStatements is how many statements the API takes in one AccessControlPolicy.
	MaxStatements = 512
	// LabelManagedBy marks every object that ACP writes; its value is ManagedBy.
	LabelManagedBy = "acp.io/managed-by"
	// ManagedBy is the value of LabelManagedBy on objects that the adapter writes.
	ManagedBy = "acp-adapter"
	// ManagedByPortal is the value of LabelManagedBy on policies that the portal writes.
	ManagedByPortal = "acp-portal"
	// LabelUnit carries a unit's short id.
	LabelUnit = "acp.io/unit"
	// LabelRevision carries the hash of the rendered spec.
	LabelRevision = "acp.io/revision"
	// FinalizerProtectedResource keeps a ProtectedResource until no member has its unit any more.
	FinalizerProtectedResource = "acp.io/protected-resource"
	// FinalizerResourceClass keeps a ResourceClass while members have units of its resources.
	FinalizerResourceClass = "acp.io/resource-class"
	// FinalizerSubjectClass keeps a SubjectClass while statements in force, or yet to come, name its subjects: without the class
	// a deny of them could not be expressed.
	FinalizerSubjectClass = "acp.io/subject-class"
	// ObjectPrefix is reserved for the names of objects that ACP writes into members.
	ObjectPrefix = "acp-"
)
