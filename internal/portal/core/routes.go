package core

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/message"
)

// APIBase is the path of the API.
const APIBase = "/api/v1"

// Callers determines who may call a route. It is checked before the body of the request is read. Handlers additionally check the caller
// against each object.
type Callers int

const (
	// Anyone admits every caller, also without a login.
	Anyone Callers = iota
	// Person admits every caller with a login.
	Person
	// Changer admits every caller with a login, except auditors.
	Changer
	// Governor admits security administrators and auditors.
	Governor
	// Administrator admits security administrators who are not auditors.
	Administrator
	// Registrar admits owners of at least one application, and administrators.
	Registrar
	// CatalogEditor admits security administrators, and administrators of an organization that has a part of the catalog. Neither may be
	// an auditor.
	CatalogEditor
)

// NoToken is the scope of routes that only a session of a browser may call.
const NoToken credential.Scope = ""

// Route is a row of the route table.
type Route struct {
	Method, Path, Operation string
	Who                     Callers
	Scope                   credential.Scope
	Rule                    string  // the handler checks the caller against the object
	Body                    int64   // the maximum size of its body in bytes; 0 for MaxBody
	Media                   string  // a media type of its body in addition to application/json
	Raw                     bool    // its handler verifies the signature of the body before it parses it, so the body is not checked as JSON
	RecentLogin             bool    // a session needs a recent login: the route changes who decides, or lets clients connect; see approval.Service.CheckLogin
	Once                    bool    // the response is stored with the Idempotency-Key; see executeOnce
	Programs                bool    // called by programs without credentials; cookies are ignored
	Costs                   *Budget // an additional budget, for routes that read much
	Brief                   bool    // frequent, and reads only the ticket store, so that a slow flow store cannot delay it; see limitBrief
}

// routeOf returns the row of the route of a request, and false if the table has none.
func (s *Server) routeOf(c *gin.Context) (Route, bool) {
	r, ok := s.table[c.Request.Method+" "+c.FullPath()]
	return r, ok
}

// CurrentToken is the id that stands for the token of the call, which a command line uses to log out.
const CurrentToken = "current"

// guard checks requests against the table before any handler runs. Other paths are passed to the web application.
func (s *Server) guard(c *gin.Context) {
	if c.FullPath() == "" {
		return
	}
	r, ok := s.routeOf(c)
	t := Token(c)
	switch {
	case !ok:
		s.fail(c, Forbidden(message.CallNobody()))
	case r.Who == Anyone:
	case caller(c) == nil:
		s.fail(c, NewProblem(http.StatusUnauthorized, "unauthenticated", message.CallLoginFirst()))
	case t != nil && r.Operation == "revokeToken" && c.Param("id") == CurrentToken:
	case t != nil && r.Scope == NoToken:
		s.fail(c, NewProblem(http.StatusForbidden, "scope", message.CallBrowserOnly()))
	case t != nil && !t.Has(r.Scope):
		s.fail(c, NewProblem(http.StatusForbidden, "scope", message.CallScopeMissing(string(r.Scope))))
	default:
		err := s.mayCall(r.Who, *caller(c))
		if err == nil && r.RecentLogin {
			err = s.Tickets.CheckLogin(*caller(c))
		}
		if err != nil {
			s.fail(c, err)
		}
	}
}

// mayCall returns the reason why a logged-in caller may not call the route of a row, or nil if they may.
func (s *Server) mayCall(w Callers, a approval.Actor) error {
	switch w {
	case Anyone, Person:
		return nil
	case Governor:
		return RequireGovernor(a)
	case Changer, Administrator, Registrar, CatalogEditor:
	default:
		return Forbidden(message.CallNobody())
	}
	switch {
	case a.Auditor:
		return approval.AuditorsOnlyRead()
	case w == Administrator && !a.Security:
		return Forbidden(message.AccessSecurityOnly())
	case w == Registrar && !a.Security:
		if applications, _ := s.Catalog().Owned(a.ID); len(applications) == 0 {
			return Forbidden(message.AccessOwnerOrSecurityOnly())
		}
	case w == CatalogEditor && !a.Security:
		switch delegate, err := s.Tickets.CatalogDelegate(a.ID); {
		case err != nil:
			return err
		case delegate == nil:
			return Forbidden(message.CatalogAdministratorsOnly())
		}
	}
	return nil
}

// RequireGovernor returns an error unless the person may see the whole fleet: the security team and auditors.
func RequireGovernor(who approval.Actor) error {
	if who.Security || who.Auditor {
		return nil
	}
	return Forbidden(message.AccessSecurityAndAuditors())
}
