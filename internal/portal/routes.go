package portal

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/message"
)

const apiBase = "/api/v1"

// who determines who may call a route. It is checked before the body of the request is read. Handlers additionally check the caller
// against each object.
type who int

const (
	anyone        who = iota // also without a login
	person                   // everyone who is logged in
	changer                  // everyone who is logged in, except auditors
	governor                 // security administrators and auditors
	administrator            // security administrators who are not auditors
	registrar                // owners of at least one application, and administrators
)

// The scopes that a token needs for a route. noToken means that only a session of a browser may call it.
const (
	noToken        credential.Scope = ""
	read                            = credential.ScopeRead
	write                           = credential.ScopeTicketsWrite
	decide                          = credential.ScopeTicketsDecide
	catalogWrite                    = credential.ScopeCatalogWrite
	workloadsWrite                  = credential.ScopeWorkloads
	ledgerRead                      = credential.ScopeLedgerRead
	rolloutWrite                    = credential.ScopeRollout
)

type route struct {
	Method, Path, Operation string
	Who                     who
	Scope                   credential.Scope
	Rule                    string  // the handler checks the caller against the object
	Body                    int64   // the maximum size of its body in bytes; 0 for maxBody
	Once                    bool    // the response is stored with the Idempotency-Key; see once
	Programs                bool    // called by programs without credentials; cookies are ignored
	Costs                   *budget // an additional budget, for routes that read much
	Brief                   bool    // frequent, and reads only the ticket store, so that a slow flow store cannot delay it; see inTurn
}

