package rollout

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
)

// Limits of a temporary audit, as in api/openapi.yaml.
const (
	// MaxTemporaryAudit is the maximum remaining duration of a temporary audit; it can be extended again.
	MaxTemporaryAudit = 7 * 24 * time.Hour
	// maxReason is the maximum length of the reason in characters, as in the CRD.
	maxReason = 1024
)

// GuardName is the actor of temporary audits that the guard began. It cannot be a person of the catalog, because their
// ids contain no colon.
const GuardName = "acp:rollout-guard"

// TemporaryAuditRequest contains what a person enters to begin the temporary audit of a resource, or of all resources in the scope of a
// downgrade.
type TemporaryAuditRequest struct {
	Until  time.Time
	Reason string
	// Version is the version of the object that the person saw, or empty for any. A downgrade ignores it.
	Version string
}

// BeginTemporaryAudit lets all connections to a resource pass from now on until an instant. A further call replaces the instant.
func (s *Service) BeginTemporaryAudit(
	ctx context.Context,
	a approval.Actor,
	e catalog.Entity,
	want TemporaryAuditRequest,
) (*v1alpha1.ProtectedResource, error) {
	if err := s.allowed(a, e); err != nil {
		return nil, err
	}
	reason, err := reasonOf(want.Reason, message.AuditReasonNeeded())
	if err != nil {
		return nil, err
	}
	now := s.Now()
	until := want.Until.UTC().Truncate(time.Second) // what the object can say
	switch {
	case !until.After(now):
		return nil, invalid("until", message.AuditEndInPast())
	case until.Sub(now) > MaxTemporaryAudit:
		return nil, invalid("until", message.AuditTooLong())
	}
	return s.begin(ctx, a.ID, e, want.Version, &v1alpha1.TemporaryAudit{Until: metav1.NewTime(until), Reason: reason, By: a.ID}, message.Message{})
}

// begin is what people and the guard have in common. The ledger has the line before the host cluster has the change, so
// that nothing is opened without a record. The reason is the audit's as a message if the guard begins it; zero if a person does.
func (s *Service) begin(
	ctx context.Context,
	actor string,
	e catalog.Entity,
	version string,
	audit *v1alpha1.TemporaryAudit,
	reason message.Message,
) (*v1alpha1.ProtectedResource, error) {
	p, err := s.protection(e)
	if err != nil {
		return nil, err
	}
	recorded := false
	out, err := s.Writer.SetTemporaryAudit(ctx, p.Name, version, audit, func(ctx context.Context, spec v1alpha1.ProtectedResourceSpec) error {
		if !Enforces(spec) {
			return fail(approval.CodeConflict, message.AuditNothingEnforced(e.Title))
		}
		if recorded {
			return nil
		}
		recorded = true
		return s.Store.Record(ctx, s.begun(actor, e, spec, audit, reason))
	})
	if err != nil {
		return nil, s.recordFailure(ctx, actor, e, recorded, err)
	}
	return out, nil
}

func (s *Service) begun(actor string, e catalog.Entity, spec v1alpha1.ProtectedResourceSpec, audit *v1alpha1.TemporaryAudit, reason message.Message) News {
	now := s.Now()
	details := map[string]string{"until": audit.Until.UTC().Format(time.RFC3339), "reason": audit.Reason}
	if actor == "" {
		details["by"] = audit.By
		ledger.SetMessage(details, "reason", reason)
	}
	if old := spec.TemporaryAudit; old != nil && now.Before(old.Until.Time) {
		details["before"] = old.Until.UTC().Format(time.RFC3339)
	}
	n := News{}
	n.Entries = append(n.Entries, line(now, actor, "resource.temporary-audit", e, details))
	if actor != "" { // the guard sends its own message
		n.ResourceEvents = append(n.ResourceEvents, resourceEvent(now, notify.EventTemporaryAudit, e,
			notify.Facts{ActorID: actor, Reason: audit.Reason, Until: audit.Until.UTC()}, ownersAndSecurity(s.Catalog(), e)))
	}
	return n
}

// EndTemporaryAudit ends the temporary audit of a resource, so that its own mode counts again.
func (s *Service) EndTemporaryAudit(ctx context.Context, a approval.Actor, e catalog.Entity, reason, version string) (*v1alpha1.ProtectedResource, error) {
	if err := s.allowed(a, e); err != nil {
		return nil, err
	}
	reason, err := reasonOf(reason, message.AuditEndReasonNeeded())
	if err != nil {
		return nil, err
	}
	p, err := s.protection(e)
	if err != nil {
		return nil, err
	}
	recorded := false
	out, err := s.Writer.SetTemporaryAudit(ctx, p.Name, version, nil, func(ctx context.Context, spec v1alpha1.ProtectedResourceSpec) error {
		now := s.Now()
		if !InTemporaryAudit(spec, now) {
			return fail(approval.CodeConflict, message.AuditNotInAudit(e.Title))
		}
		if recorded {
			return nil
		}
		recorded = true
		return s.Store.Record(ctx, News{
			Entries: []ledger.Entry{line(now, a.ID, "resource.temporary-audit-ended", e, map[string]string{"reason": reason})},
			ResourceEvents: []notify.ResourceEvent{resourceEvent(now, notify.EventTemporaryAuditEnded, e, notify.Facts{ActorID: a.ID, Reason: reason},
				ownersAndSecurity(s.Catalog(), e))},
		})
	})
	if err != nil {
		return nil, s.recordFailure(ctx, a.ID, e, recorded, err)
	}
	return out, nil
}

// recordFailure adds to the ledger that a temporary audit did not begin or end although the ledger has a line about it, and returns the
// error for the caller.
func (s *Service) recordFailure(ctx context.Context, actor string, e catalog.Entity, recorded bool, why error) error {
	if recorded {
		n := News{Entries: []ledger.Entry{line(s.Now(), actor, "resource.temporary-audit-failed", e, map[string]string{})}}
		if err := s.Store.Record(context.WithoutCancel(ctx), n); err != nil {
			s.Log.Error("the failure of a temporary audit could not be recorded", "resource", e.Name, "error", err)
		}
	}
	return hostError(e.Title, why)
}

// InTemporaryAudit reports whether a resource is in temporary audit at an instant.
func InTemporaryAudit(spec v1alpha1.ProtectedResourceSpec, now time.Time) bool {
	return spec.TemporaryAudit != nil && now.Before(spec.TemporaryAudit.Until.Time)
}

// Enforces reports whether any member would enforce, were there no temporary audit.
func Enforces(spec v1alpha1.ProtectedResourceSpec) bool {
	for _, m := range append([]v1alpha1.ClusterMode{{Mode: spec.Mode}}, spec.ClusterModes...) {
		if m.Mode == v1alpha1.ModeEnforce {
			return true
		}
	}
	return false
}

func reasonOf(text string, why message.Message) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", invalid("reason", why)
	}
	if utf8.RuneCountInString(text) > maxReason {
		return "", invalid("reason", message.RolloutReasonLength(maxReason))
	}
	return text, nil
}
