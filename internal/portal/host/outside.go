package host

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/externalchanges"
	"github.com/acp-io/acp/internal/externalchanges/event"
	"github.com/acp-io/acp/internal/waves"
)

var _ externalchanges.Host = (*Host)(nil)

// recorded returns the kind of an object whose changes are recorded in the ledger, or an empty string.
func recorded(o client.Object) string {
	switch o.(type) {
	case *v1alpha1.AccessControlPolicy:
		return "AccessControlPolicy"
	case *v1alpha1.ProtectedResource:
		return "ProtectedResource"
	case *v1alpha1.ResourceClass:
		return "ResourceClass"
	case *v1alpha1.SubjectClass:
		return "SubjectClass"
	case *v1alpha1.ApprovalPolicy:
		return "ApprovalPolicy"
	case *v1alpha1.Organization:
		return "Organization"
	}
	return ""
}

func rowOf(kind string, o client.Object) externalchanges.Row {
	return externalchanges.Row{Key: externalchanges.Key{Kind: kind, Name: o.GetName()}, UID: string(o.GetUID()), Generation: o.GetGeneration()}
}

// OnObject sets a function that is called when the UID, generation or existence of an object with recorded changes has changed. It must
// be called before Run, and the function must not block.
func (h *Host) OnObject(f func(o externalchanges.Row, exists bool, content func() externalchanges.Content)) {
	h.onObject = f
}

// notifyObject calls the function for a change. before is nil for a new or deleted object.
func (h *Host) notifyObject(before, o client.Object, gone bool) {
	kind := recorded(o)
	if h.onObject == nil || kind == "" {
		return
	}
	exists := func(o client.Object) bool { return o.GetDeletionTimestamp() == nil }
	if !gone && before != nil && rowOf(kind, before) == rowOf(kind, o) && exists(before) == exists(o) {
		return
	}
	h.onObject(rowOf(kind, o), !gone && exists(o), func() externalchanges.Content {
		c, err := contentOf(o)
		if err != nil { // the ledger then says that it is not known
			h.log.Warn("the content of an object cannot be encoded", "kind", kind, "name", o.GetName(), "error", err)
		}
		return c
	})
}

// contentOf returns the content of an object with recorded changes.
func contentOf(o client.Object) (externalchanges.Content, error) {
	var spec any
	switch o := o.(type) {
	case *v1alpha1.AccessControlPolicy:
		spec = &o.Spec
	case *v1alpha1.ProtectedResource:
		spec = &o.Spec
	case *v1alpha1.ResourceClass:
		spec = &o.Spec
	case *v1alpha1.SubjectClass:
		spec = &o.Spec
	case *v1alpha1.ApprovalPolicy:
		spec = &o.Spec
	case *v1alpha1.Organization:
		spec = &o.Spec
	}
	text, err := externalchanges.Canonical(spec)
	return externalchanges.Content{Spec: text, Created: o.GetCreationTimestamp().Time}, err
}

// emptyObject returns an object of a kind with recorded changes, or nil.
func emptyObject(kind string) client.Object {
	for _, o := range []client.Object{
		&v1alpha1.AccessControlPolicy{},
		&v1alpha1.ProtectedResource{},
		&v1alpha1.ResourceClass{},
		&v1alpha1.SubjectClass{},
		&v1alpha1.ApprovalPolicy{},
		&v1alpha1.Organization{},
	} {
		if recorded(o) == kind {
			return o
		}
	}
	return nil
}

// CachedContent implements externalchanges.Host.
func (h *Host) CachedContent(ctx context.Context, k externalchanges.Key) (*externalchanges.RecordedObject, error) {
	o := emptyObject(k.Kind)
	if o == nil {
		return nil, nil
	}
	err := h.cache.Get(ctx, client.ObjectKey{Name: k.Name}, o)
	if apierrors.IsNotFound(err) || err == nil && o.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s of the cache: %w", k.Kind, k.Name, err)
	}
	content, err := contentOf(o)
	if err != nil {
		return nil, err
	}
	return &externalchanges.RecordedObject{Row: rowOf(k.Kind, o), Content: content}, nil
}

