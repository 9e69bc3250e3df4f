// Package provider implements a provider of Terraform for ACP. It uses only the portal's API, with the rights of the token that it is configured
// with, and does not access the host cluster.
package provider

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portalclient"
)

// The environment variables that configure the provider where the configuration does not.
const (
	envAddress = "ACP_ADDRESS"
	envToken   = "ACP_TOKEN" //nolint:gosec // the name of a variable, not a token
	envCAFile  = "ACP_CA_FILE"
)

// portal is a client of the configured portal.
type portal struct {
	*portalclient.Client
	base *url.URL
	// after returns a channel that receives when the duration has passed, as time.After does.
	after func(time.Duration) <-chan time.Time
}

// ticketURL returns the address of a ticket's page.
func (p *portal) ticketURL(id string) string { return p.base.JoinPath("tickets", id).String() }

// acpProvider implements provider.Provider.
type acpProvider struct {
	version string
	after   func(time.Duration) <-chan time.Time
}

// New returns a function that creates the provider in a version.
func New(version string) func() provider.Provider {
	return func() provider.Provider { return &acpProvider{version: version, after: time.After} }
}

type providerModel struct {
	Address types.String `tfsdk:"address"`
	Token   types.String `tfsdk:"token"`
	CAFile  types.String `tfsdk:"ca_file"`
	Timeout types.String `tfsdk:"request_timeout"`
	Retries types.Int64  `tfsdk:"max_retries"`
}

// Metadata implements provider.Provider.
func (p *acpProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = "acp", p.version
}

// Schema implements provider.Provider.
func (p *acpProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The provider requests access in the portal of ACP and reads what the portal knows. It acts with the rights of a machine token.",
		Attributes: map[string]schema.Attribute{
			"address": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Address of the portal, such as `https://acp.example.com`; otherwise the variable `ACP_ADDRESS`. `http` is " +
					"allowed only for the local machine.",
			},
			"token": schema.StringAttribute{
				Optional:  true,
				Sensitive: true,
				MarkdownDescription: "Machine token of the page *Profile*; otherwise the variable `ACP_TOKEN`, which keeps the token out of " +
					"configurations and plans. " +
					"Scopes: `read`; `tickets:write` for requests; `workloads:write` for `acp_external_workload`.",
			},
			"ca_file": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "PEM file with the certificate authorities of the portal; otherwise the variable `ACP_CA_FILE`; otherwise those " +
					"of the system.",
			},
			"request_timeout": schema.StringAttribute{
				Optional:            true,
				Validators:          []validator.String{spanBetween(time.Second, maxRequestTimeout)},
				MarkdownDescription: "Time limit of one attempt of a call, such as `30s` (the default), at most `10m`.",
			},
			"max_retries": schema.Int64Attribute{
				Optional: true,
				MarkdownDescription: "How often a call is repeated that the portal refused with 429 or 503, or that failed and can safely be repeated " +
					"(0 to 10, by default 4). " +
					"`Retry-After` is respected up to a minute.",
			},
		},
	}
}

