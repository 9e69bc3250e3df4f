package rollout

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
)

// FleetDowngradeRun is the progress of beginning a fleet downgrade, or of ending one (Resume), over the resources in its scope.
type FleetDowngradeRun struct {
	Scope       FleetDowngradeScope
	Resume      bool
	Until       time.Time // zero with Resume
	By          string
	StartedAt   time.Time
	FinishedAt  time.Time // zero while it is running
	Total, Done int
	Failed      []FleetDowngradeFailure // the first failures
	FailedTotal int
}

// FleetDowngradeFailure is a resource whose temporary audit could not be begun or ended in a run, with the reason.
type FleetDowngradeFailure struct {
	Resource string
	Message  message.Message
}

type fleetDowngradeRun struct {
	id     string             // of its lease
	before *fleetDowngradeRun // the last run before it, until it has begun; see FleetDowngrader.mu

	mu sync.Mutex
	FleetDowngradeRun
	unknown  bool // it is not known whether a write was made
	finished chan struct{}
	err      error // why it did not begin; written before finished is closed
}

// wait returns the state of a run when it has finished, or when the context ends. The run then continues, and the next call reports on it.
func (r *fleetDowngradeRun) wait(ctx context.Context) (FleetDowngradeRun, error) {
	select {
	case <-r.finished:
		if r.err != nil {
			return FleetDowngradeRun{}, r.err
		}
	case <-ctx.Done():
	}
	return r.state(), nil
}

func (r *fleetDowngradeRun) state() FleetDowngradeRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.FleetDowngradeRun
	out.Failed = slices.Clone(out.Failed)
	return out
}

func (r *fleetDowngradeRun) fail(o *v1alpha1.ProtectedResource, err error) {
	why := message.HostUnreachable()
	var ours *approval.Error
	if errors.As(err, &ours) {
		why = ours.Message
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.FailedTotal++; len(r.Failed) < maxListedFailures {
		r.Failed = append(r.Failed, FleetDowngradeFailure{Resource: string(o.Spec.Resource), Message: why})
	}
}

// setUnknown records that it is not known whether a write was made.
func (r *fleetDowngradeRun) setUnknown() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unknown = true
}

// fleetDowngradeObject is the object of ledger lines about a whole fleet downgrade.
const fleetDowngradeObject = "downgrade"

// entityOf returns the catalog entity of an object; one that the catalog lacks is represented by its name.
func (d *FleetDowngrader) entityOf(o *v1alpha1.ProtectedResource) catalog.Entity {
	if e, ok := d.Catalog().ByName(string(o.Spec.Resource)); ok {
		return e
	}
	return catalog.Entity{ID: o.Name, Name: string(o.Spec.Resource), Title: string(o.Spec.Resource)}
}

func (d *FleetDowngrader) lineOf(actor, action string, o *v1alpha1.ProtectedResource, details map[string]string) ledger.Entry {
	own := make(map[string]string, len(details)+1)
	for k, v := range details {
		own[k] = v
	}
	return line(d.Now(), actor, action, d.entityOf(o), own)
}

// news returns the records of a run as a whole: one ledger line, a notification to the security team, and one to each
// owner about their resources.
func (d *FleetDowngrader) news(r FleetDowngradeRun, reason string, objects []*v1alpha1.ProtectedResource) News {
	c, now := d.Catalog(), d.Now()
	what, action := notify.EventFleetDowngrade, "downgrade.begun"
	details := map[string]string{"scope": r.Scope.String(), "resources": strconv.Itoa(len(objects)), "reason": reason}
	if r.Resume {
		what, action = notify.EventFleetDowngradeEnded, "downgrade.ended"
	} else {
		details["until"] = r.Until.Format(time.RFC3339)
	}
	out := News{Entries: []ledger.Entry{{At: now, Actor: r.By, Action: action, Object: fleetDowngradeObject, Details: details}}}
	if len(objects) == 0 {
		return out
	}
	people := map[string][]notify.About{}
	for _, p := range c.Members(catalog.GroupSecurity) {
		people[p] = nil // everything
	}
	var all []notify.About
	for _, o := range objects {
		e := d.entityOf(o)
		item := notify.About{Resource: e.Title}
		all = append(all, item)
		for _, p := range c.OwnerPeople(e) {
			if own, known := people[p]; !known || own != nil {
				people[p] = append(own, item)
			}
		}
	}
	out.ResourceEvents = []notify.ResourceEvent{{Event: what + "/" + strconv.FormatInt(now.UnixNano(), 10), At: now, People: people,
		Facts: notify.Facts{Event: what, ActorID: r.By, Reason: reason, Until: r.Until, Count: int64(len(objects)), Items: all, Page: "resources"}}}
	return out
}