// routes is the table of all routes. A route without a row is refused.
var routes = []route{
	{Method: "GET", Path: "/healthz", Operation: "healthz"},
	{Method: "GET", Path: "/readyz", Operation: "readyz"},
	{Method: "GET", Path: "/auth/login", Operation: "login"},
	{Method: "GET", Path: "/auth/callback", Operation: "callback", Rule: "state, nonce and PKCE of the same browser"},
	{Method: "POST", Path: "/auth/logout", Operation: "logout", Rule: "ends the caller's session"},
	{Method: "GET", Path: apiBase + "/me", Operation: "getMe", Who: person, Scope: read, Rule: "the caller"},
	{Method: "GET", Path: apiBase + "/me/inbox", Operation: "listInbox", Who: person, Scope: read, Rule: "the caller's"},
	{Method: "POST", Path: apiBase + "/me/inbox", Operation: "markInbox", Who: person, Scope: write, Rule: "the caller's"},
	{Method: "GET", Path: apiBase + "/notifications/undelivered", Operation: "listUndelivered", Who: governor, Scope: read},
	{Method: "POST", Path: apiBase + "/notifications/undelivered", Operation: "retryUndelivered", Who: administrator, Scope: noToken},
	{Method: "GET", Path: apiBase + "/me/preferences", Operation: "getPreferences", Who: person, Scope: read, Rule: "the caller's"},
	{Method: "PUT", Path: apiBase + "/me/preferences", Operation: "putPreferences", Who: person, Scope: noToken, Rule: "the caller's"},
	{Method: "GET", Path: apiBase + "/me/tokens", Operation: "listTokens", Who: person, Scope: noToken, Rule: "the caller's"},
	{Method: "POST", Path: apiBase + "/me/tokens", Operation: "createToken", Who: person, Scope: noToken, Rule: "never more than the caller may"},
	{Method: "DELETE", Path: apiBase + "/me/tokens/:id", Operation: "revokeToken", Who: person, Scope: noToken, Rule: "the caller's; a token only itself"},
	{Method: "GET", Path: apiBase + "/me/sessions", Operation: "listSessions", Who: person, Scope: noToken, Rule: "the caller's"},
	{Method: "DELETE", Path: apiBase + "/me/sessions", Operation: "endOtherSessions", Who: person, Scope: noToken, Rule: "the caller's"},
	{Method: "POST", Path: apiBase + "/auth/device", Operation: "startDevice", Programs: true},
	{Method: "GET", Path: apiBase + "/auth/device", Operation: "getDevice", Who: person, Scope: noToken, Rule: "who knows the user code, while it waits"},
	{Method: "POST", Path: apiBase + "/auth/device/token", Operation: "pollDevice", Programs: true, Rule: "who knows the device code"},
	{Method: "POST", Path: apiBase + "/auth/device/approve", Operation: "approveDevice", Who: person, Scope: noToken, Rule: "who knows the user code, while it waits"},
	{Method: "GET", Path: apiBase + "/applications", Operation: "listApplications", Who: person, Scope: read, Rule: "denials: owners, security, auditors"},
	{Method: "GET", Path: apiBase + "/applications/:id", Operation: "getApplication", Who: person, Scope: read, Rule: "denials: owners, security, auditors"},
	{Method: "GET", Path: apiBase + "/applications/:id/access", Operation: "listApplicationAccess", Who: person, Scope: read, Rule: "owners, security, auditors"},
	{Method: "GET", Path: apiBase + "/applications/:id/connections", Operation: "listApplicationConnections", Who: person, Scope: read, Rule: "owners, security, auditors", Costs: &budgetFlows},
	{Method: "GET", Path: apiBase + "/resources", Operation: "listResources", Who: person, Scope: read, Rule: "denials: owners, security, auditors"},
	{Method: "GET", Path: apiBase + "/resources/:id", Operation: "getResource", Who: person, Scope: read, Rule: "denials: owners, security, auditors"},
	{Method: "GET", Path: apiBase + "/resources/:id/access", Operation: "listResourceAccess", Who: person, Scope: read, Rule: "owners, security, auditors; others only rows of their own applications"},
	{Method: "GET", Path: apiBase + "/resources/:id/connections", Operation: "listResourceConnections", Who: person, Scope: read, Rule: "owners, security, auditors; others only rows of their own applications", Costs: &budgetFlows},
	{Method: "GET", Path: apiBase + "/search", Operation: "search", Who: person, Scope: read, Brief: true, Rule: "the catalog; tickets that the caller may see"},
	{Method: "GET", Path: apiBase + "/people", Operation: "listPeople", Who: person, Scope: read},
	{Method: "GET", Path: apiBase + "/people/:id", Operation: "getPerson", Who: person, Scope: read},
	{Method: "GET", Path: apiBase + "/groups", Operation: "listGroups", Who: person, Scope: read},
	{Method: "GET", Path: apiBase + "/tickets", Operation: "listTickets", Who: person, Scope: read, Brief: true, Rule: "requester, approvers, owners, security, auditors"},
	{Method: "POST", Path: apiBase + "/tickets", Operation: "createTicket", Who: changer, Scope: write, Rule: "owners of the application"},
	{Method: "POST", Path: apiBase + "/tickets/preview", Operation: "previewTicket", Who: changer, Scope: read, Rule: "owners of the application"},
	{Method: "GET", Path: apiBase + "/tickets/:id", Operation: "getTicket", Who: person, Scope: read, Rule: "requester, approvers, owners, security, auditors"},
	{Method: "POST", Path: apiBase + "/tickets/:id/decision", Operation: "decideTicket", Who: changer, Scope: decide, Rule: "approvers of the step that waits, never the requester"},
	{Method: "POST", Path: apiBase + "/tickets/:id/withdraw", Operation: "withdrawTicket", Who: changer, Scope: write, Rule: "the requester"},
	{Method: "POST", Path: apiBase + "/tickets/:id/revoke", Operation: "revokeTicket", Who: changer, Scope: write, Rule: "owners of the resource or the application, security"},
	{Method: "POST", Path: apiBase + "/tickets/:id/comments", Operation: "commentTicket", Who: changer, Scope: write, Rule: "who may see the ticket", Once: true},
	{Method: "GET", Path: apiBase + "/tickets/:id/change", Operation: "getTicketChange", Who: person, Scope: read, Rule: "who may see the ticket"},
	{Method: "GET", Path: apiBase + "/tickets/:id/ledger", Operation: "listTicketLedger", Who: person, Scope: read, Rule: "who may see the ticket"},
	{Method: "POST", Path: apiBase + "/tickets/:id/review", Operation: "reviewTicket", Who: changer, Scope: decide, Rule: "reviewers, never the requester"},
	{Method: "POST", Path: apiBase + "/tickets/decisions", Operation: "decideMany", Who: changer, Scope: decide, Rule: "for each: approvers of the step that waits, never the requester"},
	{Method: "POST", Path: apiBase + "/tickets/what-if", Operation: "whatIf", Who: person, Scope: read, Rule: "for others: security, auditors"},
	{Method: "GET", Path: apiBase + "/delegations", Operation: "listDelegations", Who: person, Scope: read, Rule: "from and to the caller; all: security, auditors"},
	{Method: "POST", Path: apiBase + "/delegations", Operation: "createDelegation", Who: changer, Scope: noToken, Rule: "in the caller's own place", Once: true},
	{Method: "DELETE", Path: apiBase + "/delegations/:id", Operation: "endDelegation", Who: changer, Scope: noToken, Rule: "both sides, security"},
	{Method: "GET", Path: apiBase + "/home", Operation: "getHome", Who: person, Scope: read, Rule: "the caller's"},
	{Method: "GET", Path: apiBase + "/approval-policies", Operation: "listApprovalPolicies", Who: person, Scope: read, Rule: "who may break the glass: security, auditors"},
	{Method: "GET", Path: apiBase + "/approval-policies/:id", Operation: "getApprovalPolicy", Who: person, Scope: read, Rule: "YAML: security, auditors"},
	{Method: "GET", Path: apiBase + "/classes", Operation: "listClasses", Who: person, Scope: read},
	{Method: "GET", Path: apiBase + "/catalog/sources", Operation: "listCatalogSources", Who: governor, Scope: read},
	{Method: "POST", Path: apiBase + "/catalog/sources/:id/preview", Operation: "previewSync", Who: administrator, Scope: catalogWrite, Body: 10 << 20},
	{Method: "POST", Path: apiBase + "/catalog/sources/:id/apply", Operation: "applySync", Who: administrator, Scope: catalogWrite, Rule: "the one who made the preview"},
	{Method: "GET", Path: apiBase + "/catalog/entities", Operation: "listEntities", Who: governor, Scope: read},
	{Method: "POST", Path: apiBase + "/catalog/entities", Operation: "putEntity", Who: administrator, Scope: catalogWrite, Rule: "never to the caller's own advantage", Body: 1 << 20},
	{Method: "DELETE", Path: apiBase + "/catalog/entities/:kind/:id", Operation: "deleteEntity", Who: administrator, Scope: catalogWrite},
	{Method: "GET", Path: apiBase + "/workloads", Operation: "listWorkloads", Who: person, Scope: read, Rule: "owners of the application, security, auditors"},
	{Method: "POST", Path: apiBase + "/workloads", Operation: "putWorkloads", Who: registrar, Scope: workloadsWrite, Rule: "owners of the application; platforms, by a token of a security administrator", Body: 2 << 20},
	{Method: "POST", Path: apiBase + "/workloads/sync", Operation: "syncWorkloads", Who: administrator, Scope: workloadsWrite, Body: 32 << 20},
	{Method: "DELETE", Path: apiBase + "/workloads/:id", Operation: "deleteWorkload", Who: changer, Scope: workloadsWrite, Rule: "owners of the application, security, the platform that registered it"},
	{Method: "GET", Path: apiBase + "/ledger", Operation: "listLedger", Who: governor, Scope: ledgerRead},
	{Method: "POST", Path: apiBase + "/ledger/verify", Operation: "verifyLedger", Who: governor, Scope: ledgerRead},
	{Method: "GET", Path: apiBase + "/ledger/export", Operation: "exportLedger", Who: governor, Scope: ledgerRead},
	{Method: "GET", Path: apiBase + "/flows", Operation: "listFlows", Who: person, Scope: read, Rule: "of what the caller owns; all: security, auditors", Costs: &budgetFlows},
	{Method: "GET", Path: apiBase + "/flows/series", Operation: "listFlowSeries", Who: person, Scope: read, Rule: "of what the caller owns; all: security, auditors", Costs: &budgetFlows},
	{Method: "GET", Path: apiBase + "/flows/raw", Operation: "listRawFlows", Who: person, Scope: read, Rule: "of what the caller owns; all, and nodes: security, auditors", Costs: &budgetFlows},
	{Method: "GET", Path: apiBase + "/flows/losses", Operation: "listFlowLosses", Who: person, Scope: read, Rule: "nodes: security, auditors", Costs: &budgetFlows},
	{Method: "GET", Path: apiBase + "/flows/coverage", Operation: "listFlowCoverage", Who: person, Scope: read, Costs: &budgetFlows},
	{Method: "GET", Path: apiBase + "/resources/:id/proposal", Operation: "getResourceProposal", Who: person, Scope: read, Rule: "owners, security, auditors", Costs: &budgetReplays},
	{Method: "GET", Path: apiBase + "/resources/:id/evidence", Operation: "getResourceEvidence", Who: person, Scope: read, Rule: "owners, security, auditors", Costs: &budgetFlows},
	{Method: "GET", Path: apiBase + "/resources/:id/unused", Operation: "listResourceUnused", Who: person, Scope: read, Rule: "owners, security, auditors", Costs: &budgetReplays},
	{Method: "PUT", Path: apiBase + "/resources/:id/temporary-audit", Operation: "putTemporaryAudit", Who: changer, Scope: rolloutWrite, Rule: "owners, security", Costs: &budgetSwitches},
	{Method: "DELETE", Path: apiBase + "/resources/:id/temporary-audit", Operation: "endTemporaryAudit", Who: changer, Scope: rolloutWrite, Rule: "owners, security", Costs: &budgetSwitches},
	{Method: "GET", Path: apiBase + "/applications/:id/unused", Operation: "listApplicationUnused", Who: person, Scope: read, Rule: "owners, security, auditors", Costs: &budgetReplays},
	{Method: "GET", Path: apiBase + "/unused", Operation: "listUnused", Who: person, Scope: read, Rule: "about what the caller owns; all: security, auditors", Costs: &budgetReplays},
	{Method: "GET", Path: apiBase + "/rollout", Operation: "listRollout", Who: person, Scope: read, Rule: "what the caller owns; all: security, auditors", Costs: &budgetFlows},
	{Method: "GET", Path: apiBase + "/rollout/:id", Operation: "getRollout", Who: person, Scope: read, Rule: "owners, security, auditors", Costs: &budgetFlows},
	{Method: "POST", Path: apiBase + "/rollout/announce", Operation: "announceRollout", Who: changer, Scope: rolloutWrite, Rule: "for each: owners, security", Costs: &budgetReplays, Once: true},
	{Method: "POST", Path: apiBase + "/rollout/advance", Operation: "advanceRollout", Who: changer, Scope: write, Rule: "for each: owners, security; overrides: security", Costs: &budgetReplays},
	{Method: "PUT", Path: apiBase + "/rollout/:id/guard", Operation: "putRolloutGuard", Who: changer, Scope: rolloutWrite, Rule: "owners, security", Costs: &budgetSwitches},
	{Method: "POST", Path: apiBase + "/tickets/impact", Operation: "previewImpact", Who: changer, Scope: read, Rule: "as asking for it; lines of what the caller owns", Costs: &budgetReplays},
	{Method: "GET", Path: apiBase + "/tickets/:id/impact", Operation: "getTicketImpact", Who: person, Scope: read, Rule: "who may see the ticket; lines of what the caller owns or decides", Costs: &budgetReplays},
	{Method: "GET", Path: apiBase + "/fleet", Operation: "listFleet", Who: governor, Scope: read},
	{Method: "GET", Path: apiBase + "/fleet/:member", Operation: "getMember", Who: governor, Scope: read},
	{Method: "GET", Path: apiBase + "/access", Operation: "listAccess", Who: governor, Scope: read, Costs: &budgetFlows},
	{Method: "GET", Path: apiBase + "/access/graph", Operation: "getAccessGraph", Who: governor, Scope: read, Costs: &budgetFlows},
	{Method: "GET", Path: apiBase + "/access/path", Operation: "getAccessPath", Who: governor, Scope: read, Costs: &budgetReplays},
	{Method: "GET", Path: apiBase + "/policies", Operation: "listPolicies", Who: governor, Scope: read, Costs: &budgetFlows},
	{Method: "GET", Path: apiBase + "/policies/:name", Operation: "getPolicy", Who: governor, Scope: read, Costs: &budgetFlows},
	{Method: "GET", Path: apiBase + "/findings", Operation: "listFindings", Who: governor, Scope: read, Costs: &budgetFlows},
	{Method: "GET", Path: apiBase + "/downgrade", Operation: "getDowngrade", Who: governor, Scope: read},
	{Method: "POST", Path: apiBase + "/downgrade", Operation: "startDowngrade", Who: administrator, Scope: noToken, Costs: &budgetSwitches},
	{Method: "DELETE", Path: apiBase + "/downgrade", Operation: "resumeDowngrade", Who: administrator, Scope: noToken, Costs: &budgetSwitches},
	{Method: "GET", Path: apiBase + "/events", Operation: "streamEvents", Who: person, Scope: read, Rule: "what the caller may see"},
}

