package provider

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// values are the arguments or the attributes of a resource: strings, bools, numbers, and lists of strings.
type values map[string]any

// core calls the provider by the protocol in the order in which Terraform does.
type core struct {
	t       *testing.T
	server  tfprotov6.ProviderServer
	schemas *tfprotov6.GetProviderSchemaResponse
}

func newCore(t *testing.T, config values) *core {
	t.Helper()
	c, diags := configuredCore(t, config)
	if diags.text != "" {
		t.Fatal(diags.text)
	}
	return c
}

func configuredCore(t *testing.T, config values) (*core, said) {
	t.Helper()
	server, err := providerserver.NewProtocol6WithError(New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	c := &core{t: t, server: server}
	if c.schemas, err = server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{}); err != nil {
		t.Fatal(err)
	}
	if s := saidOf(c.schemas.Diagnostics); s.text != "" {
		t.Fatal(s.text)
	}
	resp, err := server.ConfigureProvider(
		t.Context(),
		&tfprotov6.ConfigureProviderRequest{TerraformVersion: "1.12.0", Config: c.encode(c.schemas.Provider, config, nil)},
	)
	if err != nil {
		t.Fatal(err)
	}
	return c, saidOf(resp.Diagnostics)
}

// said is what the provider reported.
type said struct {
	text   string
	failed bool
}

func saidOf(list []*tfprotov6.Diagnostic) said {
	var s said
	for _, d := range list {
		s.text += d.Severity.String() + ": " + d.Summary + ": " + d.Detail + "\n"
		s.failed = s.failed || d.Severity == tfprotov6.DiagnosticSeverityError
	}
	return s
}

func typeOf(s *tfprotov6.Schema) tftypes.Object { return s.ValueType().(tftypes.Object) }

// encode returns the value of a configuration. Attributes that it lacks come from prior, or are null.
func (c *core) encode(s *tfprotov6.Schema, config values, prior map[string]tftypes.Value) *tfprotov6.DynamicValue {
	c.t.Helper()
	object := typeOf(s)
	out := map[string]tftypes.Value{}
	for name, kind := range object.AttributeTypes {
		out[name] = tftypes.NewValue(kind, nil)
		if v, ok := prior[name]; ok {
			out[name] = v
		}
		switch x := config[name].(type) {
		case nil:
		case tftypes.Value:
			out[name] = x
		case []string:
			var elements []tftypes.Value
			for _, e := range x {
				elements = append(elements, tftypes.NewValue(tftypes.String, e))
			}
			out[name] = tftypes.NewValue(kind, elements)
		default:
			out[name] = tftypes.NewValue(kind, x)
		}
	}
	for name := range config {
		if _, ok := object.AttributeTypes[name]; !ok {
			c.t.Fatalf("there is no attribute %s", name)
		}
	}
	v, err := tfprotov6.NewDynamicValue(object, tftypes.NewValue(object, out))
	if err != nil {
		c.t.Fatal(err)
	}
	return &v
}

// decode returns the attributes of a value; nil if it is null.
func (c *core) decode(s *tfprotov6.Schema, v *tfprotov6.DynamicValue) map[string]tftypes.Value {
	c.t.Helper()
	if v == nil {
		return nil
	}
	x, err := v.Unmarshal(s.ValueType())
	if err != nil {
		c.t.Fatal(err)
	}
	if x.IsNull() {
		return nil
	}
	out := map[string]tftypes.Value{}
	if err := x.As(&out); err != nil {
		c.t.Fatal(err)
	}
	return out
}

// instance is a resource in the state.
type instance struct {
	c    *core
	kind string
	// state is nil if the resource is not in the state.
	state   *tfprotov6.DynamicValue
	private []byte
}

func (c *core) resource(kind string) *instance { return &instance{c: c, kind: kind} }

func (i *instance) schema() *tfprotov6.Schema { return i.c.schemas.ResourceSchemas[i.kind] }