// OnInstruction sets a function that is called when a ProtectedResource or a ResourceClass has another instruction about waves than before.
// It must be called before Run, and the function must not block.
func (h *Host) OnInstruction(f func(i externalchanges.Instructed)) { h.onInstruction = f }

// notifyInstruction calls the function for a change. before is nil for a new object.
func (h *Host) notifyInstruction(before, o client.Object) {
	if h.onInstruction == nil || before != nil && before.GetAnnotations()[v1alpha1.AnnotationRollout] == o.GetAnnotations()[v1alpha1.AnnotationRollout] {
		return
	}
	if i, ok := instructed(o); ok {
		h.onInstruction(i)
	}
}

// instructed returns the instruction of an object, and false if it has none that the adapter can read.
func instructed(o client.Object) (externalchanges.Instructed, bool) {
	out := externalchanges.Instructed{Object: o.GetName()}
	switch o := o.(type) {
	case *v1alpha1.ProtectedResource:
		out.Kind, out.Resource = externalchanges.KindProtectedResource, string(o.Spec.Resource)
	case *v1alpha1.ResourceClass:
		out.Kind = externalchanges.KindResourceClass
	default:
		return externalchanges.Instructed{}, false
	}
	i, err := waves.InstructionOf(o)
	if err != nil || i == nil {
		return externalchanges.Instructed{}, false
	}
	out.Instruction = *i
	return out, true
}

// Instructions implements externalchanges.Host.
func (h *Host) Instructions(ctx context.Context) ([]externalchanges.Instructed, error) {
	var list v1alpha1.ProtectedResourceList
	if err := h.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the protected resources of the cache: %w", err)
	}
	var out []externalchanges.Instructed
	for i := range list.Items {
		if x, ok := instructed(&list.Items[i]); ok {
			out = append(out, x)
		}
	}
	var classes v1alpha1.ResourceClassList
	if err := h.cache.List(ctx, &classes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the resource classes of the cache: %w", err)
	}
	for i := range classes.Items {
		if x, ok := instructed(&classes.Items[i]); ok {
			out = append(out, x)
		}
	}
	return out, nil
}

// ObjectRows implements externalchanges.Host. It returns the objects of all kinds that recorded returns, because the changes that were made
// while no portal ran are found only by a comparison with these.
func (h *Host) ObjectRows(ctx context.Context) ([]externalchanges.Row, error) {
	var out []externalchanges.Row
	lists := []client.ObjectList{
		&v1alpha1.AccessControlPolicyList{},
		&v1alpha1.ProtectedResourceList{},
		&v1alpha1.ResourceClassList{},
		&v1alpha1.SubjectClassList{},
		&v1alpha1.ApprovalPolicyList{},
		&v1alpha1.OrganizationList{},
	}
	for _, list := range lists {
		if err := h.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the objects of the cache: %w", err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			if o, ok := item.(client.Object); ok && o.GetDeletionTimestamp() == nil {
				out = append(out, rowOf(recorded(o), o))
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list the objects of the cache: %w", err)
		}
	}
	return out, nil
}

// ObjectNow implements externalchanges.Host.
func (h *Host) ObjectNow(ctx context.Context, k externalchanges.Key) (*externalchanges.LiveObject, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(k.Kind))
	err := h.client.Get(ctx, client.ObjectKey{Name: k.Name}, o)
	if apierrors.IsNotFound(err) || err == nil && o.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", k.Kind, k.Name, err)
	}
	digest, err := event.Digest(o.Object)
	if err != nil {
		return nil, err
	}
	typed := emptyObject(k.Kind)
	if typed == nil {
		return nil, fmt.Errorf("%s %s is of another kind than those whose changes are recorded", k.Kind, k.Name)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
		return nil, fmt.Errorf("read the spec of %s %s: %w", k.Kind, k.Name, err)
	}
	content, err := contentOf(typed)
	if err != nil {
		return nil, err
	}
	return &externalchanges.LiveObject{Row: rowOf(k.Kind, o), Content: content, Digest: digest, Manager: manager(o.GetManagedFields()),
		Version: o.GetResourceVersion()}, nil
}

// manager returns the field manager of the last write, except writes of the status.
func manager(all []metav1.ManagedFieldsEntry) string {
	name, at := "", time.Time{}
	for _, f := range all {
		if f.Subresource == "" && f.Time != nil && !f.Time.Time.Before(at) {
			name, at = f.Manager, f.Time.Time
		}
	}
	return name
}

