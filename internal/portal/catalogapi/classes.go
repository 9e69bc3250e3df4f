package catalogapi

import (
	"cmp"
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
	"github.com/acp-io/acp/internal/rollout"
)

// ListClasses implements openapi.StrictServerInterface.
func (a *API) ListClasses(ctx context.Context, _ openapi.ListClassesRequestObject) (openapi.ListClassesResponseObject, error) {
	in, err := a.Input()
	if err != nil {
		return nil, err
	}
	c := a.Catalog()
	var problems []policy.Problem
	if snap, ok := a.Host.Snapshot(); ok {
		problems = snap.Problems()
	}
	organizations, err := a.Tickets.Organizations()
	if err != nil {
		return nil, err
	}
	problems = append(problems, organizations.Problems(in.ResourceClasses, nil)...)
	applications, resources := c.Applications(), c.Resources()
	out := openapi.ListClasses200JSONResponse{Items: []openapi.ClassInfo{}}
	for _, x := range in.ResourceClasses {
		info := classInfo(problems, openapi.ClassInfoKindResourceClass, x.Name, x.Spec.Pattern, string(x.Spec.LabelKey), x.Status.Conditions, x.Spec, resources)
		info.Organization = core.Optional(string(x.Spec.Organization))
		if waits := rollout.WaitingClass(x); info.Message == nil && !waits.IsZero() {
			info.Message = core.OptionalMessage(waits)
		}
		info.Waves = views.ClassWaves(c, organizations, core.Caller(ctx), x)
		out.Items = append(out.Items, info)
	}
	for _, x := range in.SubjectClasses {
		out.Items = append(
			out.Items,
			classInfo(problems, openapi.ClassInfoKindSubjectClass, x.Name, x.Spec.Pattern, string(x.Spec.LabelKey), x.Status.Conditions, x.Spec, applications),
		)
	}
	slices.SortFunc(out.Items, func(x, y openapi.ClassInfo) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Name, y.Name))
	})
	return out, nil
}

func classInfo(
	problems []policy.Problem,
	kind openapi.ClassInfoKind,
	name string,
	pattern v1alpha1.NamePattern,
	key string,
	conditions []metav1.Condition,
	spec any,
	entities []catalog.Entity,
) openapi.ClassInfo {
	out := openapi.ClassInfo{Kind: kind, Name: name, Pattern: string(pattern), LabelKey: key, Yaml: core.Value(views.YAML(spec))}
	for _, cond := range conditions {
		if cond.Type == v1alpha1.ConditionAccepted {
			out.Accepted = new(cond.Status == metav1.ConditionTrue)
			if !*out.Accepted {
				out.Message = core.OptionalMessage(governance.AcceptanceOf(problems, string(kind), name, cond.Message))
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
