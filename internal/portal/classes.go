package portal

import (
	"cmp"
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/change"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// ListClasses implements openapi.StrictServerInterface.
func (a *api) ListClasses(context.Context, openapi.ListClassesRequestObject) (openapi.ListClassesResponseObject, error) {
	in, err := a.input()
	if err != nil {
		return nil, err
	}
	c := a.Catalog()
	var problems []policy.Problem
	if snap, ok := a.Host.Snapshot(); ok {
		problems = snap.Problems()
	}
	applications, resources := c.Applications(), c.Resources()
	out := openapi.ListClasses200JSONResponse{Items: []openapi.ClassInfo{}}
	for _, x := range in.ResourceClasses {
		out.Items = append(out.Items, classInfo(problems, openapi.ClassInfoKindResourceClass, x.Name, x.Spec.Pattern, string(x.Spec.LabelKey), x.Status.Conditions, x.Spec, resources))
	}
	for _, x := range in.SubjectClasses {
		out.Items = append(out.Items, classInfo(problems, openapi.ClassInfoKindSubjectClass, x.Name, x.Spec.Pattern, string(x.Spec.LabelKey), x.Status.Conditions, x.Spec, applications))
	}
	slices.SortFunc(out.Items, func(x, y openapi.ClassInfo) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Name, y.Name))
	})
	return out, nil
}

func classInfo(problems []policy.Problem, kind openapi.ClassInfoKind, name string, pattern v1alpha1.NamePattern, key string, conditions []metav1.Condition, spec any, entities []catalog.Entity) openapi.ClassInfo {
	out := openapi.ClassInfo{Kind: kind, Name: name, Pattern: string(pattern), LabelKey: key, Yaml: core.Value(asYAML(spec))}
	for _, cond := range conditions {
		if cond.Type == v1alpha1.ConditionAccepted {
			out.Accepted = new(cond.Status == metav1.ConditionTrue)
			if !*out.Accepted {
				out.Message = core.OptionalMessage(problemOf(problems, string(kind), name, cond.Message))
			}
		}
	}
	stem, wild := strings.CutSuffix(string(pattern), "*")
	for _, e := range entities {
		if e.Name == stem || wild && strings.HasPrefix(e.Name, stem) {
			out.Members++
		}
	}
	return out
}

// problemOf returns why an object is not accepted. The condition of its status has only a text; if a problem that the
// portal finds in the same objects has this text, the message has its code, too.
func problemOf(problems []policy.Problem, kind, name, text string) message.Message {
	for i := range problems {
		if p := &problems[i]; p.Kind == kind && p.Name == name && p.Message.Text == text {
			return p.Message
		}
	}
	return message.Verbatim(text)
}

func (a *api) input() (policy.Input, error) {
	in, ok := a.Host.Input()
	if !ok {
		return in, approval.HostUnknown()
	}
	return in, nil
}

// GetTicketChange implements openapi.StrictServerInterface.
func (a *api) GetTicketChange(ctx context.Context, r openapi.GetTicketChangeRequestObject) (openapi.GetTicketChangeResponseObject, error) {
	t, err := a.ticket(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	who, err := a.Tickets.Actor(core.RequestContext(ctx), core.Caller(ctx))
	if err != nil {
		return nil, err
	}
	v, err := a.changeView(who, t.Kind, t.Items, approval.Decides(who, t) && t.Undecided())
	return openapi.GetTicketChange200JSONResponse(v), err
}

// members returns the members of the fleet, with the properties that determine what is placed in them.
func (a *api) members() []change.Member {
	return change.MembersOf(a.Host.Members())
}

// changeView returns the view of the changes of items. Existing access to a resource is shown to those who may see it on the page
// of the resource, and to approvers until the item is decided, because they need to know what they add to.
func (a *api) changeView(who approval.Actor, kind approval.Kind, items []approval.Item, decides bool) (openapi.ChangeView, error) {
	snap, err := a.snapshot()
	if err != nil {
		return openapi.ChangeView{}, err
	}
	in, err := a.input()
	if err != nil {
		return openapi.ChangeView{}, err
	}
	c, hidden, whole := a.Catalog(), false, in
	for _, it := range items {
		if e, _ := c.ByName(it.ResourceName); it.ResourceName == "" || decides || mayInspect(c, who, e) {
			continue
		}
		hidden = true
		in = change.Hide(in, it.ResourceName, func(subject string) bool { return subject == it.ApplicationName || ownsApplication(c, who, subject) })
	}
	v := change.Of(snap, in, a.members(), kind, items, a.Now())
	if hidden {
		v.Note(message.ChangePartsHidden())
		v.Refuse(snap, whole, a.members(), kind, items, a.Now())
	}
	out := openapi.ChangeView{Objects: []openapi.ObjectDiff{}}
	if len(v.Notes) > 0 {
		out.Notes = &v.Notes
	}
	for _, o := range v.Objects {
		d := openapi.ObjectDiff{Layer: new(openapi.ObjectDiffLayer(o.Layer)), Kind: o.Kind, Name: o.Name, Enforcer: core.Optional(o.Enforcer), Before: o.Before, After: o.After}
		if o.Clusters != nil {
			d.Clusters = &o.Clusters
		}
		out.Objects = append(out.Objects, d)
	}
	if len(v.Refused) > 0 {
		out.Refused = &v.Refused
	}
	return out, nil
}
