package provider

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/acp-io/acp/internal/portalclient"
)

// data is a data source. Its function read fills a model of the type M.
type data[M any] struct {
	portal *portal
	suffix string
	schema schema.Schema
	read   func(context.Context, *portal, *M, *diag.Diagnostics)
}

// Metadata implements datasource.DataSource.
func (d *data[M]) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + d.suffix
}

// Schema implements datasource.DataSource.
func (d *data[M]) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = d.schema
}

// Configure implements datasource.DataSourceWithConfigure.
func (d *data[M]) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.portal = configured(req.ProviderData, &resp.Diagnostics)
}

// Read implements datasource.DataSource.
func (d *data[M]) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m M
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	if d.read(ctx, d.portal, &m, &resp.Diagnostics); resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// computed returns an attribute with a text that the portal determines.
func computed(text string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: text}
}

// required returns an attribute with a text that the configuration gives.
func required(text string) schema.StringAttribute {
	return schema.StringAttribute{Required: true, Validators: []validator.String{notBlank(512)}, MarkdownDescription: text}
}

// texts returns an attribute with a list of texts.
func texts(text string) schema.ListAttribute {
	return schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: text}
}

func owners(list []portalclient.OwnerRef) []string {
	out := make([]string, 0, len(list))
	for _, o := range list {
		kind := "user:"
		if o.Kind == portalclient.OwnerRefKindGroup {
			kind = "group:"
		}
		out = append(out, kind+o.Id)
	}
	return out
}

type applicationModel struct {
	ID          types.String `tfsdk:"id"`
	Name        types.String `tfsdk:"name"`
	Title       types.String `tfsdk:"title"`
	Description types.String `tfsdk:"description"`
	Environment types.String `tfsdk:"environment"`
	Owners      []string     `tfsdk:"owners"`
	Mine        types.Bool   `tfsdk:"mine"`
}

func newApplicationData() datasource.DataSource {
	return &data[applicationModel]{suffix: "_application", schema: schema.Schema{
		MarkdownDescription: "An application of the catalog.",
		Attributes: map[string]schema.Attribute{
			"id":          required("Catalog id of the application."),
			"name":        computed("Resource name, `trnv1:rsc:...`."),
			"title":       computed("Title."),
			"description": computed("Description; null if it has none."),
			"environment": computed("Environment; null if it has none."),
			"owners":      texts("Owners, as `user:<id>` or `group:<id>`."),
			"mine":        schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the owner of the token, or one of their groups, owns it."},
		},
	}, read: func(ctx context.Context, p *portal, m *applicationModel, diags *diag.Diagnostics) {
		var a portalclient.Application
		if err := p.Get(ctx, "/applications/"+url.PathEscape(m.ID.ValueString()), nil, &a); err != nil {
			fail(diags, "The application cannot be read", err)
			return
		}
		m.Name, m.Title, m.Owners, m.Mine = types.StringValue(a.Name), types.StringValue(a.Title), owners(a.Owners), types.BoolValue(a.Mine)
		m.Description, m.Environment = types.StringPointerValue(a.Description), types.StringPointerValue(a.Environment)
	}}
}

type accessModel struct {
	Effect    types.String `tfsdk:"effect"`
	Subject   types.String `tfsdk:"subject"`
	Actions   []string     `tfsdk:"actions"`
	Ticket    types.String `tfsdk:"ticket"`
	Counting  types.Bool   `tfsdk:"counting"`
	ExpiresAt types.String `tfsdk:"expires_at"`
}

type resourceModel struct {
	ID            types.String      `tfsdk:"id"`
	Name          types.String      `tfsdk:"name"`
	Title         types.String      `tfsdk:"title"`
	Class         types.String      `tfsdk:"class"`
	Environment   types.String      `tfsdk:"environment"`
	Sensitivity   types.String      `tfsdk:"sensitivity"`
	Owners        []string          `tfsdk:"owners"`
	Actions       []string          `tfsdk:"actions"`
	Protected     types.Bool        `tfsdk:"protected"`
	Mode          types.String      `tfsdk:"mode"`
	EffectiveMode types.String      `tfsdk:"effective_mode"`
	Realized      types.Bool        `tfsdk:"realized"`
	Clusters      map[string]string `tfsdk:"clusters"`
	Access        []accessModel     `tfsdk:"access"`
}