func (i *instance) null() *tfprotov6.DynamicValue {
	object := i.schema().ValueType()
	v, err := tfprotov6.NewDynamicValue(object, tftypes.NewValue(object, nil))
	if err != nil {
		i.c.t.Fatal(err)
	}
	return &v
}

func (i *instance) prior() *tfprotov6.DynamicValue {
	if i.state == nil {
		return i.null()
	}
	return i.state
}

func (i *instance) exists() bool { return i.c.decode(i.schema(), i.state) != nil }

// planned is a plan of a change.
type planned struct {
	said
	change   bool
	replaces bool
	resp     *tfprotov6.PlanResourceChangeResponse
}

// plan validates a configuration and plans the change to it, as an update if the resource is in the state.
func (i *instance) plan(config values) planned {
	t := i.c.t
	t.Helper()
	valid, err := i.c.server.ValidateResourceConfig(
		t.Context(),
		&tfprotov6.ValidateResourceConfigRequest{TypeName: i.kind, Config: i.c.encode(i.schema(), config, nil)},
	)
	if err != nil {
		t.Fatal(err)
	}
	if s := saidOf(valid.Diagnostics); s.failed {
		return planned{said: s}
	}
	known := map[string]tftypes.Value{}
	if i.state != nil { // what the configuration does not give and the provider computes stays as it is
		for name, v := range i.c.decode(i.schema(), i.state) {
			for _, a := range i.schema().Block.Attributes {
				if a.Name == name && a.Computed {
					known[name] = v
				}
			}
		}
	}
	resp, err := i.c.server.PlanResourceChange(
		t.Context(),
		&tfprotov6.PlanResourceChangeRequest{TypeName: i.kind, PriorState: i.prior(), PriorPrivate: i.private,
			Config: i.c.encode(i.schema(), config, nil), ProposedNewState: i.c.encode(i.schema(), config, known)},
	)
	if err != nil {
		t.Fatal(err)
	}
	p := planned{said: saidOf(resp.Diagnostics), replaces: len(resp.RequiresReplace) > 0, resp: resp}
	if !p.failed {
		before, after := i.c.decode(i.schema(), i.prior()), i.c.decode(i.schema(), resp.PlannedState)
		p.change = !maps.EqualFunc(before, after, func(a, b tftypes.Value) bool { return a.Equal(b) })
	}
	return p
}

// apply plans and applies a configuration. A planned replacement destroys the resource first.
func (i *instance) apply(config values) said {
	t := i.c.t
	t.Helper()
	p := i.plan(config)
	if p.failed {
		return p.said
	}
	if p.replaces && i.state != nil {
		if s := i.destroy(); s.failed {
			return s
		}
		return i.apply(config)
	}
	resp, err := i.c.server.ApplyResourceChange(
		context.WithoutCancel(t.Context()),
		&tfprotov6.ApplyResourceChangeRequest{TypeName: i.kind, PriorState: i.prior(),
			PlannedState: p.resp.PlannedState, PlannedPrivate: p.resp.PlannedPrivate, Config: i.c.encode(i.schema(), config, nil)},
	)
	if err != nil {
		t.Fatal(err)
	}
	return i.applied(resp, p.resp.PlannedState)
}

// applied stores the state of an apply. It fails if the provider changed a planned value, which Terraform refuses.
func (i *instance) applied(resp *tfprotov6.ApplyResourceChangeResponse, plan *tfprotov6.DynamicValue) said {
	t := i.c.t
	t.Helper()
	s := saidOf(resp.Diagnostics)
	i.state, i.private = resp.NewState, resp.Private
	now := i.c.decode(i.schema(), i.state)
	if now == nil {
		i.state = nil
	}
	for name, want := range i.c.decode(i.schema(), plan) {
		if got, ok := now[name]; !s.failed && (!ok || !got.IsFullyKnown() || want.IsFullyKnown() && !got.Equal(want)) {
			t.Errorf("%s: planned %s as %s and applied %s", i.kind, name, want, got)
		}
	}
	return s
}

