package savedview

import (
	"errors"
	"strings"
	"testing"
)

func TestNormalize(t *testing.T) {
	valid := View{Page: PageFlows, Name: "Denied", Query: "decision=denied&q=redis"}
	with := func(change func(*View)) View {
		v := valid
		change(&v)
		return v
	}
	for name, tc := range map[string]struct {
		reason string
		view   View
		field  string // that is invalid; empty if the view is valid
		want   View
	}{
		"valid":        {"it stays as it is", valid, "", valid},
		"spaces":       {"a name is trimmed", with(func(v *View) { v.Name = "  Denied\t" }), "", valid},
		"order":        {"the encoding is canonical", with(func(v *View) { v.Query = "q=redis&decision=%64enied" }), "", valid},
		"other script": {"a name may be in any language", with(func(v *View) { v.Name = "被拒绝的连接" }), "", with(func(v *View) { v.Name = "被拒绝的连接" })},
		"emoji": {
			"some are joined characters", with(func(v *View) { v.Name = "👩‍💻 我的　视图" }), "",
			with(func(v *View) { v.Name = "👩‍💻 我的　视图" }),
		},
		"other pages": {"every page with filters", with(func(v *View) { v.Page = PageUnused }), "", with(func(v *View) { v.Page = PageUnused })},
		"tables": {
			"pages with a filtered table", with(func(v *View) { v.Page = PageAccessPolicies }), "",
			with(func(v *View) { v.Page = PageAccessPolicies }),
		},
		"no page":    {"a view belongs to a page", with(func(v *View) { v.Page = "" }), "page", View{}},
		"other page": {"only pages with filters", with(func(v *View) { v.Page = "profile" }), "page", View{}},
		"other site": {"a page is never an address", with(func(v *View) { v.Page = "/evil.example/" }), "page", View{}},
		"no name":    {"it is the text of a link", with(func(v *View) { v.Name = "  " }), "name", View{}},
		"long name":  {"one more than the limit", with(func(v *View) { v.Name = strings.Repeat("长", MaxName+1) }), "name", View{}},
		"longest name": {
			"the limit is in characters", with(func(v *View) { v.Name = strings.Repeat("长", MaxName) }), "",
			with(func(v *View) { v.Name = strings.Repeat("长", MaxName) }),
		},
		"line break":    {"a name is one line", with(func(v *View) { v.Name = "a\nb" }), "name", View{}},
		"direction":     {"a name must read as it is", with(func(v *View) { v.Name = "a\u202eb" }), "name", View{}},
		"no filter":     {"the page without filters needs no view", with(func(v *View) { v.Query = "" }), "query", View{}},
		"question mark": {"the query is without it", with(func(v *View) { v.Query = "?a=b" }), "query", View{}},
		"fragment":      {"the query ends before it", with(func(v *View) { v.Query = "a=b#c" }), "query", View{}},
		"bad escape":    {"it has no meaning", with(func(v *View) { v.Query = "a=%zz" }), "query", View{}},
		"semicolon":     {"browsers and servers read it differently", with(func(v *View) { v.Query = "a=b;c=d" }), "query", View{}},
		"control":       {"no filter has one", with(func(v *View) { v.Query = "a=%00" }), "query", View{}},
		"not UTF-8":     {"no filter has such bytes", with(func(v *View) { v.Query = "a=%ff" }), "query", View{}},
		"unnamed value": {"no filter is without a name", with(func(v *View) { v.Query = "=b" }), "query", View{}},
		"long query":    {"one more than the limit", with(func(v *View) { v.Query = "a=" + strings.Repeat("b", MaxQuery-1) }), "query", View{}},
		"grown query":   {"the limit holds for what is stored", with(func(v *View) { v.Query = "a=" + strings.Repeat("长", MaxQuery/4) }), "query", View{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.view.Normalize()
			var invalid *InvalidError
			switch {
			case tc.field == "" && (err != nil || got != tc.want):
				t.Errorf("%s: %+v, %v", tc.reason, got, err)
			case tc.field != "" && (!errors.As(err, &invalid) || invalid.Field != tc.field):
				t.Errorf("%s: %+v, %v", tc.reason, got, err)
			}
		})
	}
}
