// Package conformance is the suite of tests that every propagation engine has to pass, on real API servers. It contains the cases in
// which an engine could leave an object in a member that should not have it, or take one from a member that should.
package conformance

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/propagation"
	"github.com/acp-io/acp/internal/testenv/eventually"
)

// Fleet is a host and two members, m1 and m2, both of which use the engine under test.
type Fleet struct {
	// Kind is the kind that the engine distributes. The suite writes policies in the form of Cilium's, which the kind has to accept.
	Kind federation.Kind
	// Store has the records; what is applied there reaches the engine.
	Store propagation.Store
	// Read is the read-back from the members.
	Read interface {
		federation.Members
		Reserved(cluster string) []string
	}
	// Host is a client of the host with an administrator's rights.
	Host dynamic.Interface
	// KubeFedNamespace contains the registrations of the members.
	KubeFedNamespace string
	// Members are clients of the members with their administrators' rights.
	Members map[string]dynamic.Interface
	// Disconnect cuts a member off from the engine and from the read-back, and returns when the engine has noticed, if it can be asked;
	// Reconnect ends that.
	Disconnect, Reconnect func(member string)
	// Stop ends the engine without warning, and Start starts one that has read nothing yet.
	Stop, Start func()
	// Quarantine suspends propagation to a member, and returns when it does not write there any more; Release ends that.
	Quarantine, Release func(member string)
	// Capabilities describes the engine under test.
	Capabilities propagation.Capabilities
	// Timeout bounds how long the suite waits for the engine.
	Timeout time.Duration
}

const (
	m1 = "m1"
	m2 = "m2"
)

// scene is one test of the suite, with objects of its own.
type scene struct {
	*testing.T
	Fleet
	name string
}

// key is the key of the scene's object among those of several kinds.
func (s *scene) key() string { return s.Kind.Key(s.name) }

// ctx is not the context of the test, which has ended when its cleanups run.
func (s *scene) ctx() context.Context { return context.WithoutCancel(s.Context()) }

// spec returns the spec of a policy that admits an application.
func spec(app string) map[string]any {
	return map[string]any{
		"endpointSelector":  map[string]any{"matchLabels": map[string]any{"app": "redis"}},
		"enableDefaultDeny": map[string]any{"ingress": true, "egress": false},
		"ingress":           []any{map[string]any{"fromEndpoints": []any{map[string]any{"matchLabels": map[string]any{"app": app}}}}},
	}
}

// object returns a policy that admits an application in some members.
func (s *scene) object(app string, placement ...string) *federation.Object {
	want := spec(app)
	labels := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelRevision: enforcer.Revision(want)}
	return &federation.Object{Kind: s.Kind,
		Meta: metav1.ObjectMeta{Namespace: s.Kind.Namespace, Name: s.name, Labels: labels, Annotations: map[string]string{
			federation.AnnotationResource:   "trnv1:rsc:trip-com:redis:clusters:" + s.name,
			federation.AnnotationEverPlaced: federation.JoinNames(placement)}},
		TemplateLabels: labels, TemplateSpec: want, Placement: placement}
}

// record writes an object as it has to be now, and returns the record.
func (s *scene) record(next *federation.Object) *federation.Object {
	s.Helper()
	var out *federation.Object
	s.until("the object is recorded", func() error {
		if e, ok := s.Store.Get(next.Key()); ok {
			ever := append(e.EverPlaced(), next.Placement...)
			meta := *e.Meta.DeepCopy()
			meta.Labels = next.Meta.Labels
			meta.Annotations = federation.Overlay(next.Meta.Annotations, map[string]string{federation.AnnotationEverPlaced: federation.JoinNames(ever)})
			next.Meta = meta
		}
		var err error
		out, err = s.Store.Apply(s.ctx(), next)
		return err
	})
	return out
}

// seen waits until a member was read back with the policy that admits an application, or without the policy for "".
func (s *scene) seen(member, app string) {
	s.Helper()
	s.until(fmt.Sprintf("%s has what admits %q", member, app), func() error { return s.check(member, app) })
}

// check reports what a member has instead of the policy that admits an application.
func (s *scene) check(member, app string) error {
	o := s.Read.Observe(member, s.key())
	switch {
	case !o.Reachable:
		return fmt.Errorf("%s cannot be read: %s", member, o.Message.Text)
	case app == "" && o.Object != nil:
		return fmt.Errorf("%s has revision %s", member, o.Object.Revision)
	case app == "":
		return nil
	case o.Object == nil:
		return fmt.Errorf("%s does not have it", member)
	case o.Object.Revision != enforcer.Revision(spec(app)):
		return fmt.Errorf("%s has revision %s", member, o.Object.Revision)
	}
	return nil
}

// released waits until the record counts as gone from a member, as the removal protocol requires.
func (s *scene) released(member string) {
	s.Helper()
	s.until(member+" was seen without it, and the engine will not write it there", func() error {
		o, ok := s.Store.Get(s.key())
		if !ok {
			return fmt.Errorf("there is no record")
		}
		if !o.SeenWithout(member, s.Read.Observe(member, s.key())) {
			return fmt.Errorf("the engine reports %+v, read back is %+v", o.ReportIn(member), s.Read.Observe(member, s.key()))
		}
		return nil
	})
}

// removed takes the object out of all members by the removal protocol, and deletes the record.
func (s *scene) removed() {
	s.Helper()
	o, ok := s.Store.Get(s.key())
	if !ok {
		return
	}
	s.record(o.WithoutPlacement(o.EverPlaced()))
	for _, m := range []string{m1, m2} {
		s.released(m)
	}
	s.until("the record is deleted", func() error {
		o, ok := s.Store.Get(s.key())
		if !ok {
			return nil
		}
		if o.Meta.DeletionTimestamp != nil {
			return fmt.Errorf("it has the finalizers %v", o.Meta.Finalizers)
		}
		if err := federation.DeleteAbsent(s.ctx(), s.Store, s.Read, o, o.EverPlaced()); err != nil {
			return err
		}
		return fmt.Errorf("it was deleted just now")
	})
}

// records is the client of the records on the host.
func (s *scene) records() dynamic.ResourceInterface {
	return inNamespace(s.Host.Resource(s.Kind.FederatedResource), s.Kind)
}

func inNamespace(r dynamic.NamespaceableResourceInterface, k federation.Kind) dynamic.ResourceInterface {
	if k.Namespace == "" {
		return r
	}
	return r.Namespace(k.Namespace)
}

func (s *scene) policies(member string) dynamic.ResourceInterface {
	return inNamespace(s.Members[member].Resource(s.Kind.TargetResource), s.Kind)
}

// live reads the policy from a member, or nil.
func (s *scene) live(member string) *unstructured.Unstructured {
	s.Helper()
	u, err := s.policies(member).Get(s.ctx(), s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.Fatal(err)
	}
	return u
}

// until waits until check returns nil.
func (s *scene) until(what string, check func() error) {
	s.Helper()
	eventually.NilWithin(s.T, s.Timeout, what, check)
}
