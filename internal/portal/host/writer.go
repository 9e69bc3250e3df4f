package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/externalchanges"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/wallclock"
)

const (
	annotationResource = "acp.io/resource"
	// annotationFence is the sid that was removed last. Changing it changes the resource version, so that a write that was prepared before
	// the removal fails, even if there was nothing to remove.
	annotationFence = "acp.io/portal-fence"
	// writeTimeout is less than the worker's lease.
	writeTimeout = 3 * time.Second
	maxConflicts = 20
)

// Writer implements approval.PolicyWriter with a client that reads from the API server.
type Writer struct {
	Client client.Client
	// Ledger prevents grants by a restored database. If it is nil, there is no fence.
	Ledger Ledger
	// Now is the clock for pruning statements that ended long ago. If it is nil, none are pruned.
	Now func() time.Time
	// NoteInstruction records an instruction about waves before it is given. It may be nil.
	NoteInstruction func(ctx context.Context, i externalchanges.Instructed)
}

// Writer returns a writer for this host cluster.
func (h *Host) Writer() *Writer {
	return &Writer{Client: h.recording(h.client), Now: wallclock.Now, NoteInstruction: h.noteInstruction}
}

// UnlimitedWriter returns a Writer without a rate limit, for opening many resources in an emergency. The API server's own fairness still
// applies.
func (h *Host) UnlimitedWriter() *Writer {
	return &Writer{Client: h.recording(h.urgent), Now: wallclock.Now, NoteInstruction: h.noteInstruction}
}

// Put writes the statements of a granted item to the policies of the resource. It implements approval.PolicyWriter.
func (w *Writer) Put(ctx context.Context, name, resource string, statements []v1alpha1.Statement, check approval.Check) (approval.Written, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	base, _ := policy.SplitPolicyShard(name)
	read := func(ctx context.Context) (*v1alpha1.AccessControlPolicy, bool, error) {
		return w.room(ctx, base, resource, statements)
	}
	sids := make([]string, len(statements))
	for i, s := range statements {
		sids[i] = s.SID
	}
	return w.edit(ctx, resource, true, read, check, sids, func(p *v1alpha1.AccessControlPolicy) {
		for _, s := range statements {
			i := slices.IndexFunc(p.Spec.Statements, func(x v1alpha1.Statement) bool { return x.SID == s.SID })
			if i < 0 {
				p.Spec.Statements = append(p.Spec.Statements, s)
			} else {
				p.Spec.Statements[i] = s
			}
		}
	})
}

// Replace implements approval.PolicyWriter. It looks in all policies of the portal about the resource.
func (w *Writer) Replace(ctx context.Context, name, resource string, statement v1alpha1.Statement, current func(v1alpha1.Statement) bool,
	check approval.Check) (approval.Written, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	base, known := policy.SplitPolicyShard(name)
	replaced := func(p *v1alpha1.AccessControlPolicy) int {
		return slices.IndexFunc(p.Spec.Statements, func(s v1alpha1.Statement) bool { return s.SID == statement.SID && current(s) })
	}
	for n, last := 1, known; n <= last; n++ {
		shard := policy.PolicyShard(base, n)
		p, exists, err := w.read(ctx, shard)
		if err != nil {
			return approval.Written{}, err
		}
		if n == 1 && exists {
			last = max(known, policy.ShardCount(p))
		}
		if !exists || replaced(p) < 0 {
			continue
		}
		gone := false
		read := func(ctx context.Context) (*v1alpha1.AccessControlPolicy, bool, error) { return w.read(ctx, shard) }
		stillThere := func(ctx context.Context, present bool) error {
			if gone {
				return errNothingToReplace
			}
			return check(ctx, present)
		}
		written, err := w.edit(ctx, resource, true, read, stillThere, []string{statement.SID}, func(p *v1alpha1.AccessControlPolicy) {
			i := replaced(p)
			if gone = i < 0; !gone {
				p.Spec.Statements[i] = statement
			}
		})
		if errors.Is(err, errNothingToReplace) {
			continue
		}
		return written, err
	}
	return approval.Written{}, check(ctx, false)
}

// errNothingToReplace ends the edit of a policy that no longer has the statement.
var errNothingToReplace = errors.New("the policy no longer has the statement")

