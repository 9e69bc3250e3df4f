package governanceapi

import (
	"cmp"
	"context"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/organization"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// ListOrganizations implements openapi.StrictServerInterface. The security team and auditors see all organizations, and everybody else
// those that they administer, because the administrators are a list of people to impersonate.
func (a *API) ListOrganizations(ctx context.Context, _ openapi.ListOrganizationsRequestObject) (openapi.ListOrganizationsResponseObject, error) {
	all, err := a.organizations()
	if err != nil {
		return nil, err
	}
	out := openapi.ListOrganizations200JSONResponse{Items: []openapi.Organization{}}
	for _, o := range all.index.All() {
		if view, visible := all.view(a.Catalog(), core.Caller(ctx), o); visible {
			out.Items = append(out.Items, view)
		}
	}
	return out, nil
}

// GetOrganization implements openapi.StrictServerInterface. An organization that the caller may not see does not exist for them.
func (a *API) GetOrganization(ctx context.Context, r openapi.GetOrganizationRequestObject) (openapi.GetOrganizationResponseObject, error) {
	all, err := a.organizations()
	if err != nil {
		return nil, err
	}
	if o := all.index.Get(v1alpha1.OrganizationName(r.Id)); o != nil {
		if view, visible := all.view(a.Catalog(), core.Caller(ctx), o); visible {
			view.Yaml = views.YAML(o.Spec)
			return openapi.GetOrganization200JSONResponse(view), nil
		}
	}
	return nil, &approval.Error{Code: approval.CodeNotFound, Message: message.OrganizationNotFound()}
}

// organizations are the organizations of the host cluster with the objects that belong to them.
type organizations struct {
	index    *organization.Index
	classes  []*v1alpha1.ResourceClass
	policies []*v1alpha1.ApprovalPolicy
}

func (a *API) organizations() (organizations, error) {
	index, err := a.Tickets.Organizations()
	if err != nil {
		return organizations{}, err
	}
	in, err := a.Input()
	if err != nil {
		return organizations{}, err
	}
	policies, err := a.ApprovalPolicies()
	return organizations{index: index, classes: in.ResourceClasses, policies: policies}, err
}

// view returns the view of an organization, and whether the caller may see it.
func (all organizations) view(c *catalog.Catalog, who approval.Actor, o *v1alpha1.Organization) (openapi.Organization, bool) {
	mine := approval.Administers(c, who.ID, o)
	if !mine && core.RequireGovernor(who) != nil {
		return openapi.Organization{}, false
	}
	accepted, why := all.index.Acceptance(o)
	out := openapi.Organization{
		Name:           o.Name,
		Title:          cmp.Or(o.Spec.Title, o.Name),
		Accepted:       accepted,
		Message:        core.OptionalMessage(why),
		Mine:           mine,
		Teams:          []openapi.OwnerRef{},
		Administrators: []openapi.OwnerRef{},
		Classes:        []openapi.OrganizationObject{},
		Policies:       []openapi.OrganizationObject{},
	}
	for _, team := range o.Spec.Teams {
		out.Teams = append(out.Teams, ownerRef(c, catalog.Owner{Kind: catalog.OwnerGroup, ID: string(team)}))
	}
	for _, x := range o.Spec.Administrators {
		kind, id, _ := strings.Cut(string(x), ":")
		owner := catalog.Owner{Kind: catalog.OwnerPerson, ID: id}
		if kind == approval.FromGroup {
			owner.Kind = catalog.OwnerGroup
		}
		out.Administrators = append(out.Administrators, ownerRef(c, owner))
	}
	if b := o.Spec.Bounds.Classes; b != nil {
		out.ClassBounds = classBounds(b)
	}
	if b := o.Spec.Bounds.Approvals; b != nil {
		out.ApprovalBounds = &openapi.OrganizationApprovalBounds{AllowAutoApprove: b.AllowAutoApprove, AllowReplaceOwners: b.AllowReplaceOwners}
		if b.MaxDuration != nil {
			out.ApprovalBounds.MaxDurationSeconds = new(int64(b.MaxDuration.Seconds()))
		}
	}
	if b := o.Spec.Bounds.Catalog; b != nil {
		out.CatalogBounds = &openapi.OrganizationCatalogBounds{
			Patterns:      names[string](b.Patterns),
			Kinds:         names[openapi.OrganizationCatalogBoundsKinds](b.Kinds),
			Sensitivities: names[openapi.Sensitivity](b.Sensitivities),
			Environments:  names[string](b.Environments),
		}
	}
	for _, x := range all.classes {
		if string(x.Spec.Organization) == o.Name {
			out.Classes = append(out.Classes, objectView(x.Name, all.index.ClassProblem(x)))
		}
	}
	for _, x := range all.policies {
		if string(x.Spec.Organization) == o.Name {
			out.Policies = append(out.Policies, objectView(x.Name, all.index.PolicyProblem(x)))
		}
	}
	return out, true
}

func objectView(name string, problem *policy.Problem) openapi.OrganizationObject {
	out := openapi.OrganizationObject{Name: name, Accepted: problem == nil}
	if problem != nil {
		out.Message = &problem.Message
	}
	return out
}

func ownerRef(c *catalog.Catalog, o catalog.Owner) openapi.OwnerRef {
	return openapi.OwnerRef{Kind: openapi.OwnerRefKind(o.Kind), Id: o.ID, DisplayName: c.OwnerName(o)}
}

func classBounds(b *v1alpha1.ClassBounds) *openapi.OrganizationClassBounds {
	out := &openapi.OrganizationClassBounds{
		Patterns:        names[string](b.Patterns),
		LabelKeys:       names[string](b.LabelKeys),
		Enforcers:       names[string](b.Enforcers),
		Sensitivities:   names[openapi.Sensitivity](b.Sensitivities),
		Actions:         names[string](b.Actions),
		DefaultModes:    names[string](b.DefaultModes),
		AllowOtherPorts: b.AllowOtherPorts,
		RequireWaves:    b.RequireWaves,
	}
	if c := b.Clusters; c != nil {
		out.Clusters = &openapi.OrganizationClusterBounds{Names: names[string](c.Names), MatchLabels: c.MatchLabels}
		if c.MatchLabels == nil {
			out.Clusters.MatchLabels = map[string]string{}
		}
	}
	return out
}

// names converts a list of names; the result is never nil.
func names[To, From ~string](list []From) []To {
	out := make([]To, len(list))
	for i, x := range list {
		out[i] = To(x)
	}
	return out
}