var routeByPath = func() map[string]route {
	m := map[string]route{}
	for _, r := range routes {
		m[r.Method+" "+r.Path] = r
	}
	return m
}()

// currentToken is the id that stands for the token of the call, which a command line uses to log out.
const currentToken = "current"

// guard checks requests against the table before any handler runs. Other paths are passed to the web application.
func (s *Server) guard(c *gin.Context) {
	if c.FullPath() == "" {
		return
	}
	r, ok := routeByPath[c.Request.Method+" "+c.FullPath()]
	t := tokenOf(c)
	switch {
	case !ok:
		s.fail(c, forbidden(message.CallNobody()))
	case r.Who == anyone:
	case caller(c) == nil:
		s.fail(c, newProblem(http.StatusUnauthorized, "unauthenticated", message.CallLoginFirst()))
	case t != nil && r.Operation == "revokeToken" && c.Param("id") == currentToken:
	case t != nil && r.Scope == noToken:
		s.fail(c, newProblem(http.StatusForbidden, "scope", message.CallBrowserOnly()))
	case t != nil && !t.Has(r.Scope):
		s.fail(c, newProblem(http.StatusForbidden, "scope", message.CallScopeMissing(string(r.Scope))))
	default:
		if err := s.mayCall(r.Who, *caller(c)); err != nil {
			s.fail(c, err)
		}
	}
}

// mayCall returns the reason why a logged-in caller may not call the route of a row, or nil if they may.
func (s *Server) mayCall(w who, a approval.Actor) error {
	switch w {
	case anyone, person:
		return nil
	case governor:
		return governs(a)
	case changer, administrator, registrar:
	default:
		return forbidden(message.CallNobody())
	}
	switch {
	case a.Auditor:
		return approval.AuditorsOnlyRead()
	case w == administrator && !a.Security:
		return forbidden(message.AccessSecurityOnly())
	case w == registrar && !a.Security:
		if applications, _ := s.Catalog().Owned(a.ID); len(applications) == 0 {
			return forbidden(message.AccessOwnerOrSecurityOnly())
		}
	}
	return nil
}

func forbidden(m message.Message) error {
	return &approval.Error{Code: approval.CodeForbidden, Message: m}
}
