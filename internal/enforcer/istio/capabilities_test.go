package istio

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/internal/message"
)

func TestParseConfig(t *testing.T) {
	const good = "default: {dataplane: none}\n"
	waypoints := func(list string) string {
		return good + "members: {m1: {dataplane: ambient, version: '1.30', waypoints: [" + list + "]}}\n"
	}
	for name, tc := range map[string]struct {
		reason, text, wrong string
	}{
		"Good":    {reason: "members that declare nothing enforce nothing", text: good},
		"Members": {reason: "each field", text: good + "members: {m1: {dataplane: ambient, version: 1.29.0, strictMTLS: true, ranges: [10.0.0.0/16]}}\n"},
		"Nothing": {reason: "a default has to be stated", text: "", wrong: "default"},
		"Misspelled": {
			reason: "a misspelled field is no capability",
			text:   good + "members: {m1: {dataplane: sidecar, version: '1.30', strictTLS: true}}\n", wrong: "strictTLS",
		},
		"Dataplane": {reason: "no such dataplane", text: "default: {dataplane: proxyless}\n", wrong: "proxyless"},
		"Version":   {reason: "a version that says nothing", text: good + "members: {m1: {dataplane: sidecar, version: latest}}\n", wrong: "member m1"},
		"NoVersion": {reason: "a version has to be declared", text: "default: {dataplane: sidecar}\n", wrong: "version"},
		"HostBits": {
			reason: "a range with host bits is a mistake",
			text:   good + "members: {m1: {dataplane: sidecar, version: '1.30', ranges: [10.0.0.7/16]}}\n", wrong: "host bits",
		},
		"Waypoints": {
			reason: "a waypoint for each of two resources",
			text:   waypoints("{resource: a, gateway: x, port: 80}, {resource: b, gateway: y, port: 80}"),
		},
		"WaypointOfSidecars": {
			reason: "sidecars see requests",
			text:   good + "members: {m1: {dataplane: sidecar, version: '1.30', waypoints: [{resource: a, gateway: x, port: 80}]}}\n", wrong: "ambient",
		},
		"SharedWaypoint": {
			reason: "routes of one resource would lead to the other",
			text:   waypoints("{resource: a, gateway: x, port: 80}, {resource: b, gateway: x, port: 81}"),
			wrong:  "waypoint x is dedicated to two",
		},
		"SecondWaypoint": {
			reason: "one resource has one",
			text:   waypoints("{resource: a, gateway: x, port: 80}, {resource: a, gateway: y, port: 80}"),
			wrong:  "two waypoints",
		},
		"WaypointOfWildcard": {
			reason: "a wildcard is many resources",
			text:   waypoints("{resource: 'a*', gateway: x, port: 80}"), wrong: "exact name",
		},
		"WaypointWithoutPort": {
			reason: "pods would accept it on every port",
			text:   waypoints("{resource: a, gateway: x}"), wrong: "port 0",
		},
		"WaypointElsewhere": {
			reason: "it has to be in the root namespace",
			text:   waypoints("{resource: a, gateway: shop/x, port: 80}"), wrong: "shop/x",
		},
		"WaypointOfAll": {
			reason: "a Gateway is in one member",
			text:   "default: {dataplane: ambient, version: '1.30', waypoints: [{resource: a, gateway: x, port: 80}]}\n", wrong: "single member",
		},
		"WaypointOfOtherMembers": {
			reason: "a resource may have a Gateway with the same name in each member",
			text: good + "members: {m1: {dataplane: ambient, version: '1.30', waypoints: [{resource: a, gateway: x, port: 80}]}, " +
				"m2: {dataplane: ambient, version: '1.30', waypoints: [{resource: a, gateway: x, port: 81}]}}\n",
		},
		"WaypointOfAnotherMember": {
			reason: "pods accept its account in every trust domain",
			text: good + "members: {m1: {dataplane: ambient, version: '1.30', waypoints: [{resource: a, gateway: x, port: 80}]}, " +
				"m2: {dataplane: ambient, version: '1.30', waypoints: [{resource: b, gateway: x, port: 80}]}}\n",
			wrong: "member m2: the waypoint x is dedicated to a in m1",
		},
		"WaypointMisspelled": {
			reason: "a misspelled field of an entry in a file",
			text:   waypoints("{resource: a, gatway: x, port: 80}"), wrong: "gatway",
		},
		"NoRange": {reason: "not an address range", text: good + "members: {m1: {dataplane: sidecar, version: '1.30', ranges: [pods]}}\n", wrong: "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseConfig([]byte(tc.text))
			if tc.wrong == "" && err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if tc.wrong != "" && (!errors.Is(err, ErrInvalidConfig) || !strings.Contains(err.Error(), tc.wrong)) {
				t.Errorf("%s: error %v does not name %q", tc.reason, err, tc.wrong)
			}
		})
	}
}

