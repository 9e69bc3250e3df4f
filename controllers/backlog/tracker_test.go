package backlog

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/federation"
)

// objects is a host with some Federated objects.
type objects struct {
	federation.Host
	all map[string]*federation.Object
}

func (o objects) Get(name string) (*federation.Object, bool) {
	found, ok := o.all[name]
	return found, ok
}

// unread are members that were not read.
type unread struct{ federation.Members }

func (unread) Clusters() []federation.Cluster { return []federation.Cluster{{Name: "m1"}} }

func (unread) Observe(string, string) federation.Observation {
	return federation.Observation{Registered: true, Unknown: true}
}

// TestKubeFedIsBehind checks that an object counts from its write until KubeFed reports on it, or it is deleted.
func TestKubeFedIsBehind(t *testing.T) {
	const limit = 2
	host := objects{all: map[string]*federation.Object{}}
	tracker := &Tracker{
		Queue:   writequeue.New("test", writequeue.DefaultLimits),
		Objects: host,
		Members: unread{},
		Clock:   clocktesting.NewFakeClock(time.Unix(1e9, 0)),
	}
	for i := range 2*limit + 1 {
		if tracker.KubeFedIsBehind(limit) {
			t.Fatalf("%d objects exceed twice %d", i, limit)
		}
		name := fmt.Sprint("acp-", i)
		host.all[name] = &federation.Object{Kind: federation.CiliumPolicy, Meta: metav1.ObjectMeta{Name: name}, Placement: []string{"m1"}}
		tracker.Update(name)
		tracker.Update(name) // a second event about the same object
	}
	if !tracker.KubeFedIsBehind(limit) {
		t.Fatal("KubeFed has reported on no object")
	}
	host.all["acp-0"].Propagation.Seen = true
	tracker.Update("acp-0")
	if tracker.KubeFedIsBehind(limit) {
		t.Error("an object that KubeFed reported on counts")
	}
	host.all["acp-0"].Propagation.Seen = false
	tracker.Update("acp-0")
	delete(host.all, "acp-1")
	tracker.Update("acp-1")
	if tracker.KubeFedIsBehind(limit) {
		t.Error("an object that was deleted counts")
	}
}

// otherEngines reports whether no member of an object depends on KubeFed.
type otherEngines struct{ federation.Reporter }

func (otherEngines) Handled(*federation.Object) bool { return true }

// TestUpdateOfOtherEngines checks that no member is looked at for an object that KubeFed carries to none: such events come from every
// member, so that the time of a change would grow with the square of the members.
func TestUpdateOfOtherEngines(t *testing.T) {
	o := &federation.Object{Kind: federation.CiliumPolicy, Meta: metav1.ObjectMeta{Name: "acp-0"}, Placement: []string{"m1"}}
	tracker := &Tracker{
		Queue:   writequeue.New("test", writequeue.DefaultLimits),
		Objects: objects{all: map[string]*federation.Object{"acp-0": o.WithReporter(otherEngines{})}},
		Members: nil, // a look at a member would panic
		Clock:   clocktesting.NewFakeClock(time.Unix(1e9, 0)),
	}
	tracker.Update("acp-0")
	if tracker.KubeFedIsBehind(0) {
		t.Error("the object counts as one that KubeFed has not reported on")
	}
}
