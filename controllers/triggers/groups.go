package triggers

import (
	"strings"
	"sync"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/backlog"
	"github.com/acp-io/acp/controllers/requestqueue"
	"github.com/acp-io/acp/internal/federation"
)

// Groups maps events about address groups to the subjects and the units to reconcile. All fields are set before the manager
// starts.
type Groups struct {
	Units *Units
	// Queue receives the subjects.
	Queue   *requestqueue.Queue
	Objects *federation.Objects
	Backlog *backlog.Tracker
	// Known is closed when it is known whether the host can distribute groups.
	Known chan struct{}

	once sync.Once
}

// OnHostObject handles an event about a Federated group, or about its kind.
func (g *Groups) OnHostObject(name, subject string) {
	if name == "" {
		listed, _ := g.Objects.State()
		g.Units.Cache.SetGroupsSupported(listed)
		g.once.Do(func() { close(g.Known) })
		g.requeueAll()
		return
	}
	g.Backlog.Update(name)
	g.requeue(name, subject)
}

// OnMemberObject handles an event about a group in a member, or about the member.
func (g *Groups) OnMemberObject(_, object string) {
	if object == "" {
		g.requeueAll()
		return
	}
	g.Backlog.Update(object)
	subject := ""
	if o, ok := g.Objects.Get(object); ok {
		subject = o.Resource()
	}
	g.requeue(object, subject)
}

// requeue enqueues the subject of a group, which may be "", and the units that refer to the group.
func (g *Groups) requeue(name, subject string) {
	if subject == "" { // the object was deleted and may have to be created again
		subject = g.Units.Cache.View().SubjectOf(strings.TrimPrefix(name, v1alpha1.ObjectPrefix))
	}
	if subject != "" {
		g.Queue.Add(requestqueue.Observed, subject)
	}
	g.Units.Queue.Add(requestqueue.Observed, g.Units.Reports.UsersOf(name)...)
}

// requeueAll enqueues every subject, and every unit that refers to a group, with low priority.
func (g *Groups) requeueAll() {
	g.Backlog.UpdateAll()
	g.Units.Cache.EnqueueWorkloads()
	for _, o := range g.Objects.List() {
		// This includes subjects without workloads.
		if subject := o.Resource(); subject != "" {
			g.Queue.Add(requestqueue.Bulk, subject)
		}
		g.Units.Queue.Add(requestqueue.Bulk, g.Units.Reports.UsersOf(o.Meta.Name)...)
	}
}
