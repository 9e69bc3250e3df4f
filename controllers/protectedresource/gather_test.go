package protectedresource

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/externalgroup"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/controllers/statuscache"
	"github.com/acp-io/acp/controllers/writequeue"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/testenv"
)

// unreadableRegistry is a fleet whose registrations cannot be listed.
type unreadableRegistry struct{ federation.Members }

func (unreadableRegistry) Registry() (bool, error) { return false, errors.New("forbidden") }

func (unreadableRegistry) Clusters() []federation.Cluster { return nil }

func (unreadableRegistry) Observe(string, string) federation.Observation {
	return federation.Observation{Unknown: true}
}

// listedLate is a fleet whose registrations are listed between two calls.
type listedLate struct {
	federation.Members
	listed *bool
}

func (l listedLate) Registry() (bool, error) {
	*l.listed = true
	return true, nil
}

func (l listedLate) Clusters() []federation.Cluster {
	if !*l.listed {
		return nil
	}
	return []federation.Cluster{{Name: "m1"}}
}

func (listedLate) Observe(string, string) federation.Observation {
	return federation.Observation{Registered: true}
}

// singleObject is a host with one Federated object. It counts the writes.
type singleObject struct {
	federation.Host
	object *federation.Object
	writes int
}

func (*singleObject) State() (bool, error) { return true, nil }

func (s *singleObject) Get(key string) (*federation.Object, bool) {
	return s.object, key == s.object.Key()
}

func (s *singleObject) Of(string) []*federation.Object { return []*federation.Object{s.object} }

func (s *singleObject) Apply(_ context.Context, o *federation.Object) (*federation.Object, error) {
	s.writes++
	return o, nil
}

// TestUnreadableRegistry checks that objects keep their placement while it is not known which members there are. A
// class that selects members by labels selects none then, and an empty placement would open the resource everywhere.
func TestUnreadableRegistry(t *testing.T) {
	queues := policycache.NewQueues(clock.RealClock{})
	index, informers := policycache.New(queues), &testenv.Objects{}
	if _, err := index.Listen(t.Context(), informers); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{
		&v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{
			Pattern: "trnv1:rsc:o:redis:clusters:*", LabelKey: redisKey, Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
			Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379}}}}}},
		&v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "x", Finalizers: []string{v1alpha1.FinalizerProtectedResource}},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: sceneResource, Mode: v1alpha1.ModeEnforce}},
	} {
		if err := informers.Change(nil, o); err != nil {
			t.Fatal(err)
		}
	}
	host := &singleObject{object: &federation.Object{
		Kind:         federation.CiliumPolicy,
		Placement:    []string{"m1"},
		TemplateSpec: map[string]any{"enableDefaultDeny": map[string]any{"ingress": true}},
		Meta: metav1.ObjectMeta{
			Name:            objectName(sceneResource),
			ResourceVersion: "1",
			Annotations:     map[string]string{federation.AnnotationResource: sceneResource},
		},
	}}
	r := &Reconciler{
		Cache:         index,
		Fleet:         unreadableRegistry{},
		Federated:     host,
		Groups:        &externalgroup.Reconciler{Cache: index, Fleet: unreadableRegistry{}, Federated: host},
		Reports:       statuscache.New(),
		Queue:         writequeue.New("test", writequeue.DefaultLimits),
		Units:         queues.Units,
		Enforcers:     enforcersOf{},
		Members:       sound{},
		Clock:         clock.RealClock{},
		UpdatePending: func(string) {},
		MaxInFlight:   time.Second,
	}
	out := r.attempt(t.Context(), sceneResource, false)
	if out.Err != nil || host.writes != 0 || !out.Plan.Frozen {
		t.Fatalf("%d writes, frozen %t, %v", host.writes, out.Plan.Frozen, out.Err)
	}
	if out.Problem == nil || out.Problem.Reason != v1alpha1.ReasonNoPropagator || !out.Facts.Wanted {
		t.Errorf("problem %+v, wanted %t", out.Problem, out.Facts.Wanted)
	}

	r.Fleet = listedLate{listed: new(bool)}
	f, err := r.gather(sceneResource)
	if err != nil || f.Problem != nil {
		t.Fatalf("problem %+v, %v", f.Problem, err)
	}
	if len(f.Placement) != 1 {
		t.Errorf("the list of members was read before it was complete: placed in %v", f.Placement)
	}
}
