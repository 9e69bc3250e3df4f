package provider

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/acp-io/acp/internal/portalclient"
)

// peopleSource is the source of workloads that people register.
const peopleSource = "portal"

// externalWorkload is the resource acp_external_workload: a client outside the fleet that is registered by its addresses.
type externalWorkload struct{ portal *portal }

func newExternalWorkload() resource.Resource { return &externalWorkload{} }

type workloadModel struct {
	ID          types.String `tfsdk:"id"`
	WorkloadID  types.String `tfsdk:"workload_id"`
	Source      types.String `tfsdk:"source"`
	Subject     types.String `tfsdk:"subject"`
	Addresses   types.Set    `tfsdk:"addresses"`
	Description types.String `tfsdk:"description"`
	Accepted    types.Bool   `tfsdk:"accepted"`
	Message     types.String `tfsdk:"message"`
}

// Metadata implements resource.Resource.
func (r *externalWorkload) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_external_workload"
}

// Schema implements resource.Resource.
func (r *externalWorkload) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A client outside the fleet, such as a virtual machine, that acts as an application with its addresses. The token needs " +
			"the scopes `read` and `workloads:write`. " +
			"Registrations beyond what owners may register alone need a ticket of the kind `workload`, which this resource does not submit.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
				MarkdownDescription: "`<source>/<workload_id>`.",
			},
			"workload_id": schema.StringAttribute{Required: true, PlanModifiers: replace, Validators: []validator.String{notBlank(200)},
				MarkdownDescription: "Id of the workload in its source: lower-case letters, digits, hyphens and dots."},
			"source": schema.StringAttribute{
				Optional:      true,
				Computed:      true,
				Default:       stringdefault.StaticString(peopleSource),
				PlanModifiers: replace,
				Validators:    []validator.String{notBlank(63)},
				MarkdownDescription: "Who registers it. Owners of applications register in `portal` (the default); a platform, with the token of a " +
					"security administrator, in a source of its own.",
			},
			"subject": schema.StringAttribute{Required: true, PlanModifiers: replace, Validators: []validator.String{notBlank(512)},
				MarkdownDescription: "Resource name of the application that it acts as, for example `data.acp_application.orders.name`."},
			"addresses":   schema.SetAttribute{Required: true, ElementType: types.StringType, MarkdownDescription: "Up to 64 addresses or prefixes."},
			"description": schema.StringAttribute{Optional: true, Validators: []validator.String{notBlank(500)}, MarkdownDescription: "Description."},
			"accepted":    schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the adapter has accepted it; null while that is not known."},
			"message":     schema.StringAttribute{Computed: true, MarkdownDescription: "Why it is not accepted."},
		},
	}
}

// Configure implements resource.ResourceWithConfigure.
func (r *externalWorkload) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.portal = configured(req.ProviderData, &resp.Diagnostics)
}

// find returns the registration of a workload, or nil if it does not exist.
func (r *externalWorkload) find(ctx context.Context, source, id string) (*portalclient.Workload, error) {
	q := url.Values{"q": {id}, "source": {source}, "limit": {"200"}}
	for {
		var page portalclient.WorkloadList
		if err := r.portal.Get(ctx, "/workloads", q, &page); err != nil {
			return nil, err
		}
		for _, w := range page.Items {
			if w.Id == id && w.Source != nil && *w.Source == source {
				return &w, nil
			}
		}
		if page.NextCursor == nil || len(page.Items) == 0 {
			return nil, nil
		}
		q.Set("cursor", *page.NextCursor)
	}
}

