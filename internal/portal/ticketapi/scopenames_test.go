package ticketapi

import (
	"net/netip"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

const (
	testApp  = "trnv1:rsc:acme:iam:sa:app/"
	testCIDR = "trnv1:rsc:acme:net:cidr:"
)

// TestScopeNamesMatch checks which sources of connections are within the subjects of a statement, and which may be.
func TestScopeNamesMatch(t *testing.T) {
	registered := addressesOf(policy.Input{Workloads: []*v1alpha1.ExternalWorkload{
		{Spec: v1alpha1.ExternalWorkloadSpec{Subject: testApp + "vm", Addresses: []string{"10.6.0.2", "10.6.0.4/30", "not an address"}}},
	}})
	for name, tc := range map[string]struct {
		subjects []string
		edge     audit.Edge
		want     scopeMatch
	}{
		"anyone covers a source without a name":   {[]string{"*"}, audit.Edge{Source: "namespace=x,a=b"}, inside},
		"anyone covers a name":                    {[]string{"*"}, audit.Edge{Subject: testApp + "1"}, inside},
		"an exact name":                           {[]string{testApp + "1"}, audit.Edge{Subject: testApp + "1"}, inside},
		"another name":                            {[]string{testApp + "1"}, audit.Edge{Subject: testApp + "12"}, outside},
		"a prefix":                                {[]string{testApp + "1*"}, audit.Edge{Subject: testApp + "12"}, inside},
		"a prefix does not cover sources":         {[]string{testApp + "*"}, audit.Edge{Source: "203.0.113.0/24"}, outside},
		"a range that contains the source":        {[]string{testCIDR + "203.0.112.0/22"}, audit.Edge{Source: "203.0.113.0/24"}, inside},
		"a range that is a part of the source":    {[]string{testCIDR + "203.0.113.0/25"}, audit.Edge{Source: "203.0.113.0/24"}, unsure},
		"another range":                           {[]string{testCIDR + "203.0.114.0/24"}, audit.Edge{Source: "203.0.113.0/24"}, outside},
		"a source that is not known":              {[]string{testCIDR + "203.0.113.0/24"}, audit.Edge{Source: "outside"}, unsure},
		"a workload without a name":               {[]string{testCIDR + "0.0.0.0/0"}, audit.Edge{Source: "namespace=x,a=b"}, outside},
		"a node of the fleet":                     {[]string{testCIDR + "0.0.0.0/0"}, audit.Edge{Source: "reserved:remote-node"}, outside},
		"a machine whose addresses are all in it": {[]string{testCIDR + "10.6.0.0/29"}, audit.Edge{Subject: testApp + "vm"}, inside},
		"a machine with an address outside of it": {[]string{testCIDR + "10.6.0.4/30"}, audit.Edge{Subject: testApp + "vm"}, unsure},
		"a machine with a part of a range":        {[]string{testCIDR + "10.6.0.4/31"}, audit.Edge{Subject: testApp + "vm"}, unsure},
		"a pod is not let in by an address":       {[]string{testCIDR + "10.6.0.0/16"}, audit.Edge{Subject: testApp + "vm", SourceCluster: "m1"}, outside},
		"a name without a registered address":     {[]string{testCIDR + "10.6.0.0/16"}, audit.Edge{Subject: testApp + "1"}, outside},
		"a written name that is not valid":        {[]string{"app", testCIDR + "1.2.3.4/8"}, audit.Edge{Subject: "app"}, outside},
		"an IPv6 range and an IPv4 source":        {[]string{testCIDR + "2001:db8::/32"}, audit.Edge{Source: "203.0.113.0/24"}, outside},
		"another name of the workload":            {[]string{testApp + "2"}, audit.Edge{Subject: testApp + "1", OtherSubjects: testApp + "2"}, inside},
		"one of several ranges":                   {[]string{testCIDR + "::/8", testCIDR + "203.0.113.0/24"}, audit.Edge{Source: "203.0.113.0/24"}, inside},
	} {
		if got := newScopeNames(tc.subjects).matches(&tc.edge, registered); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestScopeNamesOverlap checks which statements may be about the same name or address.
func TestScopeNamesOverlap(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b []string
		want bool
	}{
		"anyone":                {[]string{"*"}, []string{testCIDR + "10.0.0.0/8"}, true},
		"the same name":         {[]string{testApp + "1"}, []string{testApp + "1"}, true},
		"different names":       {[]string{testApp + "1"}, []string{testApp + "2"}, false},
		"a prefix and a name":   {[]string{testApp + "1*"}, []string{testApp + "12"}, true},
		"a prefix of a prefix":  {[]string{testApp + "1*"}, []string{testApp + "*"}, true},
		"different prefixes":    {[]string{testApp + "1*"}, []string{testApp + "2*"}, false},
		"ranges that overlap":   {[]string{testCIDR + "10.0.0.0/8"}, []string{testCIDR + "10.6.0.0/16"}, true},
		"ranges apart":          {[]string{testCIDR + "10.0.0.0/16"}, []string{testCIDR + "10.6.0.0/16"}, false},
		"a range and a name":    {[]string{testCIDR + "10.0.0.0/16"}, []string{testApp + "1"}, false},
		"one of several, later": {[]string{testApp + "1", testApp + "3"}, []string{testApp + "2", testApp + "3*"}, true},
	} {
		a, b := newScopeNames(tc.a), newScopeNames(tc.b)
		if a.overlaps(b) != tc.want || b.overlaps(a) != tc.want {
			t.Errorf("%s: %v and %v, want %v", name, a.overlaps(b), b.overlaps(a), tc.want)
		}
	}
}

// TestAddressesOf checks that single addresses and ranges of all registrations of an application are read.
func TestAddressesOf(t *testing.T) {
	got := addressesOf(policy.Input{Workloads: []*v1alpha1.ExternalWorkload{
		{Spec: v1alpha1.ExternalWorkloadSpec{Subject: "a", Addresses: []string{"10.6.0.2"}}},
		{Spec: v1alpha1.ExternalWorkloadSpec{Subject: "a", Addresses: []string{"2001:db8::/64"}}},
	}})["a"]
	want := []netip.Prefix{netip.MustParsePrefix("10.6.0.2/32"), netip.MustParsePrefix("2001:db8::/64")}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%v, want %v", got, want)
	}
}
