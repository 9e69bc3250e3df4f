package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/rules"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/organization"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/rollout"
)

// kind describes a kind of objects that tickets change.
type kind struct {
	name  string
	empty func() client.Object
	is    func(client.Object) bool
	spec  func(client.Object) any // a pointer to it
	// ready reports whether the adapter has applied the object, why the adapter does not accept it, and what it waits for.
	ready func(client.Object) (bool, string, string)
	// observed returns the generation in the status.
	observed func(client.Object) int64
	// ours reports whether tickets may change an existing object. If it is nil, they may change all.
	ours func(client.Object) bool
	// mark sets metadata of the object for a change; nil if there is none.
	mark func(client.Object, approval.Change)
}

// object returns the description of a kind. Its functions are only called with objects of that kind.
func object[T any, O interface {
	*T
	client.Object
}](name string, spec func(O) any, observed func(O) int64, ready func(O) (bool, string, string)) kind {
	return kind{name: name,
		empty:    func() client.Object { return O(new(T)) },
		is:       func(o client.Object) bool { _, ok := o.(O); return ok },
		spec:     func(o client.Object) any { return spec(o.(O)) },
		observed: func(o client.Object) int64 { return observed(o.(O)) },
		ready:    func(o client.Object) (bool, string, string) { return ready(o.(O)) },
	}
}

var changeable = []kind{
	object(approval.ObjectProtectedResource, func(o *v1alpha1.ProtectedResource) any { return &o.Spec },
		func(o *v1alpha1.ProtectedResource) int64 { return o.Status.ObservedGeneration }, protectionReady),
	object(approval.ObjectResourceClass, func(o *v1alpha1.ResourceClass) any { return &o.Spec },
		func(o *v1alpha1.ResourceClass) int64 { return o.Status.ObservedGeneration },
		classReady),
	object(approval.ObjectSubjectClass, func(o *v1alpha1.SubjectClass) any { return &o.Spec },
		func(o *v1alpha1.SubjectClass) int64 { return o.Status.ObservedGeneration },
		func(o *v1alpha1.SubjectClass) (bool, string, string) { return accepted(o.Status.Conditions) }),
	object(approval.ObjectApprovalPolicy, func(o *v1alpha1.ApprovalPolicy) any { return &o.Spec },
		func(o *v1alpha1.ApprovalPolicy) int64 { return o.Status.ObservedGeneration },
		func(o *v1alpha1.ApprovalPolicy) (bool, string, string) { return accepted(o.Status.Conditions) }),
	object(approval.ObjectOrganization, func(o *v1alpha1.Organization) any { return &o.Spec },
		func(o *v1alpha1.Organization) int64 { return o.Status.ObservedGeneration },
		func(o *v1alpha1.Organization) (bool, string, string) { return accepted(o.Status.Conditions) }),
	externalWorkloads(),
}

// externalWorkloads are the workloads that people register. Tickets do not change those of platforms and administrators.
func externalWorkloads() kind {
	k := object(approval.ObjectExternalWorkload, func(o *v1alpha1.ExternalWorkload) any { return &o.Spec },
		func(o *v1alpha1.ExternalWorkload) int64 { return o.Status.ObservedGeneration },
		func(o *v1alpha1.ExternalWorkload) (bool, string, string) { return accepted(o.Status.Conditions) })
	k.ours = func(o client.Object) bool {
		return o.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedByPortal && o.GetLabels()[labelSource] == workloads.Portal
	}
	k.mark = func(o client.Object, c approval.Change) {
		if x, ok := o.(*v1alpha1.ExternalWorkload); ok {
			label(x, workloads.Portal, c.Description)
		}
	}
	return k
}

func kindOf(name string) (kind, error) {
	for _, k := range changeable {
		if k.name == name {
			return k, nil
		}
	}
	return kind{}, message.WriteKindNotChanged(name).Err()
}

// protectionReady reports whether every targeted member was read back in the requested mode.
func protectionReady(o *v1alpha1.ProtectedResource) (ready bool, refused, waits string) {
	if _, refused, _ := accepted(o.Status.Conditions); refused != "" {
		return false, refused, ""
	}
	c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionRealized)
	if c == nil {
		return false, "", ""
	}
	mode := o.Status.EffectiveMode == o.Spec.Mode || o.Spec.TemporaryAudit != nil
	// In Observe no member needs an object, which the adapter reports once all objects are removed.
	there := c.Status == metav1.ConditionTrue || c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonObserve
	return there && c.ObservedGeneration >= o.Generation && mode && rollout.Waiting(o).IsZero(), "", c.Message
}

