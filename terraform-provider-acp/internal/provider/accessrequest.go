package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/acp-io/acp/internal/portalclient"
)

// The limits of a request for access in the portal.
const (
	minDuration = 5 * time.Minute
	maxDuration = 366 * 24 * time.Hour
)

// accessRequest is the resource acp_access_request: a ticket that requests access for an application.
type accessRequest struct{ portal *portal }

func newAccessRequest() resource.Resource { return &accessRequest{} }

type accessRequestModel struct {
	ID          types.String `tfsdk:"id"`
	Application types.String `tfsdk:"application"`
	Resource    types.String `tfsdk:"resource"`
	Actions     types.Set    `tfsdk:"actions"`
	Duration    types.String `tfsdk:"duration"`
	Hours       types.Object `tfsdk:"hours"`
	Reason      types.String `tfsdk:"reason"`
	WaitFor     types.String `tfsdk:"wait_for"`
	Timeout     types.String `tfsdk:"timeout"`
	State       types.String `tfsdk:"state"`
	URL         types.String `tfsdk:"url"`
	ExpiresAt   types.String `tfsdk:"expires_at"`
	Message     types.String `tfsdk:"message"`
	WaitingFor  types.List   `tfsdk:"waiting_for"`
	Clusters    types.Map    `tfsdk:"clusters"`
}

// Metadata implements resource.Resource.
func (r *accessRequest) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_access_request"
}

// Schema implements resource.Resource.
func (r *accessRequest) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A request for access of an application to a resource. Creating it submits a ticket; destroying it withdraws the ticket, " +
			"or revokes the access. " +
			"The token needs the scopes `read` and `tickets:write`, and its owner must own the application.",
		Attributes: map[string]schema.Attribute{
			"application": schema.StringAttribute{Required: true, PlanModifiers: replace, Validators: []validator.String{notBlank(128)},
				MarkdownDescription: "Catalog id of the application. A change requests access anew."},
			"resource": schema.StringAttribute{Required: true, PlanModifiers: replace, Validators: []validator.String{notBlank(128)},
				MarkdownDescription: "Catalog id of the resource. A change requests access anew."},
			"actions": schema.SetAttribute{Required: true, ElementType: types.StringType, PlanModifiers: []planmodifier.Set{setplanmodifier.RequiresReplace()},
				MarkdownDescription: "The actions, such as `redis:connect`. A change requests access anew."},
			"duration": schema.StringAttribute{
				Optional: true,
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplaceIf(
					func(_ context.Context, req planmodifier.StringRequest, resp *stringplanmodifier.RequiresReplaceIfFuncResponse) {
						resp.RequiresReplace = req.PlanValue.IsUnknown() || !sameSpan(req.StateValue.ValueString(), req.PlanValue.ValueString())
					}, "Another duration requests access anew.", "Another duration requests access anew.")},
				Validators: []validator.String{spanBetween(minDuration, maxDuration)},
				MarkdownDescription: "How long the access lasts, such as `8h`, `30d` or `12w`; without it until it is revoked. Another duration " +
					"requests access anew.",
			},
			"hours": hoursAttribute(),
			"reason": schema.StringAttribute{
				Required:   true,
				Validators: []validator.String{notBlank(mostReason)},
				MarkdownDescription: "The reason, which the approvers see. A change does not change the ticket that exists; after a refusal it makes " +
					"a new request.",
			},
			"wait_for": waitForAttribute("the access is in force in every member"),
			"timeout":  timeoutAttribute(),
			"id": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "Id of the ticket, such as `T-42`.",
			},
			"url": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "Page of the ticket.",
			},
			"state": schema.StringAttribute{Computed: true, MarkdownDescription: "State of the ticket, such as `pending`, `effective` or `rejected`."},
			"expires_at": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "When the access ends, in RFC 3339; null if it has no end or has not begun.",
			},
			"message": schema.StringAttribute{Computed: true, MarkdownDescription: "What the ticket waits for, or why it failed."},
			"waiting_for": schema.ListAttribute{
				Computed:            true,
				ElementType:         types.StringType,
				MarkdownDescription: "The approvers, or the members, that the ticket waits for.",
			},
			"clusters": schema.MapAttribute{
				Computed:            true,
				ElementType:         types.StringType,
				MarkdownDescription: "State of the access in each member that the portal lists, such as `Realized`.",
			},
		},
	}
}

