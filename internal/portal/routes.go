package portal

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/acp-io/acp/internal/approval"
)

const apiBase = "/api/v1"

// who may call a route at all. What somebody sees or changes of an object is decided again with the object in hand.
type who int

const (
	anyone  who = iota // also without a login
	person             // everyone who is logged in
	changer            // everyone who is logged in, but auditors
)

type route struct {
	Method, Path, Operation string
	Who                     who
	Rule                    string // what is decided with the object in hand
}

// routes is every route that the portal has, on one screen. A route without a row is refused.
var routes = []route{
	{"GET", "/healthz", "healthz", anyone, ""},
	{"GET", "/readyz", "readyz", anyone, ""},
	{"GET", "/auth/login", "login", anyone, ""},
	{"GET", "/auth/callback", "callback", anyone, "state, nonce and PKCE of the same browser"},
	{"POST", "/auth/logout", "logout", anyone, "ends the caller's session"},
	{"GET", apiBase + "/me", "getMe", person, "the caller"},
	{"GET", apiBase + "/applications", "listApplications", person, "denials: owners, security, auditors"},
	{"GET", apiBase + "/applications/:id", "getApplication", person, "denials: owners, security, auditors"},
	{"GET", apiBase + "/applications/:id/access", "listApplicationAccess", person, "owners, security, auditors"},
	{"GET", apiBase + "/applications/:id/connections", "listApplicationConnections", person, "owners, security, auditors"},
	{"GET", apiBase + "/resources", "listResources", person, "denials: owners, security, auditors"},
	{"GET", apiBase + "/resources/:id", "getResource", person, "denials: owners, security, auditors"},
	{"GET", apiBase + "/resources/:id/access", "listResourceAccess", person, "owners, security, auditors; others only rows of their own applications"},
	{"GET", apiBase + "/resources/:id/connections", "listResourceConnections", person, "owners, security, auditors; others only rows of their own applications"},
	{"GET", apiBase + "/tickets", "listTickets", person, "requester, approvers, owners, security, auditors"},
	{"POST", apiBase + "/tickets", "createTicket", changer, "owners of the application"},
	{"POST", apiBase + "/tickets/preview", "previewTicket", changer, "owners of the application"},
	{"GET", apiBase + "/tickets/:id", "getTicket", person, "requester, approvers, owners, security, auditors"},
	{"POST", apiBase + "/tickets/:id/decision", "decideTicket", changer, "approvers of the step that waits, never the requester"},
	{"POST", apiBase + "/tickets/:id/withdraw", "withdrawTicket", changer, "the requester"},
	{"POST", apiBase + "/tickets/:id/revoke", "revokeTicket", changer, "owners of the resource or the application, security"},
	{"GET", apiBase + "/events", "streamEvents", person, "what the caller may see"},
}

var routeByPath = func() map[string]route {
	m := map[string]route{}
	for _, r := range routes {
		m[r.Method+" "+r.Path] = r
	}
	return m
}()

// guard refuses by the table, before any handler runs. Paths that are no routes go on to the web application.
func (s *Server) guard(c *gin.Context) {
	if c.FullPath() == "" {
		return
	}
	r, ok := routeByPath[c.Request.Method+" "+c.FullPath()]
	switch {
	case !ok:
		s.fail(c, problemf(http.StatusForbidden, "forbidden", "Nobody may call this."))
	case r.Who == anyone:
	case caller(c) == nil:
		s.fail(c, problemf(http.StatusUnauthorized, "unauthenticated", "Log in first."))
	case r.Who == changer && caller(c).Auditor:
		s.fail(c, &approval.Error{Code: approval.CodeForbidden, Detail: "Auditors read everything and change nothing."})
	}
}
