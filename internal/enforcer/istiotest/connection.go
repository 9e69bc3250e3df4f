package istiotest

import (
	"net/netip"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
)

// These are the labels of the classes of the worlds.
const (
	RedisLabel = "com.trip/redis-cluster"
	SiteLabel  = "com.trip/site"
	AppLabel   = "com.trip/appid"
	SvcLabel   = "com.trip/service"
)

// Traffic is a connection, or a request, as the destination's proxy sees it.
type Traffic struct {
	// Principal is the identity in the client's certificate, without the scheme; "" for plain text.
	Principal string
	Address   netip.Addr
	// Destination is the address that the client called; invalid if nothing depends on it.
	Destination netip.Addr
	Port        uint16
	// Method and Path describe a request; "" if the protocol is not HTTP.
	Method, Path string
}

// Connection is a connection as statements and as the mesh identify it.
type Connection struct {
	Query   policy.Query
	Traffic Traffic
	// Unmeshed marks pods that have a name in statements and no certificate.
	Unmeshed bool
}

// Destinations returns the labels of the pods of a world.
func (d Generator) Destinations() []map[string]string {
	return []map[string]string{
		{RedisLabel: "bobs-cluster" + d.Suffix},
		{SiteLabel: "shop" + d.Suffix},
		{RedisLabel: "orders-cache" + d.Suffix, SiteLabel: "shop" + d.Suffix},
		{RedisLabel: "bobs-cluster" + d.Suffix, SiteLabel: "blog" + d.Suffix},
	}
}

// Sender returns a connection of which only the source is set.
func (d Generator) Sender(s *policy.Snapshot) Connection {
	labels := Pick(d, map[string]string{AppLabel: "888"}, map[string]string{AppLabel: "889"}, map[string]string{SvcLabel: "cart"},
		map[string]string{SvcLabel: "888"}, map[string]string{AppLabel: "8889"})
	x := Connection{Traffic: Traffic{Address: netip.MustParseAddr(Pick(d, "10.0.3.4", "10.1.3.4", "fd00::7"))}}
	switch d.IntN(6) {
	case 0: // a node
	case 1, 2:
		x.Query.Source = netip.MustParseAddr(Pick(d, "10.5.0.9", "10.5.0.8", "10.5.7.7", "10.9.9.9", "2001:db8::1", "2001:db8:1::1", "2001:dead::1"))
		x.Traffic.Address = x.Query.Source
	case 3:
		x.Query.Subjects, x.Unmeshed = s.SubjectsOf(labels), true
	default: // in the mesh; some from addresses outside the fleet, which must not count
		x.Query.Subjects = s.SubjectsOf(labels)
		if d.IntN(4) == 0 {
			x.Traffic.Address = netip.MustParseAddr(Pick(d, "10.5.0.9", "10.5.0.8", "2001:db8::1"))
		}
		account := "app-" + labels[AppLabel]
		if v, ok := labels[SvcLabel]; ok {
			account = "svc-" + v
		}
		x.Traffic.Principal = Pick(d, "cluster.local", "other.domain") + "/ns/" + Pick(d, "a", "sa") + "/sa/" + account
	}
	return x
}

// Connection returns a connection to a pod with these labels in a member.
func (d Generator) Connection(s *policy.Snapshot, labels map[string]string, cluster string) Connection {
	x := d.Sender(s)
	q, t := &x.Query, &x.Traffic
	q.Resources, q.Cluster, q.At, q.Protocol = s.ResourcesOf(labels), cluster, Noon, v1alpha1.ProtocolTCP
	q.Port = Pick[uint16](d, 6379, 6379, 6380, 16380, 80, 8080, 8080, 9121)
	if q.Port == 80 || q.Port == 8080 { // their protocol is HTTP, so a request is what is decided
		q.Method, q.Path = Pick(d, "GET", "POST", "PUT"), Pick(d, "/", "/orders", "/orders/1", "/ordersx", "/a.css", "/axb")
	}
	t.Port, t.Method, t.Path = q.Port, q.Method, q.Path
	return x
}

// SameMode reports whether all of the destination's resources have one mode. An allow of a resource in Audit or Observe
// cannot open, for Istio, what another resource of the pod closes.
func SameMode(s *policy.Snapshot, q *policy.Query) bool {
	modes := map[v1alpha1.Mode]bool{}
	for _, r := range q.Resources {
		modes[s.EffectiveMode(r, q.Cluster, q.At)] = true
	}
	return len(modes) == 1 || len(q.Resources) == 0
}