// waitForAttribute returns the attribute wait_for.
func waitForAttribute(realized string) schema.StringAttribute {
	return schema.StringAttribute{
		Optional:   true,
		Computed:   true,
		Default:    stringdefault.StaticString(waitSubmitted),
		Validators: []validator.String{oneOf(waitSubmitted, waitApproved, waitRealized)},
		MarkdownDescription: "How long an apply waits: `submitted` (the default) not at all, `approved` until everybody has approved, `realized` " +
			"until " + realized + ".",
	}
}

// timeoutAttribute returns the attribute timeout.
func timeoutAttribute() schema.StringAttribute {
	return schema.StringAttribute{
		Optional:            true,
		Computed:            true,
		Default:             stringdefault.StaticString(defaultTimeout),
		Validators:          []validator.String{spanBetween(time.Second, maxTimeout)},
		MarkdownDescription: "Time limit of waiting, by default `" + defaultTimeout + "`. The ticket continues afterwards.",
	}
}

// Configure implements resource.ResourceWithConfigure.
func (r *accessRequest) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.portal = configured(req.ProviderData, &resp.Diagnostics)
}

// ImportState implements resource.ResourceWithImportState.
func (r *accessRequest) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	if err := checkTicketID(req.ID); err != nil {
		resp.Diagnostics.AddError("The ticket cannot be imported", err.Error())
		return
	}
	t, err := r.portal.ticket(ctx, req.ID)
	if err != nil {
		fail(&resp.Diagnostics, "The ticket cannot be imported", err)
		return
	}
	switch {
	case t.Kind != portalclient.TicketKindGrant || len(t.Items) != 1:
		resp.Diagnostics.AddError("The ticket cannot be imported",
			fmt.Sprintf("%s is a ticket of the kind %s with %d items. Only requests for access with one item can be imported.", t.Id, t.Kind, len(t.Items)))
		return
	case denied(t.State) || gone(t.State):
		resp.Diagnostics.AddError("The ticket cannot be imported", r.portal.why(t))
		return
	}
	resource.ImportStatePassthroughID(ctx, path.Root("id"), req, resp)
}

// ModifyPlan implements resource.ResourceWithModifyPlan. A request that was refused is not repeated unless something in it changes.
func (r *accessRequest) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || req.State.Raw.IsNull() {
		return
	}
	var plan, state accessRequestModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	// The framework does not pass the attributes that require a replacement.
	replaced := !plan.Application.Equal(state.Application) || !plan.Resource.Equal(state.Resource) || !plan.Actions.Equal(state.Actions) ||
		!plan.Hours.Equal(state.Hours) || plan.Duration.IsUnknown() || !sameSpan(plan.Duration.ValueString(), state.Duration.ValueString())
	s := portalclient.TicketState(state.State.ValueString())
	switch {
	case denied(s) && !replaced && plan.Reason.Equal(state.Reason):
		resp.Diagnostics.AddError(
			"The access was refused",
			fmt.Sprintf("%s\n%s is %s, and is not requested again as it is. Change the reason or the request, or remove the "+
				"resource from the configuration.\n%s", state.Message.ValueString(), state.ID.ValueString(), s, state.URL.ValueString()),
		)
	case denied(s) && !replaced:
		resp.RequiresReplace = append(resp.RequiresReplace, path.Root("reason"))
		for _, name := range []string{"id", "url"} {
			resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root(name), types.StringUnknown())...)
		}
	case replaced && reached(s, waitApproved):
		resp.Diagnostics.AddWarning(
			"The access ends before it is granted again",
			fmt.Sprintf("%s is %s. Its access is revoked before the new request is submitted, "+
				"and the new request needs approvals. To keep the access, do not change the request; extend it in the portal or with kubectl acp "+
				"extend %s.\n%s",
				state.ID.ValueString(), s, state.ID.ValueString(), state.URL.ValueString()),
		)
	}
}