func newResourceData() datasource.DataSource {
	return &data[resourceModel]{suffix: "_resource", schema: schema.Schema{
		MarkdownDescription: "A resource of the catalog, with its protection and with who may reach it.",
		Attributes: map[string]schema.Attribute{
			"id":             required("Catalog id of the resource."),
			"name":           computed("Resource name, `trnv1:rsc:...`."),
			"title":          computed("Title."),
			"class":          computed("Name of the ResourceClass; null if none covers the resource, so that access cannot be requested."),
			"environment":    computed("Environment; null if it has none."),
			"sensitivity":    computed("`low`, `medium` or `high`."),
			"owners":         texts("Owners, as `user:<id>` or `group:<id>`."),
			"actions":        texts("Actions that can be requested."),
			"protected":      schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether a ProtectedResource exists."},
			"mode":           computed("Mode of the ProtectedResource: `Observe`, `Audit` or `Enforce`; null if the resource is not protected."),
			"effective_mode": computed("Mode that is in effect now, for example during a temporary audit."),
			"realized": schema.BoolAttribute{
				Computed:            true,
				MarkdownDescription: "Whether every member was read back with the protection; false also while that is not known.",
			},
			"clusters": schema.MapAttribute{
				Computed:            true,
				ElementType:         types.StringType,
				MarkdownDescription: "State in each member that the portal lists, such as `Realized`.",
			},
			"access": schema.ListNestedAttribute{
				Computed: true,
				MarkdownDescription: "Statements about the resource. Owners of the resource, the security team and auditors see all of them, and " +
					"everybody else those of their own " +
					"applications only.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"effect":     computed("`Allow` or `Deny`."),
					"subject":    computed("Catalog id of the application, or the name of the subject."),
					"actions":    texts("Actions."),
					"ticket":     computed("Ticket that granted it; null if none did."),
					"counting":   schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the statement has an effect now."},
					"expires_at": computed("When it ends, in RFC 3339; null if it has no end."),
				}},
			},
		},
	}, read: readResource}
}

func readResource(ctx context.Context, p *portal, m *resourceModel, diags *diag.Diagnostics) {
	at := "/resources/" + url.PathEscape(m.ID.ValueString())
	var r portalclient.Resource
	if err := p.Get(ctx, at, nil, &r); err != nil {
		fail(diags, "The resource cannot be read", err)
		return
	}
	var list portalclient.AccessList
	if err := p.Get(ctx, at+"/access", nil, &list); err != nil {
		fail(diags, "The access to the resource cannot be read", err)
		return
	}
	m.Name, m.Title, m.Sensitivity = types.StringValue(r.Name), types.StringValue(r.Title), types.StringValue(string(r.Sensitivity))
	m.Class, m.Environment, m.Owners = types.StringPointerValue(r.Class), types.StringPointerValue(r.Environment), owners(r.Owners)
	m.Actions, m.Clusters, m.Access = []string{}, map[string]string{}, []accessModel{}
	for _, a := range r.Actions {
		m.Actions = append(m.Actions, a.Name)
	}
	m.Protected, m.Realized = types.BoolValue(r.Protection != nil), types.BoolValue(false)
	if x := r.Protection; x != nil {
		m.Mode, m.EffectiveMode, m.Realized = types.StringValue(string(x.Mode)), types.StringValue(string(x.EffectiveMode)), types.BoolValue(x.Realized)
		for _, c := range x.Clusters {
			m.Clusters[c.Cluster] = string(c.State)
		}
	}
	for _, a := range list.Items {
		x := accessModel{Effect: types.StringValue(string(a.Effect)), Subject: reference(&a.Subject), Actions: append([]string{}, a.Actions...),
			Ticket: types.StringPointerValue(a.Ticket), Counting: types.BoolValue(a.Counting)}
		if a.NotAfter != nil {
			x.ExpiresAt = types.StringValue(a.NotAfter.UTC().Format(time.RFC3339))
		}
		m.Access = append(m.Access, x)
	}
}

type ticketModel struct {
	ID         types.String      `tfsdk:"id"`
	WaitFor    types.String      `tfsdk:"wait_for"`
	Timeout    types.String      `tfsdk:"timeout"`
	Kind       types.String      `tfsdk:"kind"`
	State      types.String      `tfsdk:"state"`
	Reason     types.String      `tfsdk:"reason"`
	Requester  types.String      `tfsdk:"requester"`
	URL        types.String      `tfsdk:"url"`
	Message    types.String      `tfsdk:"message"`
	WaitingFor []string          `tfsdk:"waiting_for"`
	Clusters   map[string]string `tfsdk:"clusters"`
}