// Configure implements provider.Provider.
func (p *acpProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var m providerModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	for name, unknown := range map[string]bool{"address": m.Address.IsUnknown(), "token": m.Token.IsUnknown(), "ca_file": m.CAFile.IsUnknown()} {
		if unknown {
			resp.Diagnostics.AddAttributeError(path.Root(name), "The configuration of the provider is not known yet",
				fmt.Sprintf("%s comes from a resource that is not created yet. Apply that resource first (-target), or give a value that is known.", name))
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	c, diags := p.connect(m)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	resp.DataSourceData, resp.ResourceData = c, c
}

// connect returns a client for a configuration. It sends no request.
func (p *acpProvider) connect(m providerModel) (*portal, diag.Diagnostics) {
	var diags diag.Diagnostics
	address := cmp.Or(m.Address.ValueString(), os.Getenv(envAddress))
	token := cmp.Or(m.Token.ValueString(), os.Getenv(envToken))
	if address == "" {
		diags.AddAttributeError(path.Root("address"), "The address of the portal is missing",
			"Set address in the provider's block, or the variable "+envAddress+", to an address such as https://acp.example.com.")
	}
	if token == "" {
		diags.AddAttributeError(path.Root("token"), "The token is missing",
			"Create a machine token on the page Profile of the portal, with the scopes read and tickets:write, and set the variable "+envToken+".")
	} else if !isToken(token) {
		diags.AddAttributeError(path.Root("token"), "The token cannot be used",
			"A machine token is one word without spaces and line breaks, such as acp_... from the page Profile of the portal. Its value is not shown here.")
	}
	retries := int64(defaultRetries)
	if !m.Retries.IsNull() {
		retries = m.Retries.ValueInt64()
	}
	if retries < 0 || retries > mostRetries {
		diags.AddAttributeError(path.Root("max_retries"), "The number of retries cannot be used", fmt.Sprintf("Give a number from 0 to %d.", mostRetries))
	}
	timeout := defaultRequestTimeout
	if s := m.Timeout.ValueString(); s != "" {
		var err error
		if timeout, err = parseSpan(s); err != nil {
			diags.AddAttributeError(path.Root("request_timeout"), "The time limit cannot be used", err.Error())
		}
	}
	if diags.HasError() {
		return nil, diags
	}
	base, err := portalclient.ParseServer(address)
	if err != nil {
		diags.AddAttributeError(path.Root("address"), "The address of the portal cannot be used", err.Error())
		return nil, diags
	}
	transport, err := newTransport(cmp.Or(m.CAFile.ValueString(), os.Getenv(envCAFile)), timeout, int(retries))
	if err != nil {
		diags.AddAttributeError(path.Root("ca_file"), "The certificate authorities cannot be used", err.Error())
		return nil, diags
	}
	return &portal{base: base, after: p.after, Client: portalclient.NewWithOptions(base, token, portalclient.Options{
		Language:  message.LanguageOf(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG"))),
		UserAgent: "terraform-provider-acp/" + p.version,
		Transport: transport,
		// The transport bounds each attempt and the time between two.
		Timeout: time.Duration(retries+1)*timeout + time.Duration(retries)*maxRetryWait + time.Second,
	})}, diags
}

// isToken reports whether a text can be sent as a bearer token.
func isToken(s string) bool {
	for _, r := range s {
		if r <= ' ' || r > '~' {
			return false
		}
	}
	return len(s) <= 1024
}

// Resources implements provider.Provider.
func (p *acpProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{newAccessRequest, newResourceClass, newSubjectClass, newApprovalPolicy, newExternalWorkload}
}

// DataSources implements provider.Provider.
func (p *acpProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{newApplicationData, newResourceData, newTicketData, newDecisionData, newOrganizationData}
}

// configured returns the client that Configure made. It returns nil without an error before the provider is configured.
func configured(data any, diags *diag.Diagnostics) *portal {
	if data == nil {
		return nil
	}
	p, ok := data.(*portal)
	if !ok {
		diags.AddError("The provider is not configured", fmt.Sprintf("The provider passed a %T. This is an error in the provider.", data))
	}
	return p
}

// newKey returns a new idempotency key.
func newKey() string { return "terraform-" + rand.Text() }

// notFound reports whether an error is the answer that an object does not exist, or that the caller may not see it.
func notFound(err error) bool { return portalclient.CodeOf(err) == "not-found" }

// changed reports whether an error is the answer that the object has changed in the meantime.
func changed(err error) bool {
	code := portalclient.CodeOf(err)
	return code == "conflict" || code == "stale"
}

// fail adds an error of a call. It says what to do where the answer's own text does not.
func fail(diags *diag.Diagnostics, summary string, err error) {
	text := printable(err.Error())
	switch portalclient.CodeOf(err) {
	case "unauthenticated":
		text += "\nThe token is invalid, has expired or was revoked: create a new one on the page Profile and set " + envToken + "."
	case "scope":
		text += "\nCreate a token with this scope on the page Profile and set " + envToken + "."
	case "outcome-unknown":
		text += "\nIt is not known whether the change was stored. Look at the tickets in the portal, and import the ticket if it is there."
	}
	var p *portalclient.Error
	if !errors.As(err, &p) && errors.Is(err, context.Canceled) {
		text += "\nTerraform was interrupted."
	}
	diags.AddError(summary, text)
}