// TestInvalidWaypointsAreDropped checks that an entry of waypoints that cannot be used dedicates nothing, and takes away nothing else from a member.
func TestInvalidWaypointsAreDropped(t *testing.T) {
	const good = "{resource: good, gateway: g, port: 80}"
	for _, c := range []struct{ reason, entries, unused, says string }{
		{"a port is missing", good + ", {resource: a, gateway: x}", "a", "port 0"},
		{"a field is misspelled", good + ", {resource: a, gatway: x, port: 80}", "a", "gatway"},
		{"a field has another type", good + ", {resource: a, gateway: x, port: http}", "a", "port"},
		{"a wildcard", good + ", {resource: 'a*', gateway: x, port: 80}", "a*", "exact name"},
		{"one Gateway for two resources", good + ", {resource: a, gateway: x, port: 80}, {resource: b, gateway: x, port: 81}", "a b", "two resources"},
		{"two Gateways for one resource", good + ", {resource: a, gateway: x, port: 80}, {resource: a, gateway: y, port: 80}", "a a", "two waypoints"},
	} {
		config := Declared(map[string]Declaration{"m1": {Text: "{dataplane: ambient, version: '1.31', strictMTLS: true, waypoints: [" + c.entries + "]}"}})
		if why := config.UnsupportedReason("m1"); !why.IsZero() {
			t.Errorf("%s: the member enforces nothing: %s", c.reason, why.Text)
			continue
		}
		if _, err := New(config); err != nil {
			t.Errorf("%s: %v", c.reason, err)
		}
		if w := config.Dedications("good")["m1"]; w.Waypoint.Gateway != "g" || !w.Unused.IsZero() {
			t.Errorf("%s: the other entry is %+v", c.reason, w)
		}
		unused := config.Members["m1"].Unused
		var resources []string
		for _, u := range unused {
			resources = append(resources, u.Resource)
			if d := config.Dedications(u.Resource)["m1"]; d.Waypoint != (Waypoint{}) || !strings.Contains(d.Unused.Text, c.says) {
				t.Errorf("%s: %s has %+v", c.reason, u.Resource, d)
			}
		}
		if got := strings.Join(resources, " "); got != c.unused {
			t.Errorf("%s: unused are %q", c.reason, got)
		}
	}
	text := func(waypoints string) Declaration {
		return Declaration{Text: "{dataplane: ambient, version: '1.31', waypoints: [" + waypoints + "]}"}
	}
	const x = "gateway: x, port: 80}"
	members := Declared(map[string]Declaration{"m1": text(good + ", {resource: a, " + x), "m2": text("{resource: b, " + x), "m3": text("{resource: a, " + x)})
	if _, err := New(members); err != nil {
		t.Error(err)
	}
	for member, want := range map[string]string{"m1": "b in m2", "m2": "a in m1", "m3": "b in m2"} {
		d := members.Dedications(map[string]string{"m1": "a", "m2": "b", "m3": "a"}[member])[member]
		if d.Waypoint != (Waypoint{}) || !strings.Contains(d.Unused.Text, want) {
			t.Errorf("%s with a Gateway of another resource elsewhere: %+v", member, d)
		}
	}
	if d := members.Dedications("good")["m1"]; d.Waypoint.Gateway != "g" {
		t.Errorf("the other entry is %+v", d)
	}
	sidecars := Declared(map[string]Declaration{"m1": {Text: "{dataplane: sidecar, version: '1.31', waypoints: [" + good + "]}"}})
	if why := sidecars.UnsupportedReason("m1"); !why.IsZero() || sidecars.Dedications("good")["m1"].Unused.IsZero() {
		t.Errorf("with sidecars: the member enforces nothing: %q; %+v", why.Text, sidecars.Dedications("good"))
	}
}

func TestProfile(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		in     Capabilities
		want   profile
	}{
		"Sidecar": {reason: "sees requests", in: Capabilities{Dataplane: Sidecar, Version: "1.31.2"}},
		"Ambient": {
			reason: "sees connections", in: Capabilities{Dataplane: Ambient, Version: "1.29", StrictMTLS: true},
			want: profile{ambient: true, strict: true},
		},
		"None": {
			reason: "enforces nothing, whatever else is declared", in: Capabilities{Dataplane: NoDataplane, StrictMTLS: true},
			want: profile{unsupported: message.IstioNotDeclared()},
		},
		"Old": {
			reason: "its behaviour is not relied upon", in: Capabilities{Dataplane: Sidecar, Version: "1.28.9"},
			want: profile{unsupported: message.IstioTooOld("1.28.9", 29)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.in.profile(), cmp.AllowUnexported(profile{}, Waypoint{})); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFleetNeedsEveryMember(t *testing.T) {
	c := testConfig()
	if n := len(fleetOf(c)); n != 5 {
		t.Errorf("%d ranges, want those of the default and of all members", n)
	}
	m3 := c.Members["m3"]
	m3.Ranges = nil
	c.Members["m3"] = m3
	if got := fleetOf(c); got != nil {
		t.Errorf("%v: a member without a declaration may have pods anywhere", got)
	}
}

// FuzzParseConfig: no text makes it panic, and what it accepts makes an enforcer.
func FuzzParseConfig(f *testing.F) {
	f.Add("default: {dataplane: sidecar, version: 1.31.0, ranges: [10.0.0.0/8]}\nmembers: {m1: {dataplane: ambient, version: '1.29'}}")
	f.Add("{")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseConfig([]byte(text))
		if err != nil {
			if !errors.Is(err, ErrInvalidConfig) {
				t.Fatalf("%v is not ErrInvalidConfig", err)
			}
			return
		}
		if _, err := New(c); err != nil {
			t.Fatalf("%+v was accepted, and refused by New: %v", c, err)
		}
	})
}

func TestNewRefusesBadConfigs(t *testing.T) {
	if _, err := New(Config{}); !errors.Is(err, ErrInvalidConfig) {
		t.Errorf("New of nothing: %v", err)
	}
	e, err := New(Config{Default: Capabilities{Dataplane: NoDataplane}})
	if err != nil {
		t.Fatal(err)
	}
	want := Config{RootNamespace: "istio-system", Default: Capabilities{Dataplane: NoDataplane}}
	if diff := cmp.Diff(want, e.config, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