func (i *instance) destroy() said {
	t := i.c.t
	t.Helper()
	p, err := i.c.server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{TypeName: i.kind, PriorState: i.prior(), PriorPrivate: i.private,
		Config: i.null(), ProposedNewState: i.null()})
	if err != nil {
		t.Fatal(err)
	}
	if s := saidOf(p.Diagnostics); s.failed {
		return s
	}
	resp, err := i.c.server.ApplyResourceChange(
		context.WithoutCancel(t.Context()),
		&tfprotov6.ApplyResourceChangeRequest{TypeName: i.kind, PriorState: i.prior(),
			PlannedState: i.null(), PlannedPrivate: p.PlannedPrivate, Config: i.null()},
	)
	if err != nil {
		t.Fatal(err)
	}
	return i.applied(resp, nil)
}

func (i *instance) refresh() said {
	t := i.c.t
	t.Helper()
	resp, err := i.c.server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: i.kind, CurrentState: i.prior(), Private: i.private})
	if err != nil {
		t.Fatal(err)
	}
	s := saidOf(resp.Diagnostics)
	if !s.failed {
		i.state, i.private = resp.NewState, resp.Private
		if i.c.decode(i.schema(), i.state) == nil {
			i.state = nil
		}
	}
	return s
}

// imports imports a resource and reads it, as Terraform does.
func (i *instance) imports(id string) said {
	t := i.c.t
	t.Helper()
	resp, err := i.c.server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: i.kind, ID: id})
	if err != nil {
		t.Fatal(err)
	}
	if s := saidOf(resp.Diagnostics); s.failed {
		return s
	}
	i.state, i.private = resp.ImportedResources[0].State, resp.ImportedResources[0].Private
	return i.refresh()
}

// get returns an attribute as text, "" if it is null.
func (i *instance) get(name string) string {
	i.c.t.Helper()
	return textOf(i.c.t, i.c.decode(i.schema(), i.state)[name])
}

func textOf(t *testing.T, v tftypes.Value) string {
	t.Helper()
	if v.IsNull() || !v.IsKnown() {
		return ""
	}
	var s string
	if v.Type().Is(tftypes.String) {
		if err := v.As(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	var b bool
	if v.Type().Is(tftypes.Bool) {
		if err := v.As(&b); err != nil {
			t.Fatal(err)
		}
		if b {
			return "true"
		}
		return "false"
	}
	var list []tftypes.Value
	if v.As(&list) == nil {
		var out []string
		for _, x := range list {
			out = append(out, textOf(t, x))
		}
		return "[" + strings.Join(out, " ") + "]"
	}
	fields := map[string]tftypes.Value{}
	if err := v.As(&fields); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		out = append(out, k+":"+textOf(t, fields[k]))
	}
	return "{" + strings.Join(out, " ") + "}"
}

// data reads a data source.
func (c *core) data(kind string, config values) (map[string]string, said) {
	c.t.Helper()
	s := c.schemas.DataSourceSchemas[kind]
	valid, err := c.server.ValidateDataResourceConfig(
		c.t.Context(),
		&tfprotov6.ValidateDataResourceConfigRequest{TypeName: kind, Config: c.encode(s, config, nil)},
	)
	if err != nil {
		c.t.Fatal(err)
	}
	if x := saidOf(valid.Diagnostics); x.failed {
		return nil, x
	}
	resp, err := c.server.ReadDataSource(c.t.Context(), &tfprotov6.ReadDataSourceRequest{TypeName: kind, Config: c.encode(s, config, nil)})
	if err != nil {
		c.t.Fatal(err)
	}
	out := map[string]string{}
	for name, v := range c.decode(s, resp.State) {
		out[name] = textOf(c.t, v)
	}
	return out, saidOf(resp.Diagnostics)
}
