package controllers_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// waitTimeout bounds how long a test waits for a condition.
const waitTimeout = 90 * time.Second

func encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// scenario is a test with classes of its own, so that tests can share a fleet without affecting each other.
type scenario struct {
	*testing.T
	*fleet
	ctx     context.Context
	service string
}

// newScenario creates a resource class and a subject class named after the service.
func newScenario(t *testing.T, f *fleet, service string) *scenario {
	t.Helper()
	s := &scenario{T: t, fleet: f, ctx: context.Background(), service: service}
	s.create(&v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: service}, Spec: v1alpha1.ResourceClassSpec{
		Pattern: v1alpha1.NamePattern("trnv1:rsc:trip-com:" + service + ":clusters:*"), LabelKey: v1alpha1.LabelKey("com.trip/" + service),
		Actions:   []v1alpha1.ClassAction{{Name: service + ":connect", Ports: []v1alpha1.Port{{Port: 6379}}}},
		Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
	}})
	s.create(&v1alpha1.SubjectClass{ObjectMeta: metav1.ObjectMeta{Name: service}, Spec: v1alpha1.SubjectClassSpec{
		Pattern: v1alpha1.NamePattern("trnv1:rsc:trip-com:" + service + ":sa:app/*"), LabelKey: "com.trip/appid",
	}})
	return s
}

// place changes the placement of the scenario's class, and waits until the adapter has read it, because each kind has a watch of its own.
func (s *scenario) place(clusters ...v1alpha1.ClusterName) {
	s.Helper()
	clusters = append([]v1alpha1.ClusterName{}, clusters...) // an empty list differs from no list
	c := &v1alpha1.ResourceClass{}
	change(s, s.host, c, s.service, func(c *v1alpha1.ResourceClass) {
		c.Spec.Placement = v1alpha1.Placement{Clusters: &clusters}
	})
	s.until("the adapter has seen the placement", func() string {
		var now v1alpha1.ResourceClass
		if err := s.host.Get(s.ctx, types.NamespacedName{Name: s.service}, &now); err != nil {
			s.Fatal(err)
		}
		if now.Status.ObservedGeneration < c.Generation {
			return "it has not"
		}
		return ""
	})
}

func (s *scenario) resource() v1alpha1.ResourceName {
	return v1alpha1.ResourceName("trnv1:rsc:trip-com:" + s.service + ":clusters:bobs")
}

func (s *scenario) object() string {
	return v1alpha1.ObjectPrefix + policy.UnitID(string(s.resource()))
}

func (s *scenario) create(o client.Object) {
	s.Helper()
	if err := s.host.Create(s.ctx, o); err != nil {
		s.Fatalf("create %T %s: %v", o, o.GetName(), err)
	}
}

func (s *scenario) protect(mode v1alpha1.Mode) {
	s.Helper()
	s.create(&v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: s.service},
		Spec: v1alpha1.ProtectedResourceSpec{Resource: s.resource(), Mode: mode}})
}

func (s *scenario) statement(sid, app string) v1alpha1.Statement {
	return v1alpha1.Statement{SID: sid, Effect: v1alpha1.EffectAllow,
		Subjects:  []v1alpha1.Subject{v1alpha1.Subject("trnv1:rsc:trip-com:" + s.service + ":sa:app/" + app)},
		Actions:   []v1alpha1.Action{v1alpha1.Action(s.service + ":connect")},
		Resources: []v1alpha1.ResourceName{s.resource()}}
}

func (s *scenario) grant(statements ...v1alpha1.Statement) {
	s.Helper()
	s.create(&v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.service},
		Spec: v1alpha1.AccessControlPolicySpec{Statements: statements}})
}

// change reads, modifies and writes an object, and repeats that after a conflict.
func change[T client.Object](s *scenario, c client.Client, o T, name string, modify func(T)) {
	s.Helper()
	for {
		if err := c.Get(s.ctx, types.NamespacedName{Name: name}, o); err != nil {
			s.Fatalf("read %s: %v", name, err)
		}
		modify(o)
		err := c.Update(s.ctx, o)
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			s.Fatalf("change %s: %v", name, err)
		}
	}
}

