package cluster

import (
	"net/netip"
	"testing"
)

func TestAddressesOfClustersAreApart(t *testing.T) {
	var all []netip.Prefix
	nodes := map[string]bool{Gateway().IP.String(): true}
	for n := 1; n <= MaxNodes; n++ {
		c := Config{Name: "c", Number: n}
		for _, p := range []netip.Prefix{c.Pods(), c.Services()} {
			for _, other := range all {
				if p.Overlaps(other) {
					t.Errorf("cluster %d: %s overlaps %s", n, p, other)
				}
			}
			all = append(all, p)
		}
		if nodes[c.NodeIP()] {
			t.Errorf("cluster %d: the address %s is taken", n, c.NodeIP())
		}
		nodes[c.NodeIP()] = true
		for _, service := range []string{c.DNS(), c.APIService()} {
			if !c.Services().Contains(netip.MustParseAddr(service)) {
				t.Errorf("cluster %d: %s is not in %s", n, service, c.Services())
			}
		}
	}
}