// put registers or changes the workload.
func (r *externalWorkload) put(ctx context.Context, m *workloadModel, diags *diag.Diagnostics) {
	var addresses []string
	if diags.Append(m.Addresses.ElementsAs(ctx, &addresses, false)...); diags.HasError() {
		return
	}
	slices.Sort(addresses)
	w := portalclient.Workload{
		Id:          m.WorkloadID.ValueString(),
		Subject:     m.Subject.ValueString(),
		Addresses:   addresses,
		Description: m.Description.ValueStringPointer(),
		Source:      m.Source.ValueStringPointer(),
	}
	var results portalclient.WorkloadResults
	if err := r.portal.Post(ctx, "/workloads", "", portalclient.PutWorkloads{Items: []portalclient.Workload{w}}, &results); err != nil {
		fail(diags, "The workload cannot be registered", err)
		return
	}
	if len(results.Items) != 1 {
		diags.AddError("The workload cannot be registered", fmt.Sprintf("The portal returned %d results for one workload.", len(results.Items)))
		return
	}
	if x := results.Items[0]; x.Outcome == portalclient.WorkloadResultsItemsOutcomeRefused {
		text := "The portal refused it."
		if x.Message != nil {
			text = printable(x.Message.Text)
		}
		if x.NeedsApproval != nil && *x.NeedsApproval {
			text += "\nThe owners of the resources that the application reaches must approve it: request it on the page Workloads of the portal, and " +
				"import it here afterwards."
		}
		diags.AddError("The workload cannot be registered", text)
		return
	}
	m.ID = types.StringValue(m.Source.ValueString() + "/" + w.Id)
	m.Accepted, m.Message = types.BoolNull(), types.StringNull()
	if now, err := r.find(ctx, m.Source.ValueString(), w.Id); err == nil && now != nil {
		m.Accepted = types.BoolPointerValue(now.Accepted)
		m.message(now)
	}
}

func (m *workloadModel) message(w *portalclient.Workload) {
	m.Message = types.StringNull()
	if w.Message != nil {
		m.Message = optional(printable(w.Message.Text))
	}
}

// Create implements resource.Resource.
func (r *externalWorkload) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m workloadModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	id := m.Source.ValueString() + "/" + m.WorkloadID.ValueString()
	switch known, err := r.find(ctx, m.Source.ValueString(), m.WorkloadID.ValueString()); {
	case err != nil:
		fail(&resp.Diagnostics, "The workloads cannot be read", err)
		return
	case known != nil:
		resp.Diagnostics.AddError(
			"The workload exists",
			fmt.Sprintf("The workload %s is registered already. If this configuration is to manage it, import it: "+
				"terraform import <address of the resource> %s", id, id),
		)
		return
	}
	if r.put(ctx, &m, &resp.Diagnostics); !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
}

// Update implements resource.Resource.
func (r *externalWorkload) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m workloadModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	if r.put(ctx, &m, &resp.Diagnostics); !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
}

// Read implements resource.Resource.
func (r *externalWorkload) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m workloadModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	w, err := r.find(ctx, m.Source.ValueString(), m.WorkloadID.ValueString())
	if err != nil {
		fail(&resp.Diagnostics, "The workload cannot be read", err)
		return
	}
	if w == nil {
		resp.Diagnostics.AddWarning(
			"The workload is not there",
			m.ID.ValueString()+" is not registered, or the owner of the token may not see it. It is planned anew.",
		)
		resp.State.RemoveResource(ctx)
		return
	}
	var d diag.Diagnostics
	m.Addresses, d = types.SetValueFrom(ctx, types.StringType, w.Addresses)
	resp.Diagnostics.Append(d...)
	m.Subject, m.Description, m.Accepted = types.StringValue(w.Subject), types.StringPointerValue(w.Description), types.BoolPointerValue(w.Accepted)
	m.message(w)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// Delete implements resource.Resource.
func (r *externalWorkload) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m workloadModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	err := r.portal.Delete(ctx, "/workloads/"+url.PathEscape(m.WorkloadID.ValueString()), url.Values{"source": {m.Source.ValueString()}})
	if err != nil && !notFound(err) {
		fail(&resp.Diagnostics, "The workload cannot be removed", err)
		return
	}
	if err == nil {
		return
	}
	// The portal gives the same answer to callers who may not remove a workload that they see.
	if w, err := r.find(ctx, m.Source.ValueString(), m.WorkloadID.ValueString()); err != nil || w != nil {
		resp.Diagnostics.AddError("The workload cannot be removed", m.ID.ValueString()+" is still registered. The owner of the token may not remove it.")
	}
}

// ImportState implements resource.ResourceWithImportState.
func (r *externalWorkload) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	source, id, ok := strings.Cut(req.ID, "/")
	if !ok || source == "" || id == "" {
		resp.Diagnostics.AddError("The workload cannot be imported", fmt.Sprintf("%q is not the id of a workload, such as portal/vm-1.", printable(req.ID)))
		return
	}
	for name, value := range map[string]string{"id": req.ID, "source": source, "workload_id": id} {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), value)...)
	}
}