// until waits until check returns "". It polls less often the longer it waits: reading takes processor time that the adapter needs.
func (s *scenario) until(what string, check func() string) {
	s.Helper()
	deadline := time.Now().Add(waitTimeout)
	for interval := 10 * time.Millisecond; ; interval = min(interval*5/4, 50*time.Millisecond) {
		problem := check()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("timed out waiting for %q: %s", what, problem)
		}
		time.Sleep(interval)
	}
}

func (s *scenario) protected() *v1alpha1.ProtectedResource {
	s.Helper()
	var o v1alpha1.ProtectedResource
	if err := s.host.Get(s.ctx, types.NamespacedName{Name: s.service}, &o); err != nil {
		s.Fatal(err)
	}
	return &o
}

func (s *scenario) policy() *v1alpha1.AccessControlPolicy {
	s.Helper()
	var o v1alpha1.AccessControlPolicy
	if err := s.host.Get(s.ctx, types.NamespacedName{Name: s.service}, &o); err != nil {
		s.Fatal(err)
	}
	return &o
}

// federated returns the Federated object of the scenario's resource, or nil.
func (s *scenario) federated() (*unstructured.Unstructured, *federation.Object) {
	s.Helper()
	return s.federatedOf(federation.CiliumPolicy, s.object())
}

func (s *scenario) federatedOf(kind federation.Kind, name string) (*unstructured.Unstructured, *federation.Object) {
	s.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind.Federated)
	err := s.host.Get(s.ctx, types.NamespacedName{Namespace: kind.Namespace, Name: name}, u)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		s.Fatal(err)
	}
	return u, federation.ParseObject(kind, u)
}

// untilStates waits until the status of the ProtectedResource has these states of the members. A status may describe the former state for
// another half second (condition.DeferralLimit), so statuses of an older generation or of other revisions than the written ones do not count.
func (s *scenario) untilStates(what string, want map[string]v1alpha1.MemberState) {
	s.Helper()
	s.until(what, func() string { return s.haveStates(want) })
}

// pushUntilStates pushes, and again whenever the adapter writes the Federated object again, until the status of the ProtectedResource has
// these states of the members.
func (s *scenario) pushUntilStates(what string, want map[string]v1alpha1.MemberState) {
	s.Helper()
	pushed := int64(-1)
	s.until(what, func() string {
		if u, _ := s.federated(); u != nil && u.GetGeneration() != pushed {
			pushed = u.GetGeneration()
			s.push()
		}
		return s.haveStates(want)
	})
}

// haveStates describes how the status of the ProtectedResource differs from these states of the members, or returns "".
func (s *scenario) haveStates(want map[string]v1alpha1.MemberState) string {
	s.Helper()
	got := map[string]v1alpha1.MemberState{}
	p := s.protected()
	reported := fmt.Sprintf("%v, conditions %v", p.Status.Clusters, p.Status.Conditions)
	for _, c := range p.Status.Conditions {
		if c.ObservedGeneration != p.Generation {
			return fmt.Sprintf("of generation %d, not of %d: %s", c.ObservedGeneration, p.Generation, reported)
		}
	}
	_, o := s.federated()
	for _, c := range p.Status.Clusters {
		got[string(c.Name)] = c.State
		written := ""
		if o != nil {
			written = o.RevisionIn(string(c.Name))
		}
		if c.State == v1alpha1.MemberRealized && c.DesiredRevision != written {
			return fmt.Sprintf("%s is to have %q: %s", c.Name, written, reported)
		}
	}
	if maps.Equal(got, want) {
		return ""
	}
	return reported
}

// push acts as KubeFed: it writes the Federated object to the members that can be reached, and reports that in its status. It first waits
// until the revision in the statuses is written, because the write may still be queued.
func (s *scenario) push() {
	s.Helper()
	s.until("the wanted revision is written", func() string {
		have := ""
		if _, o := s.federated(); o != nil {
			have = o.TemplateLabels[v1alpha1.LabelRevision]
		}
		for _, want := range s.wanted() {
			if want != "" && want != have {
				return fmt.Sprintf("%q is there, %q is wanted", have, want)
			}
		}
		return ""
	})
	s.pushOf(federation.CiliumPolicy, s.object())
}

