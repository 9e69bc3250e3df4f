package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/acp-io/acp/internal/portalclient"
)

// hoursModel is the attribute hours.
type hoursModel struct {
	TimeZone string        `tfsdk:"time_zone"`
	Periods  []periodModel `tfsdk:"periods"`
}

type periodModel struct {
	Days []string `tfsdk:"days"`
	From string   `tfsdk:"from"`
	To   string   `tfsdk:"to"`
}

var (
	periodTypes = map[string]attr.Type{"days": types.SetType{ElemType: types.StringType}, "from": types.StringType, "to": types.StringType}
	hoursTypes  = map[string]attr.Type{"time_zone": types.StringType, "periods": types.ListType{ElemType: types.ObjectType{AttrTypes: periodTypes}}}
)

// hoursAttribute returns the attribute hours. The portal checks its values.
func hoursAttribute() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Optional:      true,
		PlanModifiers: []planmodifier.Object{objectplanmodifier.RequiresReplace()},
		MarkdownDescription: "The hours of the week during which the access is given; without it at any hour. Other hours request access " +
			"anew.",
		Attributes: map[string]schema.Attribute{
			"time_zone": schema.StringAttribute{Required: true, Validators: []validator.String{notBlank(64)},
				MarkdownDescription: "Name in the IANA time zone database, such as `Europe/Berlin`."},
			"periods": schema.ListNestedAttribute{
				Required: true, MarkdownDescription: "Periods of some days of the week.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"days": schema.SetAttribute{Required: true, ElementType: types.StringType,
						MarkdownDescription: "The days on which the period begins, such as `Mon`."},
					"from": schema.StringAttribute{Required: true, MarkdownDescription: "The first minute, such as `08:00`."},
					"to": schema.StringAttribute{Required: true,
						MarkdownDescription: "The first minute after the period; if it is earlier than `from`, the period ends on the next day."},
				}},
			},
		},
	}
}

// weeklyHours returns the hours of an attribute; nil if it is null.
func weeklyHours(ctx context.Context, o types.Object) (*portalclient.WeeklyHours, diag.Diagnostics) {
	if o.IsNull() {
		return nil, nil
	}
	var m hoursModel
	if diags := o.As(ctx, &m, basetypes.ObjectAsOptions{}); diags.HasError() {
		return nil, diags
	}
	out := &portalclient.WeeklyHours{TimeZone: m.TimeZone, Periods: []portalclient.DailyPeriod{}}
	for _, p := range m.Periods {
		period := portalclient.DailyPeriod{From: p.From, To: p.To, Days: []portalclient.Weekday{}}
		for _, day := range p.Days {
			period.Days = append(period.Days, portalclient.Weekday(day))
		}
		out.Periods = append(out.Periods, period)
	}
	return out, nil
}

// hoursObject returns the attribute of hours, which may be nil.
func hoursObject(ctx context.Context, h *portalclient.WeeklyHours) (types.Object, diag.Diagnostics) {
	if h == nil {
		return types.ObjectNull(hoursTypes), nil
	}
	m := hoursModel{TimeZone: h.TimeZone, Periods: []periodModel{}}
	for _, p := range h.Periods {
		period := periodModel{From: p.From, To: p.To, Days: []string{}}
		for _, day := range p.Days {
			period.Days = append(period.Days, string(day))
		}
		m.Periods = append(m.Periods, period)
	}
	return types.ObjectValueFrom(ctx, hoursTypes, m)
}
