package audittest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// Fleet generates flows like those of a large fleet, for benchmarks: many edges, few of which carry most connections; each client
// has several pods on separate nodes; source ports are random. The same seed generates the same flows.
type Fleet struct {
	Edges []audit.Edge

	random  *rand.Rand
	popular *rand.Zipf
	// clients holds the addresses of the client pods by edge, servers those of the server pods.
	clients, servers [][]netip.Addr
	nodes            [][]string
}

const (
	resourcesOfFleet = 2000
	podsOfEnd        = 20
	nodesOfFleet     = 7000
)

// NewFleet returns a Fleet with the given number of edges.
func NewFleet(edges int) *Fleet {
	r := rand.New(rand.NewPCG(1, 2))
	f := &Fleet{random: r, popular: rand.NewZipf(r, 1.1, 20, uint64(edges-1))}
	pods := func(net byte, n int) []netip.Addr {
		out := make([]netip.Addr, podsOfEnd)
		for i := range out {
			var b [4]byte
			binary.BigEndian.PutUint32(b[:], uint32(net)<<24|uint32(n*podsOfEnd+i)&0xffffff)
			out[i] = netip.AddrFrom4(b)
		}
		return out
	}
	for i := range edges {
		resource, subject := i%resourcesOfFleet, r.IntN(10_000)
		e := Edge(func(e *audit.Edge) {
			e.Cluster, e.SourceCluster = fmt.Sprint("m", resource%3), fmt.Sprint("m", subject%3)
			e.Subject, e.Resource = fmt.Sprintf(
				"trnv1:rsc:trip-com:iam:sa:app/%d",
				subject,
			), fmt.Sprintf(
				"trnv1:rsc:trip-com:redis:clusters:cluster-%d",
				resource,
			)
			e.Statement = policy.Ref{Policy: fmt.Sprint("portal-", resource), SID: fmt.Sprint("t", i)}
			if i%20 == 0 {
				e.Decision, e.Verdict, e.Statement = policy.DefaultDenied, audit.VerdictDropped, policy.Ref{}
			}
		})
		f.Edges = append(f.Edges, e)
		f.clients, f.servers = append(f.clients, pods(10, subject)), append(f.servers, pods(11, resource))
		nodes := make([]string, podsOfEnd)
		for j := range nodes {
			nodes[j] = fmt.Sprintf("%s-node-%04d.trip.example", e.Cluster, (resource*podsOfEnd+j)%nodesOfFleet)
		}
		f.nodes = append(f.nodes, nodes)
	}
	r.Shuffle(len(f.Edges), func(i, j int) {
		f.Edges[i], f.Edges[j] = f.Edges[j], f.Edges[i]
		f.clients[i], f.clients[j] = f.clients[j], f.clients[i]
		f.servers[i], f.servers[j] = f.servers[j], f.servers[i]
		f.nodes[i], f.nodes[j] = f.nodes[j], f.nodes[i]
	})
	return f
}

// Rollups returns the roll-ups of n edges in a minute.
func (f *Fleet) Rollups(bucket time.Time, n int) []audit.Rollup {
	out := make([]audit.Rollup, 0, n)
	at := f.random.IntN(len(f.Edges))
	for i := range n {
		first := bucket.Add(time.Duration(f.random.IntN(20_000_000)) * time.Microsecond)
		out = append(
			out,
			audit.Rollup{
				Bucket:    bucket,
				Edge:      f.Edges[(at+i)%len(f.Edges)],
				Count:     1 + f.random.Int64N(200),
				FirstSeen: first,
				LastSeen:  first.Add(time.Duration(f.random.IntN(40_000_000)) * time.Microsecond),
			},
		)
	}
	return out
}

// Flows returns n raw flows in a time span, ordered by time.
func (f *Fleet) Flows(from time.Time, span time.Duration, n int) []audit.Flow {
	out := make([]audit.Flow, 0, n)
	for i := range n {
		k := f.popular.Uint64()
		e := &f.Edges[k]
		client, server := f.random.IntN(podsOfEnd), f.random.IntN(podsOfEnd)
		reason := "allowed by " + e.Statement.String()
		if e.Decision == policy.DefaultDenied {
			reason = "no statement allows it"
		}
		out = append(out, audit.Flow{
			Time:               from.Add(span * time.Duration(i) / time.Duration(n)).Truncate(time.Microsecond),
			Node:               f.nodes[k][server],
			Edge:               *e,
			SourceAddress:      f.clients[k][client],
			DestinationAddress: f.servers[k][server],
			SourcePort:         uint16(32768 + f.random.IntN(28232)),
			Count:              1,
			Reason:             reason,
		})
	}
	return out
}

// Figures returns the median and the 99th percentile of durations.
func Figures(durations []time.Duration) (p50, p99 time.Duration) {
	slices.Sort(durations)
	return durations[len(durations)/2], durations[len(durations)*99/100]
}