func newTicketData() datasource.DataSource {
	return &data[ticketModel]{suffix: "_ticket", schema: schema.Schema{
		MarkdownDescription: "A ticket. With `wait_for`, reading it waits until the ticket is in force, and fails if it was refused. Unlike the " +
			"resource, a data source " +
			"that fails is not tainted, so that the next apply waits for the same ticket.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{Required: true, Validators: []validator.String{check{"the id of a ticket, such as T-42", checkTicketID}},
				MarkdownDescription: "Id of the ticket, such as `T-42`."},
			"wait_for": schema.StringAttribute{Optional: true, Validators: []validator.String{oneOf(waitApproved, waitRealized)},
				MarkdownDescription: "Wait until the ticket is `approved` or `realized`; without it the ticket is only read."},
			"timeout": schema.StringAttribute{Optional: true, Validators: []validator.String{spanBetween(time.Second, maxTimeout)},
				MarkdownDescription: "Time limit of waiting, by default `" + defaultTimeout + "`."},
			"kind":        computed("Kind of the ticket, such as `grant`."),
			"state":       computed("State of the ticket."),
			"reason":      computed("Reason that the requester gave."),
			"requester":   computed("Id of the person who requested it."),
			"url":         computed("Page of the ticket."),
			"message":     computed("What the ticket waits for, or why it failed."),
			"waiting_for": texts("The approvers, or the members, that the ticket waits for."),
			"clusters": schema.MapAttribute{
				Computed:            true,
				ElementType:         types.StringType,
				MarkdownDescription: "State in each member that the portal lists, if the ticket has one item; otherwise empty.",
			},
		},
	}, read: readTicket}
}

func readTicket(ctx context.Context, p *portal, m *ticketModel, diags *diag.Diagnostics) {
	t, err := p.ticket(ctx, m.ID.ValueString())
	if err != nil {
		fail(diags, "The ticket cannot be read", err)
		return
	}
	if !m.WaitFor.IsNull() {
		text := defaultTimeout
		if !m.Timeout.IsNull() {
			text = m.Timeout.ValueString()
		}
		most, err := parseSpan(text)
		if err != nil {
			diags.AddAttributeError(path.Root("timeout"), "The value cannot be used", err.Error())
			return
		}
		if t, err = p.awaitForce(ctx, t, m.WaitFor.ValueString(), most); err != nil {
			fail(diags, "The ticket is not in force", err)
			return
		}
	}
	m.Kind, m.State, m.Reason = types.StringValue(string(t.Kind)), types.StringValue(string(t.State)), types.StringValue(t.Reason)
	m.Requester, m.URL, m.Message = types.StringValue(t.Requester.Id), types.StringValue(p.ticketURL(t.Id)), optional(messageOf(t))
	m.WaitingFor, m.Clusters = waitsFor(t), map[string]string{}
	if len(t.Items) == 1 { // the same member can have another state for another item
		for _, c := range t.Items[0].Clusters {
			m.Clusters[c.Cluster] = string(c.State)
		}
	}
}

type organizationModel struct {
	ID             types.String `tfsdk:"id"`
	Title          types.String `tfsdk:"title"`
	Accepted       types.Bool   `tfsdk:"accepted"`
	Mine           types.Bool   `tfsdk:"mine"`
	Teams          []string     `tfsdk:"teams"`
	Administrators []string     `tfsdk:"administrators"`
	Classes        []string     `tfsdk:"classes"`
	Policies       []string     `tfsdk:"approval_policies"`
	OutOfBounds    []string     `tfsdk:"out_of_bounds"`
}

func newOrganizationData() datasource.DataSource {
	return &data[organizationModel]{suffix: "_organization", schema: schema.Schema{
		MarkdownDescription: "An organization. Only its administrators, the security team and auditors may read it.",
		Attributes: map[string]schema.Attribute{
			"id":    required("Name of the organization."),
			"title": computed("Title."),
			"accepted": schema.BoolAttribute{
				Computed:            true,
				MarkdownDescription: "Whether all of its teams belong to it; false if another organization names one of them, too.",
			},
			"mine":              schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the owner of the token administers it."},
			"teams":             texts("Teams, as `group:<id>`."),
			"administrators":    texts("Administrators, as `user:<id>` or `group:<id>`."),
			"classes":           texts("Names of its ResourceClasses."),
			"approval_policies": texts("Names of its ApprovalPolicies."),
			"out_of_bounds":     texts("Names of its classes and approval policies that are outside of its bounds, as `<kind>/<name>`."),
		},
	}, read: func(ctx context.Context, p *portal, m *organizationModel, diags *diag.Diagnostics) {
		var o portalclient.Organization
		if err := p.Get(ctx, "/organizations/"+url.PathEscape(m.ID.ValueString()), nil, &o); err != nil {
			fail(diags, "The organization cannot be read", err)
			return
		}
		m.Title, m.Accepted, m.Mine = types.StringValue(o.Title), types.BoolValue(o.Accepted), types.BoolValue(o.Mine)
		m.Teams, m.Administrators, m.OutOfBounds = owners(o.Teams), owners(o.Administrators), []string{}
		names := func(kind string, list []portalclient.OrganizationObject) []string {
			out := make([]string, 0, len(list))
			for _, x := range list {
				out = append(out, x.Name)
				if !x.Accepted {
					m.OutOfBounds = append(m.OutOfBounds, kind+"/"+x.Name)
				}
			}
			return out
		}
		m.Classes, m.Policies = names("ResourceClass", o.Classes), names("ApprovalPolicy", o.Policies)
	}}
}