// Drop implements approval.PolicyWriter.
func (w *Writer) Drop(ctx context.Context, name, resource string, sids []string, check approval.Check) (approval.Written, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	base, known := policy.SplitPolicyShard(name)
	var out approval.Written
	for n, last := 1, known; n <= last; n++ {
		shard, held := policy.PolicyShard(base, n), false
		read := func(ctx context.Context) (*v1alpha1.AccessControlPolicy, bool, error) { return w.read(ctx, shard) }
		written, err := w.edit(ctx, resource, false, read, check, sids, func(p *v1alpha1.AccessControlPolicy) {
			if n == 1 {
				last = max(known, policy.ShardCount(p))
			}
			before := len(p.Spec.Statements)
			p.Spec.Statements = slices.DeleteFunc(p.Spec.Statements, func(s v1alpha1.Statement) bool { return slices.Contains(sids, s.SID) })
			held = len(p.Spec.Statements) < before
			for _, sid := range sids {
				p.Annotations[annotationFence] = sid
			}
		})
		if err != nil {
			return approval.Written{}, err
		}
		if out.Policy == "" || n == known || held {
			out = written
		}
	}
	return out, nil
}

// strictly makes the API server refuse a field that it does not have, because its custom resource definition is older, instead of dropping it:
// a statement without its hours would give access at any hour.
const strictly = client.FieldValidation(metav1.FieldValidationStrict)

// edit reads, checks and writes with the resource version that was read. It starts again after a conflict. The sids name the
// statements that change.
func (w *Writer) edit(ctx context.Context, resource string, grants bool, read func(context.Context) (*v1alpha1.AccessControlPolicy, bool, error),
	check approval.Check, sids []string, change func(*v1alpha1.AccessControlPolicy)) (approval.Written, error) {
	for range maxConflicts {
		found, exists, err := read(ctx)
		if err != nil {
			return approval.Written{}, err
		}
		name, p := found.Name, *found
		before := p.DeepCopy()
		own(&p, resource)
		if w.Now != nil {
			prune(&p, w.Now())
		}
		change(&p)
		w.addTraces(ctx, before, &p, sids)
		fenced, err := w.fenced(ctx, before)
		if err != nil {
			return approval.Written{}, err
		}
		if fenced && grants {
			return approval.Written{}, behind(name)
		}
		if !fenced && !equality.Semantic.DeepEqual(before, &p) {
			if err := w.mark(ctx, &p); err != nil {
				return approval.Written{}, err
			}
		}
		if err := check(ctx, exists && equality.Semantic.DeepEqual(statementsOf(before, sids), statementsOf(&p, sids))); err != nil {
			return approval.Written{}, err
		}
		switch {
		case !exists:
			err = w.Client.Create(ctx, &p, strictly)
		case equality.Semantic.DeepEqual(before, &p):
			err = nil
		default:
			err = w.Client.Update(ctx, &p, strictly)
		}
		if err == nil {
			return approval.Written{Generation: p.Generation, UID: string(p.UID), Policy: p.Name}, nil
		}
		if !isConflict(exists, err) {
			return approval.Written{}, refused(name, err)
		}
	}
	return approval.Written{}, fmt.Errorf("write a policy of %s: it changed %d times in between", resource, maxConflicts)
}

// statementsOf returns the statements of a policy with some sids.
func statementsOf(p *v1alpha1.AccessControlPolicy, sids []string) []v1alpha1.Statement {
	return slices.DeleteFunc(slices.Clone(p.Spec.Statements), func(s v1alpha1.Statement) bool { return !slices.Contains(sids, s.SID) })
}

// isConflict reports whether an error is a conflict with another write.
func isConflict(existed bool, err error) bool {
	return apierrors.IsConflict(err) || !existed && apierrors.IsAlreadyExists(err) || existed && apierrors.IsNotFound(err)
}

func own(p *v1alpha1.AccessControlPolicy, resource string) {
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Labels[v1alpha1.LabelManagedBy] = v1alpha1.ManagedByPortal
	p.Annotations[annotationResource] = resource
}

// refused returns permanent refusals of the API server as RefusedError, so that they are not tried again.
func refused(name string, err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) &&
		(apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)) {
		return &approval.RefusedError{Message: message.Verbatim(status.Status().Message)}
	}
	return fmt.Errorf("write policy %s: %w", name, err)
}
