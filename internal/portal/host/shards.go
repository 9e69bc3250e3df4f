package host

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/change"
)

// expiredKept is how long an expired statement of the portal stays in its policy. Usually its ticket removes it at once; this is for
// statements whose ticket does not exist, for example after the database was restored.
const expiredKept = 7 * 24 * time.Hour

// read returns a policy from the API server, or an empty one of that name and false.
func (w *Writer) read(ctx context.Context, name string) (*v1alpha1.AccessControlPolicy, bool, error) {
	p := &v1alpha1.AccessControlPolicy{}
	err := w.Client.Get(ctx, client.ObjectKey{Name: name}, p)
	if apierrors.IsNotFound(err) {
		return &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read policy %s: %w", name, err)
	}
	return p, true, nil
}

// room returns the shard that has one of the statements already, or else the first that has room for them. A new shard is created
// without statements and read again, so that every statement is written with the resource version of an existing policy. Fencing all
// existing shards then fences every concurrent write.
func (w *Writer) room(ctx context.Context, base, resource string, statements []v1alpha1.Statement) (*v1alpha1.AccessControlPolicy, bool, error) {
	first, exists, err := w.read(ctx, base)
	if err != nil || !exists {
		return first, exists, err
	}
	has := func(s v1alpha1.Statement) bool {
		return slices.ContainsFunc(statements, func(x v1alpha1.Statement) bool { return x.SID == s.SID })
	}
	var free *v1alpha1.AccessControlPolicy
	count := policy.ShardCount(first)
	for n := 1; n <= count; n++ {
		p := first
		if n > 1 {
			if p, exists, err = w.read(ctx, policy.PolicyShard(base, n)); err != nil {
				return nil, false, err
			}
			if !exists { // it was announced in the first shard and not created yet, or it was deleted manually
				if p, err = w.begin(ctx, p, resource); err != nil {
					return nil, false, err
				}
			}
		}
		if slices.ContainsFunc(p.Spec.Statements, has) {
			return p, true, nil
		}
		if free == nil && len(p.Spec.Statements)+len(statements) <= v1alpha1.MaxStatements {
			free = p
		}
	}
	if free != nil {
		return free, true, nil
	}
	// The first shard announces the next one before it exists, so that a removal of a statement searches it, too.
	next := first.DeepCopy()
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[v1alpha1.AnnotationPolicyShards] = strconv.Itoa(count + 1)
	if policy.ShardCount(next) != count+1 {
		return nil, false, &approval.RefusedError{Message: message.WriteRefusedTooManyPolicies(count)}
	}
	if err := w.Client.Update(ctx, next); err != nil && !apierrors.IsConflict(err) {
		return nil, false, refused(base, err)
	}
	return w.room(ctx, base, resource, statements)
}

// begin creates an empty shard and returns it.
func (w *Writer) begin(ctx context.Context, p *v1alpha1.AccessControlPolicy, resource string) (*v1alpha1.AccessControlPolicy, error) {
	own(p, resource)
	if err := w.Client.Create(ctx, p); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, refused(p.Name, err)
	}
	p, exists, err := w.read(ctx, p.Name)
	if err == nil && !exists {
		err = fmt.Errorf("policy %s was deleted while it was created", p.Name)
	}
	return p, err
}

// prune removes allows of the portal from a policy that ended long ago. A ticket cannot write them again, because statements are not
// written after their end.
func prune(p *v1alpha1.AccessControlPolicy, now time.Time) {
	over := func(s v1alpha1.Statement) bool {
		_, ours := approval.TicketOfSID(s.SID)
		return ours && s.Effect == v1alpha1.EffectAllow && s.NotAfter != nil && now.Sub(s.NotAfter.Time) > expiredKept
	}
	if slices.ContainsFunc(p.Spec.Statements, over) {
		p.Spec.Statements = slices.DeleteFunc(p.Spec.Statements, over)
	}
}

// DefaultMode returns the mode in which a resource is onboarded with its first statement, that of the sid, or an empty string if it is
// not onboarded.
func (h *Host) DefaultMode(resource, sid string) (v1alpha1.Mode, error) {
	s, ok := h.Snapshot()
	if !ok {
		return "", approval.HostUnknown()
	}
	c, ok := s.ResourceClassOf(resource)
	if !ok || c.Spec.DefaultMode == "" || h.Protection(resource) != nil {
		return "", nil
	}
	in, ok := h.Input()
	if !ok {
		return "", approval.HostUnknown()
	}
	if hasStatement(in.Policies, resource, sid) {
		return "", nil
	}
	return c.Spec.DefaultMode, nil
}

// hasStatement reports whether a statement of a policy, other than that of the sid, names the resource exactly.
func hasStatement(all []*v1alpha1.AccessControlPolicy, resource, sid string) bool {
	return slices.ContainsFunc(all, func(p *v1alpha1.AccessControlPolicy) bool {
		return slices.ContainsFunc(p.Spec.Statements, func(s v1alpha1.Statement) bool {
			return change.NamedBeside(p.Name, &s, resource, sid)
		})
	})
}