// Create implements resource.Resource.
func (r *accessRequest) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m accessRequestModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	var actions []string
	if resp.Diagnostics.Append(m.Actions.ElementsAs(ctx, &actions, false)...); resp.Diagnostics.HasError() {
		return
	}
	slices.Sort(actions)
	hours, diags := weeklyHours(ctx, m.Hours)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	kind := portalclient.TicketKindGrant
	body := portalclient.NewTicket{Kind: &kind, Reason: m.Reason.ValueString(), Items: []portalclient.NewTicketItem{{
		Application: m.Application.ValueStringPointer(), Resource: m.Resource.ValueStringPointer(), Actions: &actions, Hours: hours}}}
	if d := m.Duration.ValueString(); d != "" {
		span, err := parseSpan(d)
		if err != nil {
			resp.Diagnostics.AddAttributeError(path.Root("duration"), "The value cannot be used", err.Error())
			return
		}
		seconds := int64(span / time.Second)
		body.DurationSeconds = &seconds
	}
	t, err := r.portal.submit(ctx, body)
	if id := duplicateOf(err); id != "" {
		resp.Diagnostics.AddError(
			"The access is requested already",
			fmt.Sprintf(
				"%s requests the same. If this configuration is to manage it, import it: terraform import <address of the resource> %s\n%s",
				id,
				id,
				r.portal.ticketURL(id),
			),
		)
		return
	}
	if err != nil {
		fail(&resp.Diagnostics, "The access cannot be requested", err)
		return
	}
	// The state is stored before waiting, so that the ticket is not lost when Terraform is interrupted.
	resp.Diagnostics.Append(m.read(ctx, r.portal, t)...)
	if resp.Diagnostics.Append(resp.State.Set(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	if len(t.Items) > 0 && t.Items[0].Target != nil {
		of := t.Items[0].Target.Ticket
		resp.Diagnostics.AddWarning(
			"The request extends access that is in force",
			fmt.Sprintf(
				"%s gives the same access already, so %s extends it. When this resource is destroyed, only the extension ends.\n%s",
				of,
				t.Id,
				r.portal.ticketURL(of),
			),
		)
	}
	if t, err = r.waited(ctx, &m, t, &resp.Diagnostics); err != nil && (denied(t.State) || gone(t.State)) {
		resp.State.RemoveResource(ctx) // there is nothing that could be destroyed
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// waited waits as the model requests, updates the model, and reports why the request is not in force.
func (r *accessRequest) waited(ctx context.Context, m *accessRequestModel, t portalclient.Ticket, diags *diag.Diagnostics) (portalclient.Ticket, error) {
	most, err := parseSpan(m.Timeout.ValueString())
	if err != nil {
		diags.AddAttributeError(path.Root("timeout"), "The value cannot be used", err.Error())
		return t, err
	}
	t, err = r.portal.awaitForce(ctx, t, m.WaitFor.ValueString(), most)
	diags.Append(m.read(ctx, r.portal, t)...)
	reportWait(diags, t.Id, err)
	return t, err
}

// reportWait adds an error about a ticket that is not what was waited for.
func reportWait(diags *diag.Diagnostics, id string, err error) {
	var ended *endedError
	switch {
	case err == nil:
	case errors.As(err, &ended):
		diags.AddError("The request is not in force", ended.text)
	case errors.Is(err, errTimeout):
		diags.AddError("The request is not in force yet", err.Error()+
			"\nTerraform marks a resource that is created with an error as tainted, and the next apply would withdraw "+id+" and request it again. "+
			"To keep the ticket, run terraform untaint with the address of the resource.")
	default:
		fail(diags, "The ticket cannot be followed", err)
	}
}

// Read implements resource.Resource.
func (r *accessRequest) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m accessRequestModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	t, err := r.portal.ticket(ctx, m.ID.ValueString())
	switch {
	case notFound(err):
		resp.Diagnostics.AddWarning(
			"The ticket is not there",
			fmt.Sprintf("%s does not exist in this portal, or the owner of the token may not see it. It is planned anew.", m.ID.ValueString()),
		)
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		fail(&resp.Diagnostics, "The ticket cannot be read", err)
		return
	case gone(t.State):
		resp.Diagnostics.AddWarning("The request has ended", r.portal.why(t)+"\nIt is planned anew.")
		resp.State.RemoveResource(ctx)
		return
	case denied(t.State), t.State == portalclient.TicketStateFailed, t.State == portalclient.TicketStateRevoking:
		resp.Diagnostics.AddWarning("The request is not in force", r.portal.why(t))
	}
	resp.Diagnostics.Append(m.read(ctx, r.portal, t)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// Update implements resource.Resource. It changes no ticket: it stores the arguments that are not part of it, and waits.
func (r *accessRequest) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m accessRequestModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	t, err := r.portal.ticket(ctx, m.ID.ValueString())
	if err != nil {
		fail(&resp.Diagnostics, "The ticket cannot be read", err)
		return
	}
	if _, err = r.waited(ctx, &m, t, &resp.Diagnostics); err != nil {
		return // the state stays, so that the next apply waits again
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// Delete implements resource.Resource.
func (r *accessRequest) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m accessRequestModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	most, err := parseSpan(m.Timeout.ValueString())
	if err == nil {
		err = r.portal.end(ctx, m.ID.ValueString(), most)
	}
	if err != nil {
		fail(&resp.Diagnostics, "The access cannot be ended", err)
	}
}

// read updates what the portal determines. After an import it also sets the arguments.
func (m *accessRequestModel) read(ctx context.Context, p *portal, t portalclient.Ticket) diag.Diagnostics {
	var diags diag.Diagnostics
	m.ID, m.State, m.URL = types.StringValue(t.Id), types.StringValue(string(t.State)), types.StringValue(p.ticketURL(t.Id))
	m.Message, m.ExpiresAt = optional(messageOf(t)), types.StringNull()
	if denied(t.State) {
		m.Message = types.StringValue(p.why(t))
	}
	clusters := map[string]attr.Value{}
	imported := m.Application.IsNull()
	for _, it := range t.Items {
		if it.ExpiresAt != nil {
			m.ExpiresAt = types.StringValue(it.ExpiresAt.UTC().Format(time.RFC3339))
		}
		for _, c := range it.Clusters {
			clusters[c.Cluster] = types.StringValue(string(c.State))
		}
		if !imported {
			continue
		}
		m.Application, m.Resource = reference(it.Application), reference(it.Resource)
		m.Reason, m.WaitFor, m.Timeout = types.StringValue(t.Reason), types.StringValue(waitSubmitted), types.StringValue(defaultTimeout)
		if it.DurationSeconds != nil {
			m.Duration = types.StringValue(formatSpan(time.Duration(*it.DurationSeconds) * time.Second))
		}
		var d diag.Diagnostics
		m.Hours, d = hoursObject(ctx, it.Hours)
		diags.Append(d...)
		var actions []string
		if it.Actions != nil {
			actions = *it.Actions
		}
		m.Actions, d = types.SetValueFrom(ctx, types.StringType, actions)
		diags.Append(d...)
	}
	var d diag.Diagnostics
	m.WaitingFor, d = types.ListValueFrom(ctx, types.StringType, waitsFor(t))
	diags.Append(d...)
	m.Clusters, d = types.MapValue(types.StringType, clusters)
	diags.Append(d...)
	return diags
}

// reference returns the catalog id of a reference, or its name if the catalog does not have it.
func reference(c *portalclient.CatalogRef) types.String {
	switch {
	case c == nil:
		return types.StringNull()
	case c.Id != nil:
		return types.StringValue(*c.Id)
	}
	return types.StringValue(c.Name)
}

// optional returns a text, or null if it is empty.
func optional(s string) types.String {
	if s == "" {
		return types.StringNull()
	}
	return types.StringValue(s)
}
