package ticketapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// maxDraftEnforced is the maximum number of resources that a draft enforces.
const maxDraftEnforced = 50

// unnamedDraft is the name of a draft policy that has none. No object can have it.
const unnamedDraft = "(draft)"

// PreviewDraft implements openapi.StrictServerInterface: it replays recorded connections with a draft policy, with resources in Enforce, or
// both. Everybody may do this, and sees only the effect on connections that they may see.
func (a *API) PreviewDraft(ctx context.Context, r openapi.PreviewDraftRequestObject) (openapi.PreviewDraftResponseObject, error) {
	w, err := a.replayWindow(r.Body.Since, r.Body.Until)
	if err != nil {
		return nil, err
	}
	base, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	in, err := a.Input()
	if err != nil {
		return nil, err
	}
	touched, drafted := map[string]bool{}, ""
	if text := core.Value(r.Body.Policy); text != "" {
		draft, err := parseDraftPolicy(text)
		if err != nil {
			return nil, err
		}
		drafted = draft.Name
		in.Policies = append(slices.DeleteFunc(slices.Clone(in.Policies), func(p *v1alpha1.AccessControlPolicy) bool { return p.Name == draft.Name }), draft)
	}
	enforce := core.Value(r.Body.Enforce)
	if len(enforce) > maxDraftEnforced {
		return nil, core.InvalidField("enforce", message.FieldCount(maxDraftEnforced))
	}
	if core.Value(r.Body.Policy) == "" && len(enforce) == 0 {
		return nil, core.InvalidField("policy", message.ImpactDraftEmpty())
	}
	for _, id := range enforce {
		e, err := views.EntityOrNotFound(a.Catalog().Resource(id))
		if err != nil {
			return nil, err
		}
		in.Resources = withEnforced(in.Resources, e.Name)
		touched[e.Name] = true
	}
	out := emptyImpact(w)
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	after := base.Next(in)
	if err := checkDraftStatements(after, drafted); err != nil {
		return nil, err
	}
	for _, name := range policy.ChangedUnits(base, after) {
		touched[name] = true
	}
	found, err := a.replay(limited, base, after, slices.Sorted(maps.Keys(touched)), w)
	if err != nil {
		err = notReplayed(ctx, err, &out)
		return openapi.PreviewDraft200JSONResponse(out), err
	}
	who := core.Caller(ctx)
	a.impactOf(who, found, func(string) bool { return false }, who.Security || who.Auditor, &out)
	return openapi.PreviewDraft200JSONResponse(out), nil
}

// parseDraftPolicy reads an AccessControlPolicy, or its spec alone, from YAML or JSON.
func parseDraftPolicy(text string) (*v1alpha1.AccessControlPolicy, error) {
	if len(text) > maxSpec {
		return nil, core.InvalidField("policy", message.FieldMaxBytes(maxSpec))
	}
	data, err := specJSON(text)
	if err != nil {
		return nil, core.InvalidField("policy", message.ImpactDraftUnreadable(inputError(err)))
	}
	var head struct {
		Kind string `json:"kind"`
	}
	out := &v1alpha1.AccessControlPolicy{}
	var into any = &out.Spec
	if err := json.Unmarshal(data, &head); err == nil && head.Kind != "" {
		if head.Kind != "AccessControlPolicy" {
			return nil, core.InvalidField("policy", message.ImpactDraftKind(message.Quoted(head.Kind)))
		}
		into = out
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return nil, core.InvalidField("policy", message.ImpactDraftUnreadable(inputError(err)))
	}
	if out.Name == "" {
		out.Name = unnamedDraft
	}
	return out, nil
}

// inputError returns the text of an error about what the caller wrote, without more than the beginning of what the caller wrote and without the
// types of this program: a value of a wrong type is named by its field.
func inputError(err error) string {
	const most = 300
	text := []rune(err.Error())
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		text = []rune(fmt.Sprintf("%s cannot be a %s", wrong.Field, wrong.Value))
	}
	return string(text[:min(len(text), most)])
}

// checkDraftStatements returns an error about the first statement of the draft policy that is refused, so that it has no effect in any unit.
func checkDraftStatements(s *policy.Snapshot, name string) error {
	for _, r := range s.Refusals() {
		if r.Ref.Policy == name {
			return core.InvalidField("policy", message.ImpactDraftStatement(r.Ref.SID, r.Message))
		}
	}
	return nil
}

// withEnforced returns a copy of the resources in which one is in Enforce in every member, whether it is onboarded or not, and as if no rollout
// were in progress.
func withEnforced(all []*v1alpha1.ProtectedResource, name string) []*v1alpha1.ProtectedResource {
	out := slices.Clone(all)
	for i, p := range out {
		if string(p.Spec.Resource) == name {
			changed := *p
			changed.Spec.Mode, changed.Spec.ClusterModes, changed.Spec.TemporaryAudit = v1alpha1.ModeEnforce, nil, nil
			changed.Status.Rollout = nil
			out[i] = &changed
			return out
		}
	}
	return append(out, &v1alpha1.ProtectedResource{
		ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyNameFor(name)},
		Spec:       v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(name), Mode: v1alpha1.ModeEnforce},
	})
}
