package v1alpha1

// Condition types. Each applies to the generation in its observedGeneration.
const (
	// ConditionAccepted means that the object is valid. If the condition is False, the message states whether the object, or only a part of it, is
	// left out of decisions and compilation, and what to correct.
	ConditionAccepted = "Accepted"
	// ConditionCompiled means that every statement is part of a unit, and the unit was written for KubeFed.
	ConditionCompiled = "Compiled"
	// ConditionPropagated means that every targeted member has the current generation, as KubeFed reports or as was read back.
	ConditionPropagated = "Propagated"
	// ConditionRealized means that every listed member is in the state Realized, and there is at least one.
	ConditionRealized = "Realized"
	// ConditionApproved means that everybody who has to approve an AccessRequest has done so, and that the access was not ended since.
	ConditionApproved = "Approved"
	// ConditionReady is the condition of a MemberCluster. Its reason is the state.
	ConditionReady = "Ready"
)

// Reasons of conditions.
const (
	// ReasonAccepted means that the object itself is valid.
	ReasonAccepted = "Accepted"
	// ReasonInvalid means that the object violates a rule that the API server cannot check; the message names it.
	ReasonInvalid = "Invalid"
	// ReasonNoClass means that no class covers the object's name.
	ReasonNoClass = "NoClass"
	// ReasonOverlap means that another class covers some of the same names.
	ReasonOverlap = "PatternOverlap"
	// ReasonDuplicate means that another ProtectedResource names the same resource; the strictest mode counts.
	ReasonDuplicate = "DuplicateResource"
	// ReasonOutOfBounds means that the object is outside of the bounds of its organization; the message names them.
	ReasonOutOfBounds = "OutOfBounds"
	// ReasonTeamConflict means that several organizations name the same team.
	ReasonTeamConflict = "TeamConflict"
	// ReasonCompiled means that everything was compiled.
	ReasonCompiled = "Compiled"
	// ReasonStatementsRefused means that some statements were left out; status.refused names them.
	ReasonStatementsRefused = "StatementsRefused"
	// ReasonWriteFailed means that the federated object could not be written; it is retried.
	ReasonWriteFailed = "WriteFailed"
	// ReasonNotOnboarded means that the policy has no statement in force about a resource in Audit or Enforce, so no member needs an
	// object.
	ReasonNotOnboarded = "NotOnboarded"
	// ReasonObserve means that the resource is in Observe, so no member needs an object.
	ReasonObserve = "Observe"
	// ReasonPropagated means that KubeFed reports success for every targeted member, or the objects were read back there.
	ReasonPropagated = "Propagated"
	// ReasonPropagating means that KubeFed has not finished the current generation.
	ReasonPropagating = "Propagating"
	// ReasonNoPropagator means that KubeFed or its Federated kind is not installed in the host cluster.
	ReasonNoPropagator = "PropagatorMissing"
	// ReasonRealized means that every listed member is in the state Realized.
	ReasonRealized = "Realized"
	// ReasonNotRealized means that at least one member is in another state than Realized; the message names it.
	ReasonNotRealized = "NotRealized"
	// ReasonNoTarget means that the placement selects no member, so nothing can be enforced.
	ReasonNoTarget = "NoTarget"
)

// Reasons of the conditions of an AccessRequest.
const (
	// ReasonSubmitted means that the request has a ticket.
	ReasonSubmitted = "Submitted"
	// ReasonNoApplication means that the namespace lacks LabelApplication, so that it stands for no application.
	ReasonNoApplication = "NamespaceWithoutApplication"
	// ReasonUnknownApplication means that the catalog does not contain the application of the namespace.
	ReasonUnknownApplication = "UnknownApplication"
	// ReasonTooManyOpen means that the application has too many open requests of this kind.
	ReasonTooManyOpen = "TooManyOpenRequests"
	// ReasonNotSubmitted means that the request was refused; the message says why.
	ReasonNotSubmitted = "NotSubmitted"
	// ReasonPending means that somebody still has to decide.
	ReasonPending = "Pending"
	// ReasonApproved means that every approver has agreed.
	ReasonApproved = "Approved"
	// ReasonRejected means that an approver has rejected the request, or a part of it.
	ReasonRejected = "Rejected"
	// ReasonTimedOut means that the request was not decided in time.
	ReasonTimedOut = "TimedOut"
	// ReasonWithdrawn means that the request was withdrawn.
	ReasonWithdrawn = "Withdrawn"
	// ReasonRevoked means that the access was revoked.
	ReasonRevoked = "Revoked"
	// ReasonExpired means that the time of the access is over.
	ReasonExpired = "Expired"
	// ReasonFailed means that the approved change was refused, or is no longer in the host cluster.
	ReasonFailed = "Failed"
)

