// Package triggers maps events on the host and in the members to the resources, policies and subjects to reconcile.
package triggers

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/backlog"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// Units maps events about policies to the units to reconcile. All fields are set before the manager starts.
type Units struct {
	Cache   *policycache.Cache
	Reports *statuscache.Cache
	Queue   *requestqueue.Queue
	// Fleet are the members as they are read for Cilium's policies, which determines whether they are reachable.
	Fleet *federation.Fleet
	// Stores are the objects of every kind of policy.
	Stores  federation.KindStores
	Backlog *backlog.Tracker
	// RecheckForeign is called when policies of others must be evaluated again: in a member, or in all members for "".
	RecheckForeign func(cluster string)
	// ReadLabels is called when the host's objects were listed.
	ReadLabels func()
	// FleetChanged is called when a member was registered, lost or found again.
	FleetChanged func()
	// Pauses is the clock of the time between two passes over all units; nil means the real one.
	Pauses clock.WithTicker
	Log    logr.Logger

	all throttle
}

// OnHostObject handles an event about a Federated object, or about its kind.
func (u *Units) OnHostObject(name, resource string) {
	u.RecheckForeign("")
	if name == "" {
		u.ReadLabels()
		u.RequeueAll()
		return
	}
	u.Backlog.Update(name)
	if known, ok := u.Reports.ResourceOf(name); ok {
		u.Queue.Add(requestqueue.Observed, known)
	}
	if resource != "" {
		u.Queue.Add(requestqueue.Observed, resource)
	}
}

// OnMemberObject handles an event about an object in a member, or about the member.
func (u *Units) OnMemberObject(cluster, object string) {
	if object == "" {
		if cluster != "" {
			u.logMember(cluster)
		}
		if u.Cache.SetClusters(policyClusters(u.Fleet.Clusters())) {
			u.Cache.EnqueueAll(requestqueue.BulkChange)
		}
		u.FleetChanged()
		u.RequeueAll()
		return
	}
	if u.requeueUnitOf(requestqueue.Observed, object) {
		return
	}
	if listed, _ := u.Stores.State(); !listed {
		return // it is not known which objects the host requires, and members are listed at the same time as the host
	}
	if found := u.Stores.Observe(cluster, object).Object; found != nil && (found.Managed || strings.HasPrefix(found.Name, v1alpha1.ObjectPrefix)) {
		u.Log.Info("A member has a policy under ACP's reserved name that no object on the host requires: find out who wrote it, and delete it there",
			"member", cluster, "policy", object)
	}
}

// OnReport handles the event that an engine reports something else about an object. When a member is lost or found, engines report it of every object
// there: what was read back from the other members comes first.
func (u *Units) OnReport(object string) { u.requeueUnitOf(requestqueue.StatusUpdate, object) }

// requeueUnitOf updates the backlog with an object, and enqueues its unit with a priority. It returns false if no unit has the object.
func (u *Units) requeueUnitOf(priority int, object string) bool {
	u.Backlog.Update(object)
	resource, ok := u.Reports.ResourceOf(object)
	if !ok {
		if federated, there := u.Stores.Get(object); there {
			resource = federated.Resource()
		}
	}
	if resource == "" {
		return false
	}
	u.Queue.Add(priority, resource)
	return true
}

// OnNodeReport handles the event that the nodes of a member report something else about objects.
func (u *Units) OnNodeReport(objects []string) {
	for _, object := range objects {
		if resource, ok := u.Reports.ResourceOf(object); ok {
			u.Queue.Add(requestqueue.Bulk, resource)
		}
	}
}

// RequeueAll enqueues every unit as a background request. Its work grows with the units and the members, and each member causes several calls
// when it is found or lost, so that the calls are combined.
func (u *Units) RequeueAll() {
	u.all.call(cmp.Or[clock.WithTicker](u.Pauses, clock.RealClock{}), u.requeueAll)
}

func (u *Units) requeueAll() {
	u.Backlog.UpdateAll()
	u.Cache.EnqueueAll(requestqueue.Bulk)
	u.Queue.Add(requestqueue.Bulk, u.Reports.Resources()...)
	for _, o := range u.Stores.List() {
		// This includes resources that nothing needs any more.
		if r := o.Resource(); r != "" {
			u.Queue.Add(requestqueue.Bulk, r)
		}
	}
}

// logMember logs that a member was lost or found, which the statuses report, too.
func (u *Units) logMember(cluster string) {
	o := u.Fleet.Observe(cluster, "")
	u.Log.Info("The reachability or registration of a member changed",
		"member", cluster, "registered", o.Registered, "reachable", o.Reachable, "message", o.Message)
}

// policyClusters converts the registered clusters to the form that policies are compiled for, by name.
func policyClusters(clusters []federation.Cluster) []policy.Cluster {
	out := make([]policy.Cluster, len(clusters))
	for i, c := range clusters {
		labels := c.Labels
		if labels == nil {
			labels = map[string]string{} // the member has no labels, which is different from unknown labels
		}
		out[i] = policy.Cluster{Name: c.Name, Labels: labels, Istio: c.Istio, IstioRoot: c.Locations.NonDefaultIstioRoot()}
	}
	slices.SortFunc(out, func(a, b policy.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return out
}
