package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/acp-io/acp/internal/portalclient"
)

// objectTicket is a resource for an object of the host cluster that the portal changes by tickets.
type objectTicket struct {
	portal *portal
	suffix string
	object portalclient.ObjectChangeKind
	ticket portalclient.TicketKind
}

func newResourceClass() resource.Resource {
	return &objectTicket{suffix: "_resource_class", object: portalclient.ObjectChangeKindResourceClass, ticket: portalclient.TicketKindClass}
}

func newSubjectClass() resource.Resource {
	return &objectTicket{suffix: "_subject_class", object: portalclient.ObjectChangeKindSubjectClass, ticket: portalclient.TicketKindClass}
}

func newApprovalPolicy() resource.Resource {
	return &objectTicket{suffix: "_approval_policy", object: portalclient.ObjectChangeKindApprovalPolicy, ticket: portalclient.TicketKindApprovalPolicy}
}

type objectModel struct {
	ID          types.String `tfsdk:"id"`
	Name        types.String `tfsdk:"name"`
	Spec        types.String `tfsdk:"spec"`
	Reason      types.String `tfsdk:"reason"`
	WaitFor     types.String `tfsdk:"wait_for"`
	Timeout     types.String `tfsdk:"timeout"`
	LiveSpec    types.String `tfsdk:"live_spec"`
	Ticket      types.String `tfsdk:"ticket"`
	TicketState types.String `tfsdk:"ticket_state"`
	TicketURL   types.String `tfsdk:"ticket_url"`
	Message     types.String `tfsdk:"message"`
}

// Metadata implements resource.Resource.
func (r *objectTicket) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + r.suffix
}

// Schema implements resource.Resource.
func (r *objectTicket) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	kind := string(r.object)
	resp.Schema = schema.Schema{
		MarkdownDescription: "An object of the kind `" + kind + "`. The portal changes it by tickets: creating, changing and destroying the resource " +
			"each submit a ticket, which people " +
			"approve. Only the security team can submit these tickets; the token needs the scopes `read` and `tickets:write`.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required:            true,
				Validators:          []validator.String{notBlank(253)},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
				MarkdownDescription: "Name of the object.",
			},
			"spec": schema.StringAttribute{
				Required:   true,
				Validators: []validator.String{isSpec{}},
				MarkdownDescription: "The `spec` of the " + kind + " as YAML or JSON, for example from `yamlencode` or a file. The portal refuses " +
					"unknown fields.",
			},
			"reason": schema.StringAttribute{
				Required:            true,
				Validators:          []validator.String{notBlank(mostReason)},
				MarkdownDescription: "The reason, which the approvers of each ticket see.",
			},
			"wait_for": waitForAttribute("the host cluster has the object"),
			"timeout":  timeoutAttribute(),
			"id": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "The name of the object.",
			},
			"live_spec": schema.StringAttribute{
				Computed: true,
				MarkdownDescription: "The spec in the host cluster as JSON, with the defaults that the API server adds; null while the object " +
					"does not exist.",
			},
			"ticket": schema.StringAttribute{Computed: true, MarkdownDescription: "Id of the last ticket; null after an import."},
			"ticket_state": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "State of the last ticket, such as `pending`, `effective` or `rejected`.",
			},
			"ticket_url": schema.StringAttribute{Computed: true, MarkdownDescription: "Page of the last ticket."},
			"message":    schema.StringAttribute{Computed: true, MarkdownDescription: "What the last ticket waits for, or why it failed."},
		},
	}
}

// Configure implements resource.ResourceWithConfigure.
func (r *objectTicket) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.portal = configured(req.ProviderData, &resp.Diagnostics)
}

// ImportState implements resource.ResourceWithImportState. The ID is the name of the object.
func (r *objectTicket) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	live, err := r.live(ctx, req.ID)
	if err != nil {
		fail(&resp.Diagnostics, "The object cannot be read", err)
		return
	}
	if live == nil {
		resp.Diagnostics.AddError(
			"The object cannot be imported",
			fmt.Sprintf("The host cluster has no %s with the name %q, or the portal does not show it.", r.object, printable(req.ID)),
		)
		return
	}
	for name, value := range map[string]string{"id": req.ID, "name": req.ID, "spec": live.yaml, "live_spec": live.json, "wait_for": waitSubmitted,
		"timeout": defaultTimeout} {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), value)...)
	}
}

// ModifyPlan implements resource.ResourceWithModifyPlan. A change that was refused is not requested again unless something in it changes.
func (r *objectTicket) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || req.State.Raw.IsNull() {
		return
	}
	var plan, state objectModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || !plan.Name.Equal(state.Name) {
		return
	}
	s := portalclient.TicketState(state.TicketState.ValueString())
	same := !plan.Spec.IsUnknown() && !plan.Reason.IsUnknown() && sameSpec(plan.Spec.ValueString(), state.Spec.ValueString()) && plan.Reason.Equal(state.Reason)
	if (denied(s) || s == portalclient.TicketStateFailed) && same {
		resp.Diagnostics.AddError(
			"The change was refused",
			fmt.Sprintf("%s\n%s is %s, and is not requested again as it is. Change the reason or the spec, or remove the "+
				"resource from the configuration.\n%s", state.Message.ValueString(), state.Ticket.ValueString(), s, state.TicketURL.ValueString()),
		)
	}
}