// wanted returns the revisions of the unit in the statuses of the resource and of the policy.
func (s *scenario) wanted() []string {
	s.Helper()
	var r v1alpha1.ProtectedResource
	if err := client.IgnoreNotFound(s.host.Get(s.ctx, types.NamespacedName{Name: s.service}, &r)); err != nil {
		s.Fatal(err)
	}
	var p v1alpha1.AccessControlPolicy
	if err := client.IgnoreNotFound(s.host.Get(s.ctx, types.NamespacedName{Name: s.service}, &p)); err != nil {
		s.Fatal(err)
	}
	out := []string{r.Status.Revision}
	for _, u := range p.Status.Units {
		if u.Resource == s.resource() {
			out = append(out, u.Revision)
		}
	}
	return out
}

// pushOf acts as KubeFed for one object. It does nothing if the object is gone.
func (s *scenario) pushOf(kind federation.Kind, object string) {
	s.Helper()
	u, o := s.federatedOf(kind, object)
	if o == nil {
		return
	}
	var clusters []any
	placed := map[string]bool{}
	for _, c := range o.Placement {
		placed[c] = true
	}
	for name, m := range s.members {
		reachable := !m.proxy.IsDisconnected() && !s.registration(name).KubeFedLocked()
		switch {
		case placed[name] && reachable:
			s.write(m, o, name)
			clusters = append(clusters, map[string]any{"name": name})
		case placed[name]:
			clusters = append(clusters, map[string]any{"name": name, "status": "ClusterNotReady"})
		case reachable:
			s.removeFrom(m, o)
		}
	}
	u.Object["status"] = map[string]any{"observedGeneration": u.GetGeneration(), "clusters": clusters,
		"conditions": []any{map[string]any{"type": "Propagation", "status": "True"}}}
	switch err := s.host.Status().Update(s.ctx, u); {
	case apierrors.IsConflict(err):
		// The adapter has written again. Its new version is another push, which the test has not requested.
		if now, _ := s.federatedOf(kind, object); now != nil && now.GetGeneration() == u.GetGeneration() {
			s.pushOf(kind, object)
		}
	case client.IgnoreNotFound(err) != nil:
		s.Fatalf("write the status as KubeFed: %v", err)
	}
}

// registration returns the registration of a member as the adapter reads it.
func (s *scenario) registration(name string) federation.Cluster {
	s.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("core.kubefed.io/v1beta1")
	u.SetKind("KubeFedCluster")
	if err := s.host.Get(s.ctx, types.NamespacedName{Namespace: fedNS, Name: name}, u); err != nil {
		s.Fatal(err)
	}
	c, err := federation.ParseCluster(u)
	if err != nil {
		s.Fatal(err)
	}
	return c
}

func (s *scenario) write(m *memberServer, o *federation.Object, cluster string) {
	s.Helper()
	spec, labels := o.TemplateSpec, maps.Clone(o.TemplateLabels)
	if over, ok := o.Overrides[cluster]; ok {
		spec = over.Spec
		maps.Copy(labels, over.Labels)
	}
	want := target(o.Kind, o.Meta.Name)
	err := m.client.Get(s.ctx, types.NamespacedName{Namespace: o.Kind.Namespace, Name: o.Meta.Name}, want)
	exists := err == nil
	want.SetLabels(labels)
	want.Object["spec"] = spec
	if exists {
		err = m.client.Update(s.ctx, want)
	} else if apierrors.IsNotFound(err) {
		err = m.client.Create(s.ctx, want)
	}
	if err != nil {
		s.Fatalf("write to %s: %v", cluster, err)
	}
}

func (s *scenario) removeFrom(m *memberServer, o *federation.Object) {
	s.Helper()
	if err := client.IgnoreNotFound(m.client.Delete(s.ctx, target(o.Kind, o.Meta.Name))); err != nil {
		s.Fatal(err)
	}
}

func (s *scenario) ccnp() *unstructured.Unstructured {
	return target(federation.CiliumPolicy, s.object())
}

func target(kind federation.Kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind.Target)
	u.SetNamespace(kind.Namespace)
	u.SetName(name)
	return u
}