type decisionModel struct {
	From      types.String        `tfsdk:"from"`
	To        types.String        `tfsdk:"to"`
	Action    types.String        `tfsdk:"action"`
	Allowed   types.Bool          `tfsdk:"allowed"`
	Decisions []pathDecisionModel `tfsdk:"decisions"`
}

type pathDecisionModel struct {
	Cluster  types.String `tfsdk:"cluster"`
	Action   types.String `tfsdk:"action"`
	Mode     types.String `tfsdk:"mode"`
	Decision types.String `tfsdk:"decision"`
	Policy   types.String `tfsdk:"policy"`
	SID      types.String `tfsdk:"sid"`
}

func newDecisionData() datasource.DataSource {
	return &data[decisionModel]{suffix: "_decision", schema: schema.Schema{
		MarkdownDescription: "What is decided about new connections of one name to another. Only the security team and auditors may read it.",
		Attributes: map[string]schema.Attribute{
			"from": required("Catalog id or resource name of the client."),
			"to":   required("Catalog id or resource name of the resource."),
			"action": schema.StringAttribute{
				Optional:            true,
				Validators:          []validator.String{notBlank(127)},
				MarkdownDescription: "Only decisions about this action; without it about all actions.",
			},
			"allowed": schema.BoolAttribute{
				Computed: true,
				MarkdownDescription: "Whether there is a decision, and every decision is `allowed`: a statement allows the connection in every " +
					"member. Connections that are let through without a statement (`audited`, `unmanaged`) do not count.",
			},
			"decisions": schema.ListNestedAttribute{
				Computed: true, MarkdownDescription: "The decisions for each action and member.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"cluster":  computed("The member; empty for all members without a mode of their own."),
					"action":   computed("The action."),
					"mode":     computed("The mode of the resource there; null if it is not protected."),
					"decision": computed("The decision, such as `allowed` or `default-denied`."),
					"policy":   computed("The policy whose statement decided; null if none did."),
					"sid":      computed("The statement that decided; null if none did."),
				}},
			},
		},
	}, read: func(ctx context.Context, p *portal, m *decisionModel, diags *diag.Diagnostics) {
		var a portalclient.AccessPath
		if err := p.Get(ctx, "/access/path", url.Values{"from": {m.From.ValueString()}, "to": {m.To.ValueString()}}, &a); err != nil {
			fail(diags, "The decision cannot be read", err)
			return
		}
		m.Decisions = []pathDecisionModel{}
		for _, d := range a.Decisions {
			if !m.Action.IsNull() && d.Action != m.Action.ValueString() {
				continue
			}
			x := pathDecisionModel{Cluster: types.StringValue(d.Cluster), Action: types.StringValue(d.Action), Decision: types.StringValue(string(d.Decision)),
				Policy: types.StringPointerValue(d.Policy), SID: types.StringPointerValue(d.Sid)}
			if d.Mode != nil {
				x.Mode = types.StringValue(string(*d.Mode))
			}
			m.Decisions = append(m.Decisions, x)
		}
		if len(m.Decisions) == 0 && !m.Action.IsNull() {
			diags.AddAttributeError(
				path.Root("action"),
				"There is no decision about this action",
				fmt.Sprintf("The class of %s has no action %q.", m.To.ValueString(), m.Action.ValueString()),
			)
			return
		}
		denied := func(d pathDecisionModel) bool {
			return d.Decision.ValueString() != string(portalclient.DecisionAllowed)
		}
		m.Allowed = types.BoolValue(len(m.Decisions) > 0 && !slices.ContainsFunc(m.Decisions, denied))
	}}
}
