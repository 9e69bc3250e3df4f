package preflight

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/message"
)

// GuardState returns the state of a member's guard, and a sentence about what is wrong.
func GuardState(f Facts, n Needs) (guard.State, message.Message) {
	if !f.ConfigRead() || !f.Guard.Unread.IsZero() {
		return guard.Unknown, f.Guard.Unread
	}
	return guard.Judge(f.Guard.Objects, Credentials(n.Keys), f.Engine.Writer())
}

// guardFindings checks the policies that protect the managed objects, and the mark of a downgrade.
func guardFindings(f Facts, n Needs) []Finding {
	var out []Finding
	if f.Mark != nil {
		out = append(
			out,
			Finding{Severity: Warns, Code: MemberDowngraded, Message: message.PreflightDowngraded(f.Mark.Message()), Remedy: message.RemedyResume()},
		)
	}
	if old(f.Version, oldestServer) {
		return out // which is a separate finding
	}
	state, why := GuardState(f, n)
	switch state {
	case guard.Missing:
		out = append(out, Finding{Severity: Warns, Code: GuardMissing, Message: why, Remedy: message.RemedyFix()})
	case guard.Changed:
		out = append(out, Finding{Severity: Warns, Code: GuardChanged, Message: why, Remedy: message.RemedyFix()})
	case guard.Unknown:
		out = append(out, Finding{Severity: Warns, Code: GuardUnread, Message: message.PreflightGuardUnread(why), Remedy: message.RemedyApplyMemberRbac()})
	case guard.Present:
	}
	return out
}

// readGuard reads only the policies that ACP renders, because the account may read no others.
func readGuard(ctx context.Context, c dynamic.Interface) Guard {
	var out Guard
	for _, name := range []string{guard.PolicyWriters, guard.PolicyDowngrade, guard.PolicyClassLabels} {
		for _, gvr := range []schema.GroupVersionResource{guard.PolicyResource, guard.BindingResource} {
			o, err := c.Resource(gvr).Get(ctx, name, metav1.GetOptions{})
			switch {
			case err == nil:
				out.Objects = append(out.Objects, o)
			case !apierrors.IsNotFound(err):
				return Guard{Unread: unread(err, gvr.Resource+" "+name)}
			}
		}
	}
	return out
}

// readMark reads the mark of a downgrade.
func readMark(ctx context.Context, c dynamic.Interface) (*guard.DowngradeMark, message.Message) {
	mark, err := c.Resource(guard.DowngradeMarkResource).Namespace(guard.Namespace).Get(ctx, guard.DowngradeMarkName, metav1.GetOptions{})
	switch {
	case err == nil:
		d := guard.ParseDowngradeMark(mark)
		return &d, message.Message{}
	case apierrors.IsNotFound(err):
		return nil, message.Message{}
	}
	return nil, unread(err, "ConfigMap "+guard.Namespace+"/"+guard.DowngradeMarkName)
}
