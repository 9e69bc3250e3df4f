package hubble

import (
	"fmt"
	"strings"
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

const shop = "trnv1:rsc:trip-com:web:sites:shop"

// site returns policies with a resource that has request actions, in the given mode, which app/888 may only read.
func site(mode v1alpha1.Mode) policy.Input {
	in := classes()
	port := []v1alpha1.Port{{Port: 80, Protocol: v1alpha1.ProtocolTCP}}
	rc := &v1alpha1.ResourceClass{
		Spec: v1alpha1.ResourceClassSpec{Pattern: "trnv1:rsc:trip-com:web:sites:*", LabelKey: "com.trip/site", Actions: []v1alpha1.ClassAction{
			{Name: "web:order", Ports: port, HTTP: []v1alpha1.HTTPMatch{{Method: "POST", Path: "/orders(/.*)?"}}},
			{Name: "web:get", Ports: port, HTTP: []v1alpha1.HTTPMatch{{Method: "GET"}}},
			{Name: "web:browse", Ports: port, HTTP: []v1alpha1.HTTPMatch{{Method: "GET", Path: "/public/.*"}}},
		}},
	}
	rc.Name = "sites"
	in.ResourceClasses = append(in.ResourceClasses, rc)
	r := &v1alpha1.ProtectedResource{Spec: v1alpha1.ProtectedResourceSpec{Resource: shop, Mode: mode}}
	r.Name = "shop"
	in.Resources = append(in.Resources, r)
	p := &v1alpha1.AccessControlPolicy{Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{{SID: "get", Effect: v1alpha1.EffectAllow,
		Subjects: []v1alpha1.Subject{app888}, Actions: []v1alpha1.Action{"web:get"}, Resources: []v1alpha1.ResourceName{shop}}}}}
	p.Name = "p"
	in.Policies = append(in.Policies, p)
	return in
}

// viaHTTP makes a flow to the shop a request that a proxy at the destination reports.
func viaHTTP(method, url string, v flowpb.Verdict) func(*flowpb.Flow) {
	return func(f *flowpb.Flow) {
		toShop(f)
		f.Uuid += "-l7"
		f.Type, f.Verdict, f.EventType = flowpb.FlowType_L7, v, &flowpb.CiliumEventType{Type: eventL7}
		f.L7 = &flowpb.Layer7{Type: flowpb.L7FlowType_REQUEST, Record: &flowpb.Layer7_Http{Http: &flowpb.HTTP{Method: method, Url: url, Protocol: "HTTP/1.1",
			Headers: []*flowpb.HTTPHeader{{Key: "Authorization", Value: "Bearer secret"}}}}}
	}
}

func toShop(f *flowpb.Flow) {
	f.L4.GetTCP().DestinationPort = 80
	f.Destination.Labels = []string{"k8s:com.trip/site=shop"}
}

// asked returns the edge of requests of app/888 to the shop.
func asked(action string, word policy.Verdict, v audit.Verdict) audit.Edge {
	e := audit.Edge{
		Cluster:       "m1",
		SourceCluster: "m2",
		Subject:       app888,
		Resource:      shop,
		Action:        action,
		Port:          80,
		Protocol:      audit.ProtocolHTTP,
		Decision:      word,
		Verdict:       v,
	}
	if word == policy.Allowed {
		e.Statement = policy.Ref{Policy: "p", SID: "get"}
	}
	return e
}

const (
	passed  = flowpb.Verdict_FORWARDED
	refused = flowpb.Verdict_DROPPED
)