// Reasons for which a statement is refused.
const (
	// RefusedUnknownSubject means that no SubjectClass covers the subject.
	RefusedUnknownSubject = "UnknownSubjectClass"
	// RefusedUnknownResource means that no ResourceClass covers the resource.
	RefusedUnknownResource = "UnknownResourceClass"
	// RefusedUnknownAction means that the resource's class has no such action.
	RefusedUnknownAction = "UnknownAction"
	// RefusedInvalidName means that a name cannot be a label value, or is malformed.
	RefusedInvalidName = "InvalidName"
	// RefusedInvalidHours means that the time zone of a statement's hours is not known, or a period is malformed.
	RefusedInvalidHours = "InvalidHours"
	// RefusedUnsupported means that the enforcer cannot express the statement.
	RefusedUnsupported = "Unsupported"
	// RefusedShadowingDeny means that an allow was left out because a deny that could override it is refused.
	RefusedShadowingDeny = "OverriddenByRefusedDeny"
	// RefusedTooMany means that, with the statement, the rules of the resource would not fit into the policy map of a workload.
	RefusedTooMany = "PolicyMapFull"
)

// Labels, annotations and names that are reserved for ACP.
const (
	// AnnotationPolicyShards is the number of policies that contain the portal's grants on a resource. It is an annotation of the
	// first of them; without it there is one.
	AnnotationPolicyShards = "acp.io/portal-shards"
	// AnnotationTraces contains, while the portal traces, the positions in the traces of the changes that it made to a policy
	// within the last hour, one for each statement, at most 16: see tracing.ParseChanges. It has no effect on what the policy
	// means, and what is not valid in it is ignored. The adapter copies those that a write concerns to the federated object.
	AnnotationTraces = "acp.io/traces"
	// MaxStatements is the maximum number of statements in one AccessControlPolicy.
	MaxStatements = 512
	// LabelManagedBy marks every object that ACP writes; its value is ManagedBy.
	LabelManagedBy = "acp.io/managed-by"
	// ManagedBy is the value of LabelManagedBy on objects that the adapter writes.
	ManagedBy = "acp-adapter"
	// ManagedByPortal is the value of LabelManagedBy on policies that the portal writes.
	ManagedByPortal = "acp-portal"
	// LabelUnit contains the short id of a unit.
	LabelUnit = "acp.io/unit"
	// LabelRevision contains the hash of the rendered spec.
	LabelRevision = "acp.io/revision"
	// LabelApplication names, on a namespace, the catalog id of the application for which the namespace stands. Whoever may set it
	// decides for which application AccessRequests in the namespace ask.
	LabelApplication = "acp.io/app-id"
	// FinalizerAccessRequest keeps an AccessRequest until its ticket is withdrawn, or its revocation has begun.
	FinalizerAccessRequest = "acp.io/access-request"
	// FinalizerProtectedResource keeps a ProtectedResource until its unit is removed from all members.
	FinalizerProtectedResource = "acp.io/protected-resource"
	// FinalizerResourceClass keeps a ResourceClass while members have units of its resources.
	FinalizerResourceClass = "acp.io/resource-class"
	// FinalizerSubjectClass keeps a SubjectClass while statements that are in force, or will be, name its subjects. Without the
	// class, denies of these subjects could not be compiled.
	FinalizerSubjectClass = "acp.io/subject-class"
	// ObjectPrefix is reserved for the names of objects that ACP writes into members.
	ObjectPrefix = "acp-"
)
