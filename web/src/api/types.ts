/** Short names for the generated schemas, so that no other file spells the path. */
import type { components } from "./schema.gen";

type Schemas = components["schemas"];

/** Message is a text for users with a stable code and parameters, from which it is rendered in the person's language. */
export type Message = Schemas["Message"];
/** Organization is a set of teams with administrators, within bounds of the security team. */
export type Organization = Schemas["Organization"];
/** Me is the signed-in person with their roles, groups and counts. */
export type Me = Schemas["Me"];
/** Role is a role of a person, which decides what they may see and do. */
export type Role = Schemas["Role"];
/** Person is a person of the catalog. */
export type Person = Schemas["Person"];
/** WeeklyHours are recurring hours of the week. */
export type WeeklyHours = Schemas["WeeklyHours"];
/** DailyPeriod is the same period of some days of the week. */
export type DailyPeriod = Schemas["DailyPeriod"];
/** Weekday is a day of the week. */
export type Weekday = Schemas["Weekday"];
/** OwnerRef refers to a person or group that owns an application or resource. */
export type OwnerRef = Schemas["OwnerRef"];
/** Application is a client of the catalog. */
export type Application = Schemas["Application"];
/** Resource is a server of the catalog with its actions and protection. */
export type Resource = Schemas["Resource"];
/** Sensitivity is the sensitivity of a resource. */
export type Sensitivity = Schemas["Sensitivity"];
/** Mode is the mode of a resource: Observe, Audit or Enforce. */
export type Mode = Schemas["Mode"];
/** Protection is the mode of a resource and its state in every member. */
export type Protection = Schemas["Protection"];
/** ClusterState is the state of one unit in one member. */
export type ClusterState = Schemas["ClusterState"];
/** MemberCounts is the number of members in each state, including members that are not listed. */
export type MemberCounts = Schemas["MemberCounts"];
/** CatalogRef refers to an application or resource by name, with its title. */
export type CatalogRef = Schemas["CatalogRef"];
/** StatementScope is the effect, the subjects and the resources of a statement that no pair of an application and a resource expresses. */
export type StatementScope = Schemas["StatementScope"];
/** Access is a statement by which an application may, or may not, reach a resource. */
export type Access = Schemas["Access"];
/** AccessUse is the last connection that a statement decided, between two names. */
export type AccessUse = Schemas["AccessUse"];
/** UseState says whether a use of an access was seen, and if not, whether that proves that there was none. */
export type UseState = Schemas["UseState"];
/** Use is the last use of an access. It is null while the flows are read, and undefined if they could not be read. */
export type Use = { state: UseState; lastUsed?: string | undefined } | null | undefined;
/** PastAccess is what a statement said about a resource at an instant in the past. */
export type PastAccess = Schemas["PastAccess"];
/** PastAccessList says who could reach a resource at an instant, and what the records do not cover. */
export type PastAccessList = Schemas["PastAccessList"];
/** AccessPeriod is a time in which nothing about the access of an application to a resource changed. */
export type AccessPeriod = Schemas["AccessPeriod"];
/** AccessPeriodCause is what began or ended a period. */
export type AccessPeriodCause = Schemas["AccessPeriodCause"];
/** AccessPeriodList is the list of the periods of one application and one resource. */
export type AccessPeriodList = Schemas["AccessPeriodList"];
/** ModeChange is a change of the mode of a resource, or of its temporary audit. */
export type ModeChange = Schemas["ModeChange"];
/** HistoryGap is something that the records do not cover. */
export type HistoryGap = Schemas["HistoryGap"];
/** Connection is a number of equal connections between two ends in one member. */
export type Connection = Schemas["Connection"];
/** ConnectionList is a list of connections with the window that it covers. */
export type ConnectionList = Schemas["ConnectionList"];
/** Decision is the policy verdict of a connection. */
export type Decision = Schemas["Decision"];
/** Home is everything that the first page shows. */
export type Home = Schemas["Home"];
/** DeniedConnection is a number of refused connections from one of the person's applications. */
export type DeniedConnection = Schemas["DeniedConnection"];
/** SearchHit is one result of the search. */
export type SearchHit = Schemas["SearchHit"];
/** PersonDetail is a person with their leader, their groups and what they own. */
export type PersonDetail = Schemas["PersonDetail"];
/** Workload is an external workload: addresses outside the fleet that act as an application. */
export type Workload = Schemas["Workload"];
/** ClassInfo is a resource class or subject class. */
export type ClassInfo = Schemas["ClassInfo"];
/** ApprovalPolicy is a policy that determines who must approve a request. */
export type ApprovalPolicy = Schemas["ApprovalPolicy"];
/** Ticket is a request with its items and events. */
export type Ticket = Schemas["Ticket"];
/** TicketItem is one change of a ticket, with its own state and approval steps. */
export type TicketItem = Schemas["TicketItem"];
/** TicketKind is the kind of change that a ticket requests. */
export type TicketKind = Schemas["TicketKind"];
/** TicketState is the state of an item, or the state of a ticket, which is derived from its items. */
export type TicketState = Schemas["TicketState"];
/** TicketEvent is one entry of a ticket's history. */
export type TicketEvent = Schemas["Event"];
/** TicketPreview is the server's answer about a request that was not submitted yet. */
export type TicketPreview = Schemas["TicketPreview"];
/** PreviewItem is the part of a preview that concerns one item. */
export type PreviewItem = Schemas["PreviewItem"];
/** NewTicket is a request as it is submitted. */
export type NewTicket = Schemas["NewTicket"];
/** TicketFacts is one page of facts about the items of a ticket. */
export type TicketFacts = Schemas["TicketFacts"];
/** ItemFacts contains what a decision about one item needs to know. */
export type ItemFacts = Schemas["ItemFacts"];
/** StatementFacts contains what the names of a statement cover, and whom it concerns of the clients that were observed. */
export type StatementFacts = Schemas["StatementFacts"];
/** SensitivityCounts contains numbers of resources by their sensitivity. */
export type SensitivityCounts = Schemas["SensitivityCounts"];
/** PackageFacts contains the resources and the holders of a version of an access package. */
export type PackageFacts = Schemas["PackageFacts"];
/** WorkloadFacts contains what the addresses of a registration reach already. */
export type WorkloadFacts = Schemas["WorkloadFacts"];
/** NewTicketItem is one item of a request as it is submitted. */
export type NewTicketItem = Schemas["NewTicketItem"];
/** ObjectChange is the change of a class or an approval policy. */
export type ObjectChange = Schemas["ObjectChange"];
/** ItemRef refers to an item of a ticket. */
export type ItemRef = Schemas["ItemRef"];
/** Step is one approval step of an item. */
export type Step = Schemas["Step"];
/** StepState is the state of an approval step. */
export type StepState = Schemas["StepState"];
/** Vote is one decision of a person in an approval step. */
export type Vote = Schemas["Vote"];
/** ChangeView is the list of objects that a ticket changes. */
export type ChangeView = Schemas["ChangeView"];
/** ObjectDiff is one object before and after a change. */
export type ObjectDiff = Schemas["ObjectDiff"];
/** BulkDecision is one decision about several tickets. */
export type BulkDecision = Schemas["BulkDecision"];
/** BulkResult contains the result of a bulk decision for each ticket. */
export type BulkResult = Schemas["BulkResult"];
/** LedgerLine is one line of the ledger. */
export type LedgerLine = Schemas["LedgerLine"];
/** LedgerVerification is the result of a verification of the ledger. */
export type LedgerVerification = Schemas["LedgerVerification"];
/** Delegation is a person's choice of a delegate for a period. */
export type Delegation = Schemas["Delegation"];
/** NewDelegation is a delegation as it is submitted. */
export type NewDelegation = Schemas["NewDelegation"];
/** InboxItem is one notification of the person. */
export type InboxItem = Schemas["InboxItem"];
/** Undelivered is a notification that could not be delivered, without its content. */
export type Undelivered = Schemas["Undelivered"];
/** Preferences are a person's language, time zone and notification channels. */
export type Preferences = Schemas["Preferences"];
/** SavedView is a named filter of a page that the person saved. */
export type SavedView = Schemas["SavedView"];
/** SharedView is a saved view that somebody shares. */
export type SharedView = Schemas["SharedView"];
/** NewSavedView is a view as it is saved. */
export type NewSavedView = Schemas["NewSavedView"];
/** SavedViewPage is a page whose filters can be saved. */
export type SavedViewPage = Schemas["SavedViewPage"];
/** Token is a token of the person, without its secret. */
export type Token = Schemas["Token"];
/** TokenScope is a permission that a token can have. */
export type TokenScope = Schemas["TokenScope"];
/** NewToken is a token as it is requested. */
export type NewToken = Schemas["NewToken"];
/** SessionInfo is one session of the person. */
export type SessionInfo = Schemas["SessionInfo"];
/** DeviceLogin is a pending login of a command line. */
export type DeviceLogin = Schemas["DeviceLogin"];
/** PolicyStep is one step of an approval policy. */
export type PolicyStep = Schemas["PolicyStep"];
/** CatalogSource is a source of the catalog and the state of its synchronization. */
export type CatalogSource = Schemas["CatalogSource"];
/** SyncInput is the content of a source that is uploaded. */
export type SyncInput = Schemas["SyncInput"];
/** SyncPreview is the list of changes that a synchronization would make. */
export type SyncPreview = Schemas["SyncPreview"];
/** SyncChange is one change of a synchronization and its consequences. */
export type SyncChange = Schemas["SyncChange"];
/** Entity is an entry of the catalog: an application, a resource, a person or a group. */
export type Entity = Schemas["Entity"];
/** WorkloadSync is the result of a synchronization of workloads. */
export type WorkloadSync = Schemas["WorkloadSync"];
/** WorkloadResults contains the result of a registration for each workload. */
export type WorkloadResults = Schemas["WorkloadResults"];
/** Problem is the body of an error answer (RFC 9457). */
export type Problem = Schemas["Problem"];
/** Verdict is the dataplane verdict of a connection. */
export type Verdict = Schemas["Verdict"];
/** FlowConnectionList is one page of counted connections with the window that it covers. */
export type FlowConnectionList = Schemas["FlowConnectionList"];
/** FlowSeries is the number of connections in each step of a window, by decision. */
export type FlowSeries = Schemas["FlowSeries"];
/** RawFlow is one recorded connection with its addresses. */
export type RawFlow = Schemas["RawFlow"];
/** FlowLoss is a number of flows that are known to be missing. */
export type FlowLoss = Schemas["FlowLoss"];
/** FlowCoverage is the time of one day in which a member was watched. */
export type FlowCoverage = Schemas["FlowCoverage"];
/** FlowCoverageList is the coverage of all members in a window. */
export type FlowCoverageList = Schemas["FlowCoverageList"];
/** TemporaryAudit is a limited time in which an enforced resource is in Audit. */
export type TemporaryAudit = Schemas["TemporaryAudit"];
/** SeenEvidence is what was observed of one client. */
export type SeenEvidence = Schemas["SeenEvidence"];
/** Proposal is the list of statements that would allow the clients seen in the flows of a resource. */
export type Proposal = Schemas["Proposal"];
/** ProposalLine is one client and one action of a proposal. */
export type ProposalLine = Schemas["ProposalLine"];
/** UnattributedLine is a source without a name in a proposal. */
export type UnattributedLine = Schemas["UnattributedLine"];
/** UnknownPortLine is a client at a port that no action names. */
export type UnknownPortLine = Schemas["UnknownPortLine"];
/** ClientNotice is a notice to the owners of an application that its access to a resource is not wanted. */
export type ClientNotice = Schemas["ClientNotice"];
/** EvidenceScore is the evidence score of a resource and its threshold. */
export type EvidenceScore = Schemas["EvidenceScore"];
/** Unused is a grant that was not used in the quiet period. */
export type Unused = Schemas["Unused"];
/** Impact is the result of a replay: the connections that a change would let in or refuse. */
export type Impact = Schemas["Impact"];
/** ImpactLine is one edge of a replay with its decisions before and after the change. */
export type ImpactLine = Schemas["ImpactLine"];
/** RolloutCard is a resource with its rollout stage and next step. */
export type RolloutCard = Schemas["RolloutCard"];
/** NewDraft is a drafted policy, resources to enforce, or both. */
export type NewDraft = Schemas["NewDraft"];
/** RolloutWaves is the progress of Enforce, or of a change of a class, through the waves of the class. */
export type RolloutWaves = Schemas["RolloutWaves"];
/** WavesAction is an instruction about the waves of a rollout. */
export type WavesAction = Schemas["WavesAction"];
/** RolloutStage is the stage of a resource in its rollout. */
export type RolloutStage = Schemas["RolloutStage"];
/** RolloutResult is the result of a rollout action for one resource. */
export type RolloutResult = Schemas["RolloutResult"];
/** Guard is the rollout guard of a resource and its state. */
export type Guard = Schemas["Guard"];
/** Member is a member of the fleet with its health. */
export type Member = Schemas["Member"];
/** NodeReporting is the number of nodes of a member that report, report a problem or do not report. */
export type NodeReporting = Schemas["NodeReporting"];
/** NodeSummary is the number of nodes that enforce the wanted revision. */
export type NodeSummary = Schemas["NodeSummary"];
/** MemberDetail is a member with its findings and units. */
export type MemberDetail = Schemas["MemberDetail"];
/** MemberHealth is the health of a member. */
export type MemberHealth = Schemas["MemberHealth"];
/** MemberUnit is the state of one unit in a member. */
export type MemberUnit = Schemas["MemberUnit"];
/** MemberFinding is a problem that the preflight of a member found. */
export type MemberFinding = Schemas["MemberFinding"];
/** GuardState is the state of the admission policy that protects ACP's objects in a member. */
export type GuardState = Schemas["GuardState"];
/** IdentityUse is the number of identities in a member and its limit. */
export type IdentityUse = Schemas["IdentityUse"];
/** AccessEdge is one statement between a client and a resource on the access map. */
export type AccessEdge = Schemas["AccessEdge"];
/** TrafficMap is who connected to what beside what is granted. */
export type TrafficMap = Schemas["TrafficMap"];
/** TrafficNode is an end of the links of the traffic map. */
export type TrafficNode = Schemas["TrafficNode"];
/** TrafficLink is what was seen and what is granted between two ends. */
export type TrafficLink = Schemas["TrafficLink"];
/** AccessGraph is the graph of the access map. */
export type AccessGraph = Schemas["AccessGraph"];
/** AccessNode is one node of the access map. */
export type AccessNode = Schemas["AccessNode"];
/** AccessPath is the answer to how one name can reach another. */
export type AccessPath = Schemas["AccessPath"];
/** PolicyOrigin is the program that wrote a policy. */
export type PolicyOrigin = Schemas["PolicyOrigin"];
/** PolicyOriginKind is the kind of the program that wrote a policy. */
export type PolicyOriginKind = Schemas["PolicyOriginKind"];
/** PolicySummary is a policy as lists show it. */
export type PolicySummary = Schemas["PolicySummary"];
/** PolicyDetail is a policy with its statements and YAML. */
export type PolicyDetail = Schemas["PolicyDetail"];
/** PolicyStatement is one statement of a policy with its issues. */
export type PolicyStatement = Schemas["PolicyStatement"];
/** StatementIssue is an issue of a statement with its explanation. */
export type StatementIssue = Schemas["StatementIssue"];
/** StatementIssueKind is the kind of an issue of a statement. */
export type StatementIssueKind = Schemas["StatementIssueKind"];
/** Finding is a problem that ACP reports about a member, an object or the traffic. */
export type Finding = Schemas["Finding"];
/** FindingKind is the kind of a finding. */
export type FindingKind = Schemas["FindingKind"];
/** FindingSeverity is the severity of a finding. */
export type FindingSeverity = Schemas["FindingSeverity"];
/** AccessReview is a campaign in which reviewers decide about accesses. */
export type AccessReview = Schemas["AccessReview"];
/** NewAccessReview is an access review as it is created. */
export type NewAccessReview = Schemas["NewAccessReview"];
/** ReviewPreview is the number of accesses that a review would collect, with examples. */
export type ReviewPreview = Schemas["ReviewPreview"];
/** ReviewCounts is the number of lines of a review, by state and outcome. */
export type ReviewCounts = Schemas["ReviewCounts"];
/** ReviewLine is one access in a review with its evidence and decision. */
export type ReviewLine = Schemas["ReviewLine"];
/** ReviewLineState is the state of a line of a review. */
export type ReviewLineState = Schemas["ReviewLineState"];
/** ReviewEvidence is the observed use of one access. */
export type ReviewEvidence = Schemas["ReviewEvidence"];
/** ReviewOutcome is the outcome of a line of a review. */
export type ReviewOutcome = Schemas["ReviewOutcome"];
/** ReviewDecision is the decision of a reviewer about a line. */
export type ReviewDecision = Schemas["ReviewDecision"];
/** ReviewRecommendation is the decision that the evidence of a line suggests. */
export type ReviewRecommendation = Schemas["ReviewRecommendation"];
/** ReviewDecisions are the decisions about several lines of a review. */
export type ReviewDecisions = Schemas["ReviewDecisions"];
/** ReviewResult is the result of the decision about one line. */
export type ReviewResult = Schemas["ReviewDecisionResults"]["items"][number];
/** ReviewDecisionResults contains the result of a decision for each line. */
export type ReviewDecisionResults = Schemas["ReviewDecisionResults"];
/** Downgrade is the extent and the progress of a downgrade in one scope. */
export type Downgrade = Schemas["Downgrade"];
/** DowngradeScope is the scope of a downgrade: all resources, or those of one class. */
export type DowngradeScope = Schemas["DowngradeScope"];
/** DowngradeRun is the last downgrade or resumption that this replica ran in a scope. */
export type DowngradeRun = Schemas["DowngradeRun"];
/** ActiveDowngrade is a downgrade that is in effect, with the number of its resources. */
export type ActiveDowngrade = Schemas["ActiveDowngrade"];
/** PackageSummary is an access package as lists show it. */
export type PackageSummary = Schemas["PackageSummary"];
/** AccessPackage is an access package with its current version. */
export type AccessPackage = Schemas["AccessPackage"];
/** PackageChain says who decides a request for an access package. */
export type PackageChain = Schemas["PackageChain"];
/** PackageHolder is an application that holds access by a package. */
export type PackageHolder = Schemas["PackageHolder"];
/** PackageUpdate is how far a version has been given to the applications that hold the package. */
export type PackageUpdate = Schemas["PackageUpdate"];
/** PackageUpdateApplication is one application of an update. */
export type PackageUpdateApplication = Schemas["PackageUpdateApplication"];
/** NewPackage is a version of an access package that is requested to be published. */
export type NewPackage = Schemas["NewPackage"];