// classReady reports whether a class is accepted and its rules count in every member.
func classReady(o *v1alpha1.ResourceClass) (ready bool, refused, waits string) {
	ready, refused, waits = accepted(o.Status.Conditions)
	if ready && o.RollsOut() {
		return false, "", rollout.WaitingClass(o).Text
	}
	return ready, refused, waits
}

func accepted(conditions []metav1.Condition) (ready bool, refused, waits string) {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionAccepted)
	switch {
	case c == nil:
		return false, "", ""
	case c.Status == metav1.ConditionFalse:
		return false, c.Message, ""
	}
	return c.Status == metav1.ConditionTrue, "", c.Message
}

// acceptance returns the message of a condition's text: conditions have no codes, so the message is computed again, from the object, or
// for classes and external workloads from all objects.
func acceptance(k kind, o client.Object, problems func() []policy.Problem, text string) message.Message {
	switch o := o.(type) {
	case *v1alpha1.ApprovalPolicy:
		_, m := rules.Acceptance(o)
		if found := message.OfText(text, m); found.Code != "" || text == "" {
			return found
		}
	case *v1alpha1.ProtectedResource:
		return message.OfText(text, message.ConditionDeleteFromObserve())
	}
	if text == "" {
		return message.Message{}
	}
	return governance.AcceptanceOf(problems(), k.name, o.GetName(), text)
}

// specOf returns the spec of an object for tickets, without a temporary audit, which begins and ends without a ticket.
func specOf(k kind, o client.Object) json.RawMessage {
	spec := k.spec(o)
	if p, ok := spec.(*v1alpha1.ProtectedResourceSpec); ok && p.TemporaryAudit != nil {
		without := *p
		without.TemporaryAudit = nil
		spec = &without
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil
	}
	return text
}

// Object implements approval.Host.
func (h *Host) Object(name, object string) (approval.Object, bool, error) {
	k, err := kindOf(name)
	if err != nil {
		return approval.Object{}, false, err
	}
	if !h.Ready() {
		return approval.Object{}, false, approval.HostUnknown()
	}
	o := k.empty()
	err = h.cache.Get(context.Background(), client.ObjectKey{Name: object}, o)
	if apierrors.IsNotFound(err) {
		return approval.Object{}, false, nil
	}
	if err != nil {
		return approval.Object{}, false, fmt.Errorf("read %s %s from the cache: %w", name, object, err)
	}
	return approval.Object{ResourceVersion: o.GetResourceVersion(), Spec: specOf(k, o)}, true, nil
}

// Seen implements approval.Policies.
func (h *Host) Seen(ctx context.Context, name, object string) (approval.ObjectSeen, error) {
	return Seen(ctx, h.client, h.problems, name, object)
}

// problems returns the problems of the present objects; none while the host cluster is unknown.
func (h *Host) problems() []policy.Problem {
	s, ok := h.Snapshot()
	if !ok {
		return nil
	}
	out := s.Problems()
	policies, errPolicies := h.ApprovalPolicies()
	organizations, err := h.Organizations()
	if in, ok := h.Input(); ok && err == nil && errPolicies == nil {
		out = append(out, organization.NewIndex(organizations).Problems(in.ResourceClasses, policies)...)
	}
	return out
}

// Seen returns the observed state of an object: its spec, its generations and whether it is ready. problems returns the problems
// of all objects; it is called only if the object has a message that may be a problem.
func Seen(ctx context.Context, c client.Reader, problems func() []policy.Problem, name, object string) (approval.ObjectSeen, error) {
	k, err := kindOf(name)
	if err != nil {
		return approval.ObjectSeen{}, err
	}
	o := k.empty()
	err = c.Get(ctx, client.ObjectKey{Name: object}, o)
	if apierrors.IsNotFound(err) {
		return approval.ObjectSeen{}, nil
	}
	if err != nil {
		return approval.ObjectSeen{}, fmt.Errorf("read %s %s: %w", name, object, err)
	}
	seen := approval.ObjectSeen{Exists: true, UID: string(o.GetUID()), Generation: o.GetGeneration(), Observed: k.observed(o), Spec: specOf(k, o)}
	ready, refused, waits := k.ready(o)
	seen.Ready, seen.Refused, seen.Waits = ready, acceptance(k, o, problems, refused), acceptance(k, o, problems, waits)
	if p, ok := o.(*v1alpha1.ProtectedResource); ok && waits != "" {
		seen.Waits = governance.NotRealized(p.Status.States(), waits)
	}
	if c, ok := o.(*v1alpha1.ResourceClass); ok && waits != "" && refused == "" {
		seen.Waits = rollout.WaitingClass(c)
	}
	if p, ok := o.(*v1alpha1.ProtectedResource); ok {
		if m := rollout.Waiting(p); !m.IsZero() {
			seen.Waits = m
		}
		seen.Revision, seen.Clusters = p.Status.Revision, p.Status.States()
		n := p.Status.Counts()
		seen.Unrealized = int(n.Total - n.Realized)
	}
	return seen, nil
}