// Create implements resource.Resource.
func (r *objectTicket) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m objectModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	live, err := r.live(ctx, m.Name.ValueString())
	if err != nil {
		fail(&resp.Diagnostics, "The object cannot be read", err)
		return
	}
	if live != nil {
		resp.Diagnostics.AddError("The object exists", fmt.Sprintf("The host cluster has the %s %s already. If this configuration is to manage it, import it: "+
			"terraform import <address of the resource> %s", r.object, m.Name.ValueString(), m.Name.ValueString()))
		return
	}
	m.ID, m.LiveSpec = m.Name, types.StringNull()
	t, err := r.submit(ctx, m, portalclient.ObjectChangeVerbCreate)
	if err != nil {
		r.refused(&resp.Diagnostics, err)
		return
	}
	m.read(r.portal, t)
	// The state is stored before waiting, so that the ticket is not lost when Terraform is interrupted.
	if resp.Diagnostics.Append(resp.State.Set(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	if t = r.waited(ctx, &m, t, &resp.Diagnostics); denied(t.State) || gone(t.State) {
		resp.State.RemoveResource(ctx) // the object does not exist
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// submit submits a ticket that changes the object.
func (r *objectTicket) submit(ctx context.Context, m objectModel, verb portalclient.ObjectChangeVerb) (portalclient.Ticket, error) {
	change := portalclient.ObjectChange{Kind: r.object, Name: m.Name.ValueString(), Verb: verb}
	reason := m.Reason.ValueString()
	if verb == portalclient.ObjectChangeVerbDelete {
		reason = endReason
	} else {
		change.Spec = m.Spec.ValueStringPointer()
	}
	return r.portal.submit(ctx, portalclient.NewTicket{Kind: &r.ticket, Reason: reason, Items: []portalclient.NewTicketItem{{Object: &change}}})
}

// refused reports why a ticket was not accepted.
func (r *objectTicket) refused(diags *diag.Diagnostics, err error) {
	if id := duplicateOf(err); id != "" {
		diags.AddError(
			"The change is requested already",
			fmt.Sprintf("%s requests a change of this object. Wait for it, or withdraw it in the portal.\n%s", id, r.portal.ticketURL(id)),
		)
		return
	}
	fail(diags, "The change cannot be requested", err)
}

// waited waits as the model requests, updates the model, and reports why the change is not in force.
func (r *objectTicket) waited(ctx context.Context, m *objectModel, t portalclient.Ticket, diags *diag.Diagnostics) portalclient.Ticket {
	most, err := parseSpan(m.Timeout.ValueString())
	if err == nil {
		t, err = r.portal.awaitForce(ctx, t, m.WaitFor.ValueString(), most)
	}
	m.read(r.portal, t)
	reportWait(diags, t.Id, err)
	if t.State == portalclient.TicketStateEffective {
		if live, err := r.live(ctx, m.Name.ValueString()); err == nil && live != nil {
			m.LiveSpec = types.StringValue(live.json)
		}
	}
	return t
}

// Read implements resource.Resource.
func (r *objectTicket) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m objectModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	live, err := r.live(ctx, m.Name.ValueString())
	if err != nil {
		fail(&resp.Diagnostics, "The object cannot be read", err)
		return
	}
	expected := m.LiveSpec.ValueString() // after an import
	state := portalclient.TicketState("")
	if id := m.Ticket.ValueString(); id != "" {
		t, err := r.portal.ticket(ctx, id)
		switch {
		case notFound(err):
			resp.Diagnostics.AddWarning("The ticket is not there", id+" does not exist in this portal, or the owner of the token may not see it.")
			m.Ticket, m.TicketState, m.TicketURL, m.Message = types.StringNull(), types.StringNull(), types.StringNull(), types.StringNull()
		case err != nil:
			fail(&resp.Diagnostics, "The ticket cannot be read", err)
			return
		default:
			m.read(r.portal, t)
			state = t.State
			if denied(state) || gone(state) || state == portalclient.TicketStateFailed {
				resp.Diagnostics.AddWarning("The change is not in force", r.portal.why(t))
			}
			if len(t.Items) > 0 && t.Items[0].Statement != nil && state == portalclient.TicketStateEffective {
				if spec, err := newLiveSpec(*t.Items[0].Statement); err == nil {
					expected = spec.json
				}
			}
		}
	}
	switch state {
	case "", portalclient.TicketStateEffective:
		if live == nil {
			resp.Diagnostics.AddWarning(
				"The object is not there",
				fmt.Sprintf("The host cluster has no %s %s. It is planned anew.", r.object, m.Name.ValueString()),
			)
			resp.State.RemoveResource(ctx)
			return
		}
		if live.json != expected {
			m.Spec = types.StringValue(live.yaml) // somebody else changed it: the plan shows the difference
		}
	case portalclient.TicketStateWithdrawn, portalclient.TicketStateExpired:
		if live == nil {
			resp.State.RemoveResource(ctx)
			return
		}
		m.Spec = types.StringValue(live.yaml)
	}
	m.LiveSpec = types.StringNull()
	if live != nil {
		m.LiveSpec = types.StringValue(live.json)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// Update implements resource.Resource. It submits a ticket if the spec changes, or if the last ticket was refused.
func (r *objectTicket) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m, state objectModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	m.Ticket, m.TicketState, m.TicketURL, m.Message, m.LiveSpec = state.Ticket, state.TicketState, state.TicketURL, state.Message, state.LiveSpec
	s := portalclient.TicketState(state.TicketState.ValueString())
	if sameSpec(m.Spec.ValueString(), state.Spec.ValueString()) && !denied(s) && !gone(s) && s != portalclient.TicketStateFailed {
		if id := m.Ticket.ValueString(); id != "" {
			t, err := r.portal.ticket(ctx, id)
			if err != nil {
				fail(&resp.Diagnostics, "The ticket cannot be read", err)
				return
			}
			r.waited(ctx, &m, t, &resp.Diagnostics)
		}
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
		return
	}
	if s == portalclient.TicketStatePending {
		if _, err := r.portal.withdraw(ctx, m.Ticket.ValueString()); err != nil {
			fail(&resp.Diagnostics, "The earlier ticket cannot be withdrawn", err)
			return
		}
	}
	live, err := r.live(ctx, m.Name.ValueString())
	if err != nil {
		fail(&resp.Diagnostics, "The object cannot be read", err)
		return
	}
	verb := portalclient.ObjectChangeVerbUpdate
	if live == nil {
		verb = portalclient.ObjectChangeVerbCreate
	}
	t, err := r.submit(ctx, m, verb)
	switch {
	case live != nil && unchanged(err):
		// Only the text of the spec differs from that of the object.
		m.Ticket, m.TicketState, m.TicketURL, m.Message = types.StringNull(), types.StringNull(), types.StringNull(), types.StringNull()
		m.LiveSpec = types.StringValue(live.json)
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
		return
	case err != nil:
		r.refused(&resp.Diagnostics, err)
		return
	}
	m.read(r.portal, t)
	if resp.Diagnostics.Append(resp.State.Set(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	r.waited(ctx, &m, t, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// unchanged reports whether the portal refused a ticket because it would change nothing.
func unchanged(err error) bool {
	var e *portalclient.Error
	if !errors.As(err, &e) || e.Fields == nil {
		return false
	}
	for _, f := range *e.Fields {
		if f.Message.Code == "request.no-change" {
			return true
		}
	}
	return false
}

// Delete implements resource.Resource. It withdraws the last ticket if it is pending, and requests the deletion of the object if it exists.
func (r *objectTicket) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m objectModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	most, err := parseSpan(m.Timeout.ValueString())
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("timeout"), "The value cannot be used", err.Error())
		return
	}
	if err := r.settle(ctx, m.Ticket.ValueString(), most); err != nil {
		fail(&resp.Diagnostics, "The last ticket is still under way", err)
		return
	}
	live, err := r.live(ctx, m.Name.ValueString())
	if err != nil {
		fail(&resp.Diagnostics, "The object cannot be read", err)
		return
	}
	if live == nil {
		return
	}
	t, err := r.submit(ctx, m, portalclient.ObjectChangeVerbDelete)
	if id := duplicateOf(err); id != "" {
		t, err = r.portal.ticket(ctx, id) // an earlier destroy requested it
	}
	if err != nil {
		r.refused(&resp.Diagnostics, err)
		return
	}
	if t, err = r.portal.awaitForce(ctx, t, m.WaitFor.ValueString(), most); err != nil {
		fail(&resp.Diagnostics, "The object is not deleted", err)
		return
	}
	if t.State != portalclient.TicketStateEffective {
		resp.Diagnostics.AddWarning(
			"The object still exists",
			fmt.Sprintf("%s requests its deletion and is %s. Terraform no longer manages the object.\n%s", t.Id, t.State,
				r.portal.ticketURL(t.Id)),
		)
	}
}

// settle withdraws a ticket if it is pending, and waits until it writes nothing any more.
func (r *objectTicket) settle(ctx context.Context, id string, most time.Duration) error {
	if id == "" {
		return nil
	}
	t, err := r.portal.ticket(ctx, id)
	if err == nil && t.State == portalclient.TicketStatePending {
		t, err = r.portal.withdraw(ctx, id)
	}
	if notFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = r.portal.await(ctx, t, most, func(s portalclient.TicketState) (bool, error) {
		return s != portalclient.TicketStatePending && s != portalclient.TicketStateApproved && s != portalclient.TicketStateApplying, nil
	})
	return err
}

// read updates what the portal reports about the last ticket.
func (m *objectModel) read(p *portal, t portalclient.Ticket) {
	m.Ticket, m.TicketState, m.TicketURL = types.StringValue(t.Id), types.StringValue(string(t.State)), types.StringValue(p.ticketURL(t.Id))
	m.Message = optional(messageOf(t))
	if denied(t.State) || t.State == portalclient.TicketStateFailed {
		m.Message = types.StringValue(p.why(t))
	}
}