const (
	toldPage = 500
	// maxEvents is the maximum number of Events in one query.
	maxEvents = 20_000
)

// InNamespace sets the namespace of ACP in the host cluster, in which the Events of the adapter's webhook are. It must be called before
// Run; the default is event.Namespace.
func (h *Host) InNamespace(namespace string) { h.namespace = namespace }

func (h *Host) eventsNamespace() string { return cmp.Or(h.namespace, event.Namespace) }

// ReportedChanges implements externalchanges.Host.
func (h *Host) ReportedChanges(ctx context.Context, uids map[string]bool) ([]event.Change, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*writeTimeout)
	defer cancel()
	clients, err := kubernetes.NewForConfig(h.config)
	if err != nil {
		return nil, fmt.Errorf("make a client for events: %w", err)
	}
	var out []event.Change
	for uid := range uids {
		selector := fields.Set{"reason": event.Reason, "reportingController": event.Controller, "regarding.uid": uid}.String()
		options := metav1.ListOptions{FieldSelector: selector, Limit: toldPage}
		for read := 0; read < maxEvents; {
			list, err := clients.EventsV1().Events(h.eventsNamespace()).List(ctx, options)
			if err != nil {
				return nil, fmt.Errorf("list the events of the adapter's webhook: %w", err)
			}
			for i := range list.Items {
				if c, ok := event.Parse(&list.Items[i], h.eventsNamespace()); ok && c.UID == uid {
					out = append(out, c)
				}
			}
			read += len(list.Items)
			if options.Continue = list.Continue; options.Continue == "" {
				break
			}
		}
	}
	return out, nil
}

// recordingClient is a client that records its own changes, so that they are not attributed to others. If a record cannot be written, the ledger
// has a line too many, never one too few.
type recordingClient struct {
	client.Client
	note func(ctx context.Context, o externalchanges.OwnChange) error
	log  *slog.Logger
}

// RecordOwnChanges sets the function that records each write of this host's writers as the portal's own. It must be called
// before Writer and Urgent.
func (h *Host) RecordOwnChanges(note func(ctx context.Context, o externalchanges.OwnChange) error) {
	h.note = note
}

// RecordOwnInstructions sets the function that records an instruction about waves before this host's writers give it. It must be called
// before Writer and Urgent.
func (h *Host) RecordOwnInstructions(note func(ctx context.Context, i externalchanges.Instructed) error) {
	h.noteInstruction = func(ctx context.Context, i externalchanges.Instructed) {
		if err := note(ctx, i); err != nil {
			h.log.Warn("an instruction of the portal about waves could not be marked as its own: the ledger will also record it as one from outside",
				"object", i.Object, "id", i.ID, "error", err)
		}
	}
}

func (h *Host) recording(c client.Client) client.Client {
	if h.note == nil {
		return c
	}
	return &recordingClient{c, h.note, h.log}
}

func (n *recordingClient) own(ctx context.Context, o client.Object, generation int64) {
	if recorded(o) == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if err := n.note(ctx, externalchanges.OwnChange{UID: string(o.GetUID()), Generation: generation}); err != nil {
		n.log.Warn(
			"a change of the portal could not be marked as its own: the ledger will also record it as an external change",
			"kind",
			recorded(o),
			"name",
			o.GetName(),
			"error",
			err,
		)
	}
}

// Create implements client.Client.
func (n *recordingClient) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	err := n.Client.Create(ctx, o, opts...)
	if err == nil {
		n.own(ctx, o, o.GetGeneration())
	}
	return err
}

// Update implements client.Client. The object has the resource version that was read, so a new generation is the one
// that this update made.
func (n *recordingClient) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	before := o.GetGeneration()
	err := n.Client.Update(ctx, o, opts...)
	if err == nil && o.GetGeneration() != before {
		n.own(ctx, o, o.GetGeneration())
	}
	return err
}

// Delete implements client.Client.
func (n *recordingClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	err := n.Client.Delete(ctx, o, opts...)
	if err == nil {
		n.own(ctx, o, externalchanges.Deletion)
	}
	return err
}