func TestRequests(t *testing.T) {
	connection := asked("web:browse", policy.Allowed, audit.VerdictForwarded)
	connection.Protocol = "TCP"
	none := asked("", policy.DefaultDenied, audit.VerdictDropped)
	for name, tc := range map[string]struct {
		reason string
		mode   v1alpha1.Mode
		flows  []*flowpb.Flow
		want   map[audit.Edge]int64
	}{
		"Passed": {
			reason: "its connection counts once, and the request shows that the action is used",
			flows:  []*flowpb.Flow{verdict(1, toShop), verdict(1, viaHTTP("GET", "http://shop/a", passed))},
			want:   map[audit.Edge]int64{connection: 1, asked("web:get", policy.Allowed, audit.VerdictForwarded): 0},
		},
		"Refused": {
			reason: "a client that is refused by the proxy counts, each request",
			flows: []*flowpb.Flow{verdict(1, toShop), verdict(1, viaHTTP("POST", "http://shop/orders/7", refused)),
				verdict(2, viaHTTP("POST", "http://shop/orders", refused)),
				verdict(2, viaHTTP("POST", "http://shop/orders", refused))},
			want: map[audit.Edge]int64{connection: 1, asked("web:order", policy.DefaultDenied, audit.VerdictDropped): 2},
		},
		"NoAction": {
			reason: "a request that no action matches",
			flows:  []*flowpb.Flow{verdict(1, viaHTTP("PUT", "http://shop/orders", refused))},
			want:   map[audit.Edge]int64{none: 1},
		},
		"WithQuery": {
			reason: "a proxy matches the path with its query, and no action has that",
			flows:  []*flowpb.Flow{verdict(1, viaHTTP("POST", "http://shop/orders?a=b", refused))},
			want:   map[audit.Edge]int64{none: 1},
		},
		"Several": {
			reason: "of two actions that match, the one that lets it in",
			flows:  []*flowpb.Flow{verdict(1, viaHTTP("GET", "http://shop/public/x", passed))},
			want:   map[audit.Edge]int64{asked("web:get", policy.Allowed, audit.VerdictForwarded): 0},
		},
		"Disagreement": {
			reason: "what passes although nothing allows it counts",
			flows:  []*flowpb.Flow{verdict(1, viaHTTP("POST", "http://shop/orders", passed))},
			want:   map[audit.Edge]int64{asked("web:order", policy.DefaultDenied, audit.VerdictForwarded): 1},
		},
		"DisagreementDropped": {
			reason: "so does what is refused although it is allowed",
			flows:  []*flowpb.Flow{verdict(1, viaHTTP("GET", "http://shop/", refused))},
			want:   map[audit.Edge]int64{asked("web:get", policy.Allowed, audit.VerdictDropped): 1},
		},
		"Audited": {
			reason: "what Enforce would refuse is seen, and counts for nothing beside its connection",
			mode:   v1alpha1.ModeAudit,
			flows:  []*flowpb.Flow{verdict(1, viaHTTP("POST", "http://shop/orders", passed))},
			want:   map[audit.Edge]int64{asked("web:order", policy.Audited, audit.VerdictForwarded): 0},
		},
		"NotJudged": {
			reason: "requests to a port without actions of requests say nothing that their connection does not",
			flows:  []*flowpb.Flow{verdict(1, viaHTTP("GET", "http://shop/", passed), func(f *flowpb.Flow) { f.L4.GetTCP().DestinationPort = 81 })},
			want:   map[audit.Edge]int64{},
		},
		"NoResource": {
			reason: "nothing is said about what is no resource",
			flows:  []*flowpb.Flow{verdict(1, viaHTTP("GET", "http://shop/", refused), func(f *flowpb.Flow) { f.Destination.Labels = []string{"k8s:app=x"} })},
			want:   map[audit.Edge]int64{},
		},
		"NoRequests": {
			reason: "answers, the client's side, lookups of names, and what has no method",
			flows: []*flowpb.Flow{
				verdict(1, viaHTTP("GET", "http://shop/", refused), func(f *flowpb.Flow) { f.L7.Type = flowpb.L7FlowType_RESPONSE }),
				verdict(2, viaHTTP("GET", "http://shop/", refused), func(f *flowpb.Flow) { f.IsReply = wrapperspb.Bool(true) }),
				verdict(3, viaHTTP("GET", "http://shop/", refused), func(f *flowpb.Flow) { f.TrafficDirection = flowpb.TrafficDirection_EGRESS }),
				verdict(4, viaHTTP("GET", "http://shop/", refused), func(f *flowpb.Flow) { f.L7.Record = &flowpb.Layer7_Dns{Dns: &flowpb.DNS{Query: "a"}} }),
				verdict(5, viaHTTP("", "http://shop/", refused)),
			},
			want: map[audit.Edge]int64{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.mode == "" {
				tc.mode = v1alpha1.ModeEnforce
			}
			for source, take := range map[string]func(*ingester, *flowpb.Flow){
				"Wire": take,
				"Line": func(in *ingester, f *flowpb.Flow) {
					s := scannedLine{line: exported(t, f)}
					if s.err = scanLine(s.line, &s.event); s.err != nil {
						t.Errorf("the scanner cannot read the line: %v", s.err)
					}
					in.ingestLine(&s)
				},
			} {
				l := newMemorySink()
				cfg := config("unused", l)
				cfg.Policies = always(policy.NewSnapshot(site(tc.mode)))
				in := ingesterOf(t, &cfg, audit.Resume{})
				for _, f := range tc.flows {
					take(in, f)
				}
				if diff := cmp.Diff(tc.want, l.edges, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", source, tc.reason, diff)
				}
			}
		})
	}
}

