package rollout

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/organization"
)

// Host is a cached view of the host cluster.
type Host interface {
	// Protection returns the protection of a resource by name; nil if it is not onboarded, or not read yet.
	Protection(resource string) *v1alpha1.ProtectedResource
	// ResourceClasses returns all resource classes, which must not be changed; false if they were not read yet.
	ResourceClasses() ([]*v1alpha1.ResourceClass, bool)
}

// Config is the configuration of a Service; all fields are required.
type Config struct {
	Store   Store
	Writer  HostWriter
	Host    Host
	Catalog func() *catalog.Catalog
	// Organizations returns the organizations of the host cluster.
	Organizations func() (*organization.Index, error)
	Now           func() time.Time
	Log           *slog.Logger
}

// Service contains the operations on rollouts, except changes of modes.
type Service struct{ Config }

// NewService returns a Service.
func NewService(c Config) *Service { return &Service{c} }

// MayChange reports whether an actor may change the rollout of a resource: its owners and the security team.
func MayChange(c *catalog.Catalog, a approval.Actor, e catalog.Entity) bool {
	return !a.Auditor && (a.Security || c.Owns(a.ID, e))
}

func (s *Service) allowed(a approval.Actor, e catalog.Entity) error {
	switch {
	case a.Auditor:
		return approval.AuditorsOnlyRead()
	case !MayChange(s.Catalog(), a, e):
		return fail(approval.CodeForbidden, message.RolloutOwnerOrSecurity(e.Title))
	}
	return nil
}

// protection returns the protection of an onboarded resource.
func (s *Service) protection(e catalog.Entity) (*v1alpha1.ProtectedResource, error) {
	p := s.Host.Protection(e.Name)
	if p == nil {
		return nil, fail(approval.CodeConflict, message.RequestNotOnboarded(e.Title))
	}
	return p, nil
}

// ownersAndSecurity returns the owners of a resource and the security team, who are notified about it.
func ownersAndSecurity(c *catalog.Catalog, e catalog.Entity) map[string][]notify.About {
	out := map[string][]notify.About{}
	for _, p := range slices.Concat(c.OwnerPeople(e), c.Members(catalog.GroupSecurity)) {
		out[p] = nil
	}
	return out
}

// line returns a ledger line about a resource.
func line(at time.Time, actor, action string, e catalog.Entity, details map[string]string) ledger.Entry {
	details["resource"] = e.Name
	return ledger.Entry{At: at, Actor: actor, Action: action, Object: e.ID, Details: details}
}

// resourceEvent returns an event of a resource.
func resourceEvent(at time.Time, what string, e catalog.Entity, f notify.Facts, people map[string][]notify.About) notify.ResourceEvent {
	f.Event, f.Page = what, "resources/"+e.ID
	if len(f.Items) == 0 {
		f.Items = []notify.About{{Resource: e.Title}}
	}
	return notify.ResourceEvent{Event: fmt.Sprintf("%s/%s/%d", e.ID, what, at.UnixNano()), At: at, Facts: f, People: people}
}

// hostError converts an error of the host cluster about a resource or a class with a title into an error for the caller.
func hostError(title string, err error) error {
	var refused *approval.RefusedError
	var ours *approval.Error
	switch {
	case err == nil, errors.As(err, &ours):
		return err
	case errors.Is(err, ErrGone):
		return fail(approval.CodeConflict, message.RequestNotOnboarded(title))
	case errors.Is(err, ErrChanged):
		return fail(approval.CodeStale, message.RolloutChangedMeanwhile(title))
	case errors.As(err, &refused):
		return fail(approval.CodeInvalid, message.HostRefuses(refused.Message))
	}
	return &approval.Error{Code: approval.CodeUnavailable, Message: message.HostUnreachable(), Err: err}
}

func fail(code approval.Code, m message.Message) error {
	return &approval.Error{Code: code, Message: m}
}

func invalid(field string, m message.Message) error {
	return &approval.Error{Code: approval.CodeInvalid, Message: m, Fields: []approval.Field{{Path: field, Code: "invalid", Message: m}}}
}