// DryRun implements approval.Host. It returns the object as the API server would store it, or the reason why it would refuse it.
func (h *Host) DryRun(ctx context.Context, c approval.Change) (json.RawMessage, error) {
	w := &Writer{Client: client.NewDryRunClient(h.client)}
	o, err := w.apply(ctx, c, func(context.Context, bool) error { return nil })
	if err != nil || o == nil {
		return nil, err
	}
	k, err := kindOf(c.Kind)
	if err != nil {
		return nil, err
	}
	return specOf(k, o), nil
}

// Apply implements approval.ObjectWriter.
func (w *Writer) Apply(ctx context.Context, c approval.Change, check approval.Check) (approval.Written, error) {
	o, err := w.apply(ctx, c, check)
	if err != nil {
		return approval.Written{}, err
	}
	if o == nil { // it was deleted before
		return approval.Written{Generation: 1}, nil
	}
	return approval.Written{Generation: o.GetGeneration(), UID: string(o.GetUID())}, nil
}

// apply reads, compares, checks and writes with the resource version that was read. A change that is based on another spec than the
// current one is refused permanently, because it was approved as a difference. The object is nil if it is deleted already.
func (w *Writer) apply(ctx context.Context, c approval.Change, check approval.Check) (client.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	k, err := kindOf(c.Kind)
	if err != nil {
		return nil, &approval.RefusedError{Message: message.Of(err), Final: true}
	}
	for range maxConflicts {
		o := k.empty()
		err := w.Client.Get(ctx, client.ObjectKey{Name: c.Name}, o)
		exists := err == nil
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read %s %s: %w", c.Kind, c.Name, err)
		}
		done, err := compare(k, c, o, exists)
		if err != nil {
			return nil, err
		}
		if err := check(ctx, done); err != nil {
			return nil, err
		}
		if done {
			if !exists {
				return nil, nil
			}
			return o, nil
		}
		if err = w.write(ctx, k, c, o); err == nil {
			return o, nil
		}
		if !isConflict(exists, err) {
			return nil, refused(c.Name, err)
		}
	}
	return nil, fmt.Errorf("write %s %s: it changed %d times in between", c.Kind, c.Name, maxConflicts)
}

// compare reports whether a change is applied already. It returns an error if the change is based on another spec than the current one.
func compare(k kind, c approval.Change, o client.Object, exists bool) (done bool, err error) {
	var spec json.RawMessage
	if exists {
		spec = specOf(k, o)
	}
	switch {
	case exists && k.ours != nil && !k.ours(o):
		return false, &approval.RefusedError{Message: message.WriteRefusedObjectNotOfPortal(c.Kind, c.Name), Final: true}
	case c.Verb == approval.VerbDelete && !exists, c.Verb != approval.VerbDelete && exists && bytes.Equal(spec, c.After):
		return true, nil
	case c.Verb == approval.VerbCreate && exists:
		return false, &approval.RefusedError{Message: message.WriteRefusedObjectExists(c.Kind, c.Name), Final: true}
	case c.Verb == approval.VerbUpdate && !exists:
		return false, &approval.RefusedError{Message: message.WriteRefusedObjectGone(c.Kind, c.Name), Final: true}
	case exists && !bytes.Equal(spec, c.Before):
		return false, &approval.RefusedError{Message: message.WriteRefusedObjectChanged(c.Kind, c.Name), Final: true}
	}
	return false, nil
}

func (w *Writer) write(ctx context.Context, k kind, c approval.Change, o client.Object) error {
	if c.Verb == approval.VerbDelete {
		uid, version := o.GetUID(), o.GetResourceVersion()
		return w.Client.Delete(ctx, o, client.Preconditions{UID: &uid, ResourceVersion: &version})
	}
	spec := k.spec(o)
	var audit *v1alpha1.TemporaryAudit
	protection, protects := spec.(*v1alpha1.ProtectedResourceSpec)
	if protects {
		audit = protection.TemporaryAudit
	}
	reflect.ValueOf(spec).Elem().SetZero() // fields that the approved spec does not have are removed
	if err := json.Unmarshal(c.After, spec); err != nil {
		return fmt.Errorf("read the approved spec: %w", err)
	}
	if protects {
		protection.TemporaryAudit = audit
	}
	if k.mark != nil {
		k.mark(o, c)
	}
	if c.Verb == approval.VerbCreate {
		o.SetName(c.Name)
		return w.Client.Create(ctx, o)
	}
	return w.Client.Update(ctx, o)
}
