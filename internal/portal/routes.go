package portal

import (
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/portal/core"
)

// base is the path of the API.
const base = core.APIBase

// The scopes that a token needs for a route. core.NoToken means that only a session of a browser may call it.
const (
	read           = credential.ScopeRead
	write          = credential.ScopeTicketsWrite
	decide         = credential.ScopeTicketsDecide
	catalogWrite   = credential.ScopeCatalogWrite
	workloadsWrite = credential.ScopeWorkloads
	ledgerRead     = credential.ScopeLedgerRead
	rolloutWrite   = credential.ScopeRollout
)

// routes is the table of all routes, in which core.Route describes the columns. A route without a row is refused.
var routes = []core.Route{
	{Method: "GET", Path: "/healthz", Operation: "healthz"},
	{Method: "GET", Path: "/readyz", Operation: "readyz"},
	{Method: "GET", Path: "/auth/login", Operation: "login"},
	{Method: "GET", Path: "/auth/callback", Operation: "callback", Rule: "state, nonce and PKCE of the same browser"},
	{Method: "POST", Path: "/auth/logout", Operation: "logout", Rule: "ends the caller's session"},
	{Method: "GET", Path: base + "/me", Operation: "getMe", Who: core.Person, Scope: read, Rule: "the caller"},
	{Method: "GET", Path: base + "/me/inbox", Operation: "listInbox", Who: core.Person, Scope: read, Rule: "the caller's"},
	{Method: "POST", Path: base + "/me/inbox", Operation: "markInbox", Who: core.Person, Scope: write, Rule: "the caller's"},
	{Method: "GET", Path: base + "/notifications/undelivered", Operation: "listUndelivered", Who: core.Governor, Scope: read},
	{Method: "POST", Path: base + "/notifications/undelivered", Operation: "retryUndelivered", Who: core.Administrator, Scope: core.NoToken},
	{Method: "GET", Path: base + "/me/preferences", Operation: "getPreferences", Who: core.Person, Scope: read, Rule: "the caller's"},
	{Method: "PUT", Path: base + "/me/preferences", Operation: "putPreferences", Who: core.Person, Scope: core.NoToken, Rule: "the caller's"},
	{Method: "GET", Path: base + "/me/tokens", Operation: "listTokens", Who: core.Person, Scope: core.NoToken, Rule: "the caller's"},
	{Method: "POST", Path: base + "/me/tokens", Operation: "createToken", Who: core.Person, Scope: core.NoToken, Rule: "never more than the caller may"},
	{Method: "DELETE", Path: base + "/me/tokens/:id", Operation: "revokeToken", Who: core.Person, Scope: core.NoToken, Rule: "the caller's; a token only itself"},
	{Method: "GET", Path: base + "/me/sessions", Operation: "listSessions", Who: core.Person, Scope: core.NoToken, Rule: "the caller's"},
	{Method: "DELETE", Path: base + "/me/sessions", Operation: "endOtherSessions", Who: core.Person, Scope: core.NoToken, Rule: "the caller's"},
	{Method: "POST", Path: base + "/auth/device", Operation: "startDevice", Programs: true},
	{Method: "GET", Path: base + "/auth/device", Operation: "getDevice", Who: core.Person, Scope: core.NoToken, Rule: "who knows the user code, while it waits"},
	{Method: "POST", Path: base + "/auth/device/token", Operation: "pollDevice", Programs: true, Rule: "who knows the device code"},
	{Method: "POST", Path: base + "/auth/device/approve", Operation: "approveDevice", Who: core.Person, Scope: core.NoToken, Rule: "who knows the user code, while it waits"},
	{Method: "GET", Path: base + "/applications", Operation: "listApplications", Who: core.Person, Scope: read, Rule: "denials: owners, security, auditors"},
	{Method: "GET", Path: base + "/applications/:id", Operation: "getApplication", Who: core.Person, Scope: read, Rule: "denials: owners, security, auditors"},
	{Method: "GET", Path: base + "/applications/:id/access", Operation: "listApplicationAccess", Who: core.Person, Scope: read, Rule: "owners, security, auditors"},
	{Method: "GET", Path: base + "/applications/:id/connections", Operation: "listApplicationConnections", Who: core.Person, Scope: read, Rule: "owners, security, auditors", Costs: &core.BudgetFlows},
	{Method: "GET", Path: base + "/resources", Operation: "listResources", Who: core.Person, Scope: read, Rule: "denials: owners, security, auditors"},
	{Method: "GET", Path: base + "/resources/:id", Operation: "getResource", Who: core.Person, Scope: read, Rule: "denials: owners, security, auditors"},
	{Method: "GET", Path: base + "/resources/:id/access", Operation: "listResourceAccess", Who: core.Person, Scope: read, Rule: "owners, security, auditors; others only rows of their own applications"},
	{Method: "GET", Path: base + "/resources/:id/connections", Operation: "listResourceConnections", Who: core.Person, Scope: read, Rule: "owners, security, auditors; others only rows of their own applications", Costs: &core.BudgetFlows},
	{Method: "GET", Path: base + "/search", Operation: "search", Who: core.Person, Scope: read, Brief: true, Rule: "the catalog; tickets that the caller may see"},
	{Method: "GET", Path: base + "/people", Operation: "listPeople", Who: core.Person, Scope: read},
	{Method: "GET", Path: base + "/people/:id", Operation: "getPerson", Who: core.Person, Scope: read},
	{Method: "GET", Path: base + "/groups", Operation: "listGroups", Who: core.Person, Scope: read},
	{Method: "GET", Path: base + "/tickets", Operation: "listTickets", Who: core.Person, Scope: read, Brief: true, Rule: "requester, approvers, owners, security, auditors"},
	{Method: "POST", Path: base + "/tickets", Operation: "createTicket", Who: core.Changer, Scope: write, Rule: "owners of the application"},
	{Method: "POST", Path: base + "/tickets/preview", Operation: "previewTicket", Who: core.Changer, Scope: read, Rule: "owners of the application"},
	{Method: "GET", Path: base + "/tickets/:id", Operation: "getTicket", Who: core.Person, Scope: read, Rule: "requester, approvers, owners, security, auditors"},
	{Method: "POST", Path: base + "/tickets/:id/decision", Operation: "decideTicket", Who: core.Changer, Scope: decide, Rule: "approvers of the step that waits, never the requester"},
	{Method: "POST", Path: base + "/tickets/:id/withdraw", Operation: "withdrawTicket", Who: core.Changer, Scope: write, Rule: "the requester"},
	{Method: "POST", Path: base + "/tickets/:id/revoke", Operation: "revokeTicket", Who: core.Changer, Scope: write, Rule: "owners of the resource or the application, security"},
	{Method: "POST", Path: base + "/tickets/:id/comments", Operation: "commentTicket", Who: core.Changer, Scope: write, Rule: "who may see the ticket", Once: true},
	{Method: "GET", Path: base + "/tickets/:id/change", Operation: "getTicketChange", Who: core.Person, Scope: read, Rule: "who may see the ticket"},
	{Method: "GET", Path: base + "/tickets/:id/ledger", Operation: "listTicketLedger", Who: core.Person, Scope: read, Rule: "who may see the ticket"},
	{Method: "POST", Path: base + "/tickets/:id/review", Operation: "reviewTicket", Who: core.Changer, Scope: decide, Rule: "reviewers, never the requester"},
	{Method: "POST", Path: base + "/tickets/decisions", Operation: "decideMany", Who: core.Changer, Scope: decide, Rule: "for each: approvers of the step that waits, never the requester"},
	{Method: "POST", Path: base + "/tickets/what-if", Operation: "whatIf", Who: core.Person, Scope: read, Rule: "for others: security, auditors"},
	{Method: "GET", Path: base + "/delegations", Operation: "listDelegations", Who: core.Person, Scope: read, Rule: "from and to the caller; all: security, auditors"},
	{Method: "POST", Path: base + "/delegations", Operation: "createDelegation", Who: core.Changer, Scope: core.NoToken, Rule: "in the caller's own place", Once: true},
	{Method: "DELETE", Path: base + "/delegations/:id", Operation: "endDelegation", Who: core.Changer, Scope: core.NoToken, Rule: "both sides, security"},
	{Method: "GET", Path: base + "/home", Operation: "getHome", Who: core.Person, Scope: read, Rule: "the caller's"},
	{Method: "GET", Path: base + "/approval-policies", Operation: "listApprovalPolicies", Who: core.Person, Scope: read, Rule: "who may break the glass: security, auditors"},
	{Method: "GET", Path: base + "/approval-policies/:id", Operation: "getApprovalPolicy", Who: core.Person, Scope: read, Rule: "YAML: security, auditors"},
	{Method: "GET", Path: base + "/classes", Operation: "listClasses", Who: core.Person, Scope: read},
	{Method: "GET", Path: base + "/catalog/sources", Operation: "listCatalogSources", Who: core.Governor, Scope: read},
	{Method: "POST", Path: base + "/catalog/sources/:id/preview", Operation: "previewSync", Who: core.Administrator, Scope: catalogWrite, Body: 10 << 20},
	{Method: "POST", Path: base + "/catalog/sources/:id/apply", Operation: "applySync", Who: core.Administrator, Scope: catalogWrite, Rule: "the one who made the preview"},
	{Method: "GET", Path: base + "/catalog/entities", Operation: "listEntities", Who: core.Governor, Scope: read},
	{Method: "POST", Path: base + "/catalog/entities", Operation: "putEntity", Who: core.Administrator, Scope: catalogWrite, Rule: "never to the caller's own advantage", Body: 1 << 20},
	{Method: "DELETE", Path: base + "/catalog/entities/:kind/:id", Operation: "deleteEntity", Who: core.Administrator, Scope: catalogWrite},
	{Method: "GET", Path: base + "/workloads", Operation: "listWorkloads", Who: core.Person, Scope: read, Rule: "owners of the application, security, auditors"},
	{Method: "POST", Path: base + "/workloads", Operation: "putWorkloads", Who: core.Registrar, Scope: workloadsWrite, Rule: "owners of the application; platforms, by a token of a security administrator", Body: 2 << 20},
	{Method: "POST", Path: base + "/workloads/sync", Operation: "syncWorkloads", Who: core.Administrator, Scope: workloadsWrite, Body: 32 << 20},
	{Method: "DELETE", Path: base + "/workloads/:id", Operation: "deleteWorkload", Who: core.Changer, Scope: workloadsWrite, Rule: "owners of the application, security, the platform that registered it"},
	{Method: "GET", Path: base + "/ledger", Operation: "listLedger", Who: core.Governor, Scope: ledgerRead},
	{Method: "POST", Path: base + "/ledger/verify", Operation: "verifyLedger", Who: core.Governor, Scope: ledgerRead},
	{Method: "GET", Path: base + "/ledger/export", Operation: "exportLedger", Who: core.Governor, Scope: ledgerRead},
	{Method: "GET", Path: base + "/flows", Operation: "listFlows", Who: core.Person, Scope: read, Rule: "of what the caller owns; all: security, auditors", Costs: &core.BudgetFlows},
	{Method: "GET", Path: base + "/flows/series", Operation: "listFlowSeries", Who: core.Person, Scope: read, Rule: "of what the caller owns; all: security, auditors", Costs: &core.BudgetFlows},
	{Method: "GET", Path: base + "/flows/raw", Operation: "listRawFlows", Who: core.Person, Scope: read, Rule: "of what the caller owns; all, and nodes: security, auditors", Costs: &core.BudgetFlows},
	{Method: "GET", Path: base + "/flows/losses", Operation: "listFlowLosses", Who: core.Person, Scope: read, Rule: "nodes: security, auditors", Costs: &core.BudgetFlows},
	{Method: "GET", Path: base + "/flows/coverage", Operation: "listFlowCoverage", Who: core.Person, Scope: read, Costs: &core.BudgetFlows},
	{Method: "GET", Path: base + "/resources/:id/proposal", Operation: "getResourceProposal", Who: core.Person, Scope: read, Rule: "owners, security, auditors", Costs: &core.BudgetReplays},
	{Method: "GET", Path: base + "/resources/:id/evidence", Operation: "getResourceEvidence", Who: core.Person, Scope: read, Rule: "owners, security, auditors", Costs: &core.BudgetFlows},
	{Method: "GET", Path: base + "/resources/:id/unused", Operation: "listResourceUnused", Who: core.Person, Scope: read, Rule: "owners, security, auditors", Costs: &core.BudgetReplays},
	{Method: "PUT", Path: base + "/resources/:id/temporary-audit", Operation: "putTemporaryAudit", Who: core.Changer, Scope: rolloutWrite, Rule: "owners, security", Costs: &core.BudgetSwitches},
	{Method: "DELETE", Path: base + "/resources/:id/temporary-audit", Operation: "endTemporaryAudit", Who: core.Changer, Scope: rolloutWrite, Rule: "owners, security", Costs: &core.BudgetSwitches},
	{Method: "GET", Path: base + "/applications/:id/unused", Operation: "listApplicationUnused", Who: core.Person, Scope: read, Rule: "owners, security, auditors", Costs: &core.BudgetReplays},
	{Method: "GET", Path: base + "/unused", Operation: "listUnused", Who: core.Person, Scope: read, Rule: "about what the caller owns; all: security, auditors", Costs: &core.BudgetReplays},
	{Method: "GET", Path: base + "/rollout", Operation: "listRollout", Who: core.Person, Scope: read, Rule: "what the caller owns; all: security, auditors", Costs: &core.BudgetFlows},
	{Method: "GET", Path: base + "/rollout/:id", Operation: "getRollout", Who: core.Person, Scope: read, Rule: "owners, security, auditors", Costs: &core.BudgetFlows},
	{Method: "POST", Path: base + "/rollout/announce", Operation: "announceRollout", Who: core.Changer, Scope: rolloutWrite, Rule: "for each: owners, security", Costs: &core.BudgetReplays, Once: true},
	{Method: "POST", Path: base + "/rollout/advance", Operation: "advanceRollout", Who: core.Changer, Scope: write, Rule: "for each: owners, security; overrides: security", Costs: &core.BudgetReplays},
	{Method: "PUT", Path: base + "/rollout/:id/guard", Operation: "putRolloutGuard", Who: core.Changer, Scope: rolloutWrite, Rule: "owners, security", Costs: &core.BudgetSwitches},
	{Method: "POST", Path: base + "/tickets/impact", Operation: "previewImpact", Who: core.Changer, Scope: read, Rule: "as asking for it; lines of what the caller owns", Costs: &core.BudgetReplays},
	{Method: "GET", Path: base + "/tickets/:id/impact", Operation: "getTicketImpact", Who: core.Person, Scope: read, Rule: "who may see the ticket; lines of what the caller owns or decides", Costs: &core.BudgetReplays},
	{Method: "GET", Path: base + "/fleet", Operation: "listFleet", Who: core.Governor, Scope: read},
	{Method: "GET", Path: base + "/fleet/:member", Operation: "getMember", Who: core.Governor, Scope: read},
	{Method: "GET", Path: base + "/access", Operation: "listAccess", Who: core.Governor, Scope: read, Costs: &core.BudgetFlows},
	{Method: "GET", Path: base + "/access/graph", Operation: "getAccessGraph", Who: core.Governor, Scope: read, Costs: &core.BudgetFlows},
	{Method: "GET", Path: base + "/access/path", Operation: "getAccessPath", Who: core.Governor, Scope: read, Costs: &core.BudgetReplays},
	{Method: "GET", Path: base + "/policies", Operation: "listPolicies", Who: core.Governor, Scope: read, Costs: &core.BudgetFlows},
	{Method: "GET", Path: base + "/policies/:name", Operation: "getPolicy", Who: core.Governor, Scope: read, Costs: &core.BudgetFlows},
	{Method: "GET", Path: base + "/findings", Operation: "listFindings", Who: core.Governor, Scope: read, Costs: &core.BudgetFlows},
	{Method: "GET", Path: base + "/downgrade", Operation: "getDowngrade", Who: core.Governor, Scope: read},
	{Method: "POST", Path: base + "/downgrade", Operation: "startDowngrade", Who: core.Administrator, Scope: core.NoToken, Costs: &core.BudgetSwitches},
	{Method: "DELETE", Path: base + "/downgrade", Operation: "resumeDowngrade", Who: core.Administrator, Scope: core.NoToken, Costs: &core.BudgetSwitches},
	{Method: "GET", Path: base + "/events", Operation: "streamEvents", Who: core.Person, Scope: read, Rule: "what the caller may see"},
}