// TestRequestsAreBoundedInPaths verifies that caches and stored data do not grow with the paths, which clients choose.
func TestRequestsAreBoundedInPaths(t *testing.T) {
	l := newMemorySink()
	cfg := config("unused", l)
	cfg.Policies, cfg.RawFlows = always(policy.NewSnapshot(site(v1alpha1.ModeEnforce))), RawFlowsAll
	in := ingesterOf(t, &cfg, audit.Resume{})
	const requests = 3000
	for i := range requests {
		v, method := passed, "GET"
		if i%2 == 0 {
			v, method = refused, "POST"
		}
		take(in, verdict(i, viaHTTP(method, fmt.Sprintf("http://shop-%d/secret-%d?token=%d", i, i, i), v), when(t0.Add(-time.Minute))))
	}
	want := map[audit.Edge]int64{
		asked("web:get", policy.Allowed, audit.VerdictForwarded): 0,
		asked("", policy.DefaultDenied, audit.VerdictDropped):    requests / 2,
	}
	wantEdges(t, l, want)
	if l.takenIn != requests/2+1 {
		t.Errorf("got %d events, want the refused ones and one that reports use", l.takenIn)
	}
	cache := in.decider.caches[0]
	if len(cache.decisions) != 2 || len(cache.requests) != 2 {
		t.Errorf("got %d cached decisions and %d requests, want 2 and 2", len(cache.decisions), len(cache.requests))
	}
	for _, f := range l.flows {
		if s := fmt.Sprintf("%+v", f); strings.Contains(s, "secret") || strings.Contains(s, "token") {
			t.Fatalf("a flow contains the request: %s", s)
		}
	}
}

// TestRequestsOfEqualActions checks that a request is not decided with the path of another one that matches actions of the same names, but at
// another port, or of another resource: there the two paths may match different actions.
func TestRequestsOfEqualActions(t *testing.T) {
	const host = "trnv1:rsc:trip-com:web:hosts:h"
	ports := func(numbers ...int32) (out []v1alpha1.Port) {
		for _, n := range numbers {
			out = append(out, v1alpha1.Port{Port: n, Protocol: v1alpha1.ProtocolTCP})
		}
		return out
	}
	get := func(path string) []v1alpha1.HTTPMatch { return []v1alpha1.HTTPMatch{{Method: "GET", Path: path}} }
	in := classes()
	for name, of := range map[string]struct {
		pattern, key, resource string
		actions                []v1alpha1.ClassAction
	}{
		"sites": {"trnv1:rsc:trip-com:web:sites:*", "com.trip/site", shop, []v1alpha1.ClassAction{
			{Name: "web:get", Ports: ports(80, 8080), HTTP: get("")},
			{Name: "web:admin", Ports: ports(8080), HTTP: get("/admin/.*")},
		}},
		"hosts": {"trnv1:rsc:trip-com:web:hosts:*", "com.trip/host", host, []v1alpha1.ClassAction{
			{Name: "web:get", Ports: ports(80), HTTP: get("/public/.*")},
		}},
	} {
		rc := &v1alpha1.ResourceClass{Spec: v1alpha1.ResourceClassSpec{
			Pattern: v1alpha1.NamePattern(of.pattern), LabelKey: v1alpha1.LabelKey(of.key), Actions: of.actions,
		}}
		rc.Name = name
		r := &v1alpha1.ProtectedResource{Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(of.resource), Mode: v1alpha1.ModeEnforce}}
		r.Name = name
		in.ResourceClasses, in.Resources = append(in.ResourceClasses, rc), append(in.Resources, r)
	}
	p := &v1alpha1.AccessControlPolicy{Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{
		{SID: "admin", Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{app888}, Actions: []v1alpha1.Action{"web:admin"},
			Resources: []v1alpha1.ResourceName{shop}},
		{SID: "host", Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{app888}, Actions: []v1alpha1.Action{"web:get"},
			Resources: []v1alpha1.ResourceName{host}},
	}}}
	p.Name = "p"
	in.Policies = append(in.Policies, p)
	to := func(port uint32, label string) func(*flowpb.Flow) {
		return func(f *flowpb.Flow) {
			f.L4.GetTCP().DestinationPort, f.Destination.Labels = port, []string{"k8s:com.trip/" + label}
		}
	}
	edgeTo := func(resource string, port uint16, decision policy.Verdict, sid string) audit.Edge {
		e := asked("web:get", policy.DefaultDenied, audit.VerdictDropped)
		e.Resource, e.Port, e.Decision = resource, port, decision
		if sid != "" {
			e.Statement = policy.Ref{Policy: "p", SID: sid}
		}
		return e
	}
	for name, tc := range map[string]struct {
		flows []*flowpb.Flow
		want  map[audit.Edge]int64
	}{
		"AnotherPort": {[]*flowpb.Flow{
			verdict(1, viaHTTP("GET", "/admin/x", refused), to(80, "site=shop")),
			verdict(2, viaHTTP("GET", "/", refused), to(8080, "site=shop")),
		}, map[audit.Edge]int64{edgeTo(shop, 80, policy.DefaultDenied, ""): 1, edgeTo(shop, 8080, policy.DefaultDenied, ""): 1}},
		"AnotherResource": {[]*flowpb.Flow{
			verdict(1, viaHTTP("GET", "/", refused), to(80, "site=shop")),
			verdict(2, viaHTTP("GET", "/public/x", refused), to(80, "host=h")),
		}, map[audit.Edge]int64{edgeTo(shop, 80, policy.DefaultDenied, ""): 1, edgeTo(host, 80, policy.Allowed, "host"): 1}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newMemorySink()
			cfg := config("unused", l)
			cfg.Policies = always(policy.NewSnapshot(in))
			ingester := ingesterOf(t, &cfg, audit.Resume{})
			for _, f := range tc.flows {
				take(ingester, f)
			}
			wantEdges(t, l, tc.want)
		})
	}
}

// TestRequestsReportUseOnceAnHour verifies that a client that uses only old connections does not appear to be unused.
func TestRequestsReportUseOnceAnHour(t *testing.T) {
	h := &hourRecorder{newMemorySink(), map[time.Duration]int64{}, map[audit.Verdict]int{}}
	cfg := config("unused", h.memorySink)
	cfg.Sink, cfg.Now = h, func() time.Time { return t0.Add(24 * time.Hour) }
	cfg.Policies = always(policy.NewSnapshot(site(v1alpha1.ModeEnforce)))
	in := ingesterOf(t, &cfg, audit.Resume{})
	for i, since := range []time.Duration{0, time.Minute, 61 * time.Minute, 62 * time.Minute, 125 * time.Minute} {
		take(in, verdict(i, viaHTTP("GET", "http://shop/", passed), when(t0.Add(since))))
	}
	if diff := cmp.Diff(map[time.Duration]int64{0: 0, 61 * time.Minute: 0, 125 * time.Minute: 0}, h.shown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRequestIsBounded(t *testing.T) {
	long := strings.Repeat("a", maxPath)
	for name, tc := range map[string]struct {
		reason, method, url string
		want                request
	}{
		"URL":      {"scheme and host are not part of the path", "GET", "https://u:p@shop:80/a/b", request{"GET", "/a/b"}},
		"Path":     {"a path alone", "GET", "/a", request{"GET", "/a"}},
		"Nothing":  {"a missing path is the root", "GET", "http://shop", request{"GET", "/"}},
		"Query":    {"the query belongs to what a proxy matches", "GET", "http://shop?x=/y", request{"GET", "?x=/y"}},
		"Controls": {"terminal control characters are removed", "GE\x1bT", "http://shop/a\x1b[2J\u0085\x00b", request{"GET", "/a[2Jb"}},
		"NotUTF8":  {"no text", "G\xff", "http://shop/\xff\xfeb", request{"G", "/b"}},
		"Long":     {"the length is bounded", strings.Repeat("M", 100), "http://shop/" + long, request{strings.Repeat("M", maxMethod), ("/" + long)[:maxPath]}},
		"NoMethod": {"no method is none that an action has", "\x01", "/", request{policy.NoAction, "/"}},
	} {
		e := event{method: []byte(tc.method), url: []byte(tc.url)}
		if got := e.request(); got != tc.want {
			t.Errorf("%s: %s: %+v, want %+v", name, tc.reason, got, tc.want)
		}
	}
}
