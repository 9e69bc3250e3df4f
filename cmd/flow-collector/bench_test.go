package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	observerpb "github.com/cilium/cilium/api/v1/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/sqlite"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/testenv"
)

// BenchmarkManyMembers follows the relays of 2 and of 100 members with the real program. The flows of all relays together are those of a
// fleet with 400,000 connections in 30 seconds. After the first of three phases the relays deliver nothing for a while, and then at once
// what they kept. The host has 10,000 resources with 10 grants each.
func BenchmarkManyMembers(b *testing.B) {
	var few usage
	for _, members := range []int{2, 100} {
		c := runCollector(b, members)
		fmt.Printf("bench collector_rss_%d %.0f MB\n", members, c.rss)
		fmt.Printf("bench collector_cpu_%d %.2f cores\n", members, c.cores)
		if members == 2 {
			few = c
		} else {
			fmt.Printf("bench collector_rss_per_member %.2f MB\n", (c.rss-few.rss)/float64(members-2))
		}
	}
}

const (
	fleetFlows = 13_300 // per second, of all members
	// The relays deliver each flow at once, then keep what happens, then deliver that and each flow at once again.
	steadyPhase, keepingPhase = 20 * time.Second, 10 * time.Second

	benchResources, benchApplications, grantsPerResource = 10_000, 10_000, 10
	// newGrants is how many applications with a grant on a resource have none on the resource before.
	newGrants          = 5
	resourcesWithFlows = 2_000
)

// usage is what a run of the collector used.
type usage struct {
	// rss is the peak of its resident memory, in MB.
	rss float64
	// cores is its processor time in relation to the time that it ran.
	cores float64
}

// runCollector runs a collector that follows a number of members, and fails if a connection is missing or counted twice.
func runCollector(b *testing.B, members int) usage {
	b.Helper()
	dir := b.TempDir()
	relays := newRelays(b, members)
	common := []string{"--kubeconfig=" + hostWith(b, benchObjects()), "--store=sqlite:" + filepath.Join(dir, "flows.db"),
		"--spool=" + filepath.Join(dir, "spool"), "--flows=refused"}
	args := append(slices.Clone(common), "--hubble-tls-server-name=example.com")
	for flag, path := range certificateOf(b, relays.certificate) {
		args = append(args, "--"+flag+"="+path)
	}
	for i, address := range relays.addresses {
		args = append(args, fmt.Sprintf("--hubble=m%d=%s", i, address))
	}
	cmd := exec.CommandContext(b.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMEMLIMIT=%dMiB", 250+2*members)) // of 300 MB and 2 MB per member
	began := time.Now()
	p := begin(b, cmd)
	relays.run(b)
	for p.behind(b, relays.last(), members) {
		time.Sleep(100 * time.Millisecond)
	}
	var c usage
	c.rss = testenv.PeakMemory(b, cmd.Process.Pid)
	p.end(b, syscall.SIGTERM)
	ran := time.Since(began)
	for kept(b, dir) { // the store was too slow for the last batches
		p = startProcess(b, append(common, "--exporter=m0="+os.DevNull)...)
		for kept(b, dir) {
			time.Sleep(100 * time.Millisecond)
		}
		p.end(b, syscall.SIGTERM)
	}
	c.cores = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() / ran.Seconds()

	store, err := sqlite.Open(b.Context(), filepath.Join(dir, "flows.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	counted, decided := int64(0), int64(0)
	err = store.Totals(b.Context(), audit.Filter{}, func(x audit.Total) error {
		counted += x.Count
		if x.Decision != policy.Unmanaged {
			decided += x.Count
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	if sent := relays.sent.Load(); counted != sent || decided != sent {
		losses, err := store.Losses(b.Context(), audit.LossQuery{})
		if err != nil {
			b.Fatal(err)
		}
		b.Fatalf("%d members: %d connections are stored and %d of them were decided, want %d; losses %+v", members, counted, decided, sent, losses.Items)
	}
	return c
}

// behind reports whether a member was not read up to t.
func (p *process) behind(t testing.TB, at time.Time, members int) bool {
	t.Helper()
	r := p.readiness(t)
	if len(r.Members) < members {
		return true
	}
	for _, m := range r.Members {
		if m.Position == nil || m.Position.Before(at) {
			return true
		}
	}
	return false
}

// relays are Hubble's relays of several members, each on a port of its own, with mutual TLS.
type relays struct {
	certificate tls.Certificate
	addresses   []string
	// connected receives a value for each stream of flows.
	connected chan struct{}
	// began is closed when flows begin to happen, at start.
	began chan struct{}
	start time.Time
	sent  atomic.Int64
}

func newRelays(b *testing.B, members int) *relays {
	b.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	s.Close()
	r := &relays{certificate: s.TLS.Certificates[0], connected: make(chan struct{}, members), began: make(chan struct{})}
	for i := range members {
		l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		server := grpc.NewServer(grpc.Creds(credentials.NewTLS(
			&tls.Config{Certificates: []tls.Certificate{r.certificate}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13},
		)))
		observerpb.RegisterObserverServer(server, &relay{relays: r, member: i, members: members})
		go func() { _ = server.Serve(l) }()
		b.Cleanup(server.Stop)
		r.addresses = append(r.addresses, l.Addr().String())
	}
	return r
}

// run waits until every member is followed, and then until all flows happened.
func (r *relays) run(b *testing.B) {
	b.Helper()
	for range r.addresses {
		select {
		case <-r.connected:
		case <-time.After(5 * time.Minute):
			b.Fatal("not every member is followed")
		}
	}
	r.start = time.Now()
	close(r.began)
	time.Sleep(time.Until(r.start.Add(2*steadyPhase + keepingPhase)))
}

// last returns the time of the last flow of every relay.
func (r *relays) last() time.Time {
	interval := r.interval()
	return r.start.Add((2*steadyPhase + keepingPhase - 1) / interval * interval)
}

// interval is the time between two flows of a relay.
func (r *relays) interval() time.Duration {
	return time.Second * time.Duration(len(r.addresses)) / fleetFlows
}

// relay is that of one member.
type relay struct {
	observerpb.UnimplementedObserverServer
	*relays
	member, members int
}

func (r *relay) ServerStatus(context.Context, *observerpb.ServerStatusRequest) (*observerpb.ServerStatusResponse, error) {
	return &observerpb.ServerStatusResponse{}, nil
}

func (r *relay) GetFlows(_ *observerpb.GetFlowsRequest, stream grpc.ServerStreamingServer[observerpb.GetFlowsResponse]) error {
	r.connected <- struct{}{}
	select {
	case <-r.began:
	case <-stream.Context().Done():
		return nil
	}
	flows := newBenchFlows(r.member, r.members)
	interval := r.interval()
	end := r.start.Add(2*steadyPhase + keepingPhase)
	for i := 0; ; i++ {
		at := r.start.Add(time.Duration(i) * interval)
		if !at.Before(end) {
			break
		}
		deliver := at
		if kept := r.start.Add(steadyPhase); at.After(kept) && at.Before(kept.Add(keepingPhase)) {
			deliver = kept.Add(keepingPhase)
		}
		if wait := time.Until(deliver); wait > 0 {
			time.Sleep(wait)
		}
		if err := stream.Send(flows.next(i, at)); err != nil {
			return err
		}
		r.sent.Add(1)
	}
	<-stream.Context().Done()
	return nil
}

// benchFlows are the flows of a member: connections that have a grant, but for the last of its resources.
type benchFlows struct {
	member           int
	rand             *rand.Rand
	clients, servers []*flowpb.Endpoint
}

// newBenchFlows returns the flows of one of so many members. All together have flows of 2,000 resources, each with 10 of 10,000
// applications.
func newBenchFlows(member, members int) *benchFlows {
	f := &benchFlows{member: member, rand: rand.New(rand.NewPCG(uint64(member), 1))}
	servers := resourcesWithFlows / members
	for i := range servers {
		f.servers = append(f.servers, endpoint(member, "com.trip/redis-cluster", fmt.Sprint("r", member*servers+i), "redis", i))
	}
	for i := range servers * newGrants {
		f.clients = append(f.clients, endpoint(member, "com.trip/appid", strconv.Itoa(member*servers*newGrants+i), "apps", i))
	}
	return f
}

func endpoint(member int, key, value, namespace string, i int) *flowpb.Endpoint {
	return &flowpb.Endpoint{
		ID:          uint32(1000 + i),
		Identity:    uint32(20000 + i),
		ClusterName: fmt.Sprint("m", member),
		Namespace:   namespace,
		PodName:     fmt.Sprintf("%s-%d-7c9f8", namespace, i),
		Labels: []string{
			"k8s:" + key + "=" + value, fmt.Sprint("k8s:io.cilium.k8s.policy.cluster=m", member),
			"k8s:io.cilium.k8s.policy.serviceaccount=" + namespace, "k8s:io.kubernetes.pod.namespace=" + namespace,
		},
		Workloads: []*flowpb.Workload{{Name: fmt.Sprint(namespace, "-", i), Kind: "Deployment"}},
	}
}

func (f *benchFlows) next(i int, at time.Time) *observerpb.GetFlowsResponse {
	server := f.rand.IntN(len(f.servers))
	client := (server*newGrants + f.rand.IntN(grantsPerResource)) % len(f.clients)
	return &observerpb.GetFlowsResponse{NodeName: fmt.Sprintf("m%d/n1", f.member), Time: timestamppb.New(at),
		ResponseTypes: &observerpb.GetFlowsResponse_Flow{Flow: &flowpb.Flow{
			Uuid:             fmt.Sprintf("%08x-0000-4000-8000-%012x", i, f.member),
			Time:             timestamppb.New(at),
			NodeName:         fmt.Sprintf("m%d/n1", f.member),
			Verdict:          flowpb.Verdict_FORWARDED,
			Type:             flowpb.FlowType_L3_L4,
			EventType:        &flowpb.CiliumEventType{Type: 5},
			TrafficDirection: flowpb.TrafficDirection_INGRESS,
			IsReply:          wrapperspb.Bool(false),
			Ethernet:         &flowpb.Ethernet{Source: "0a:58:0a:01:00:01", Destination: "0a:58:0a:02:00:02"},
			IP: &flowpb.IP{Source: fmt.Sprintf("10.1.%d.%d", client/200, client%200), Destination: fmt.Sprintf("10.2.%d.%d", server/200, server%200),
				IpVersion: flowpb.IPVersion_IPv4},
			L4: &flowpb.Layer4{Protocol: &flowpb.Layer4_TCP{TCP: &flowpb.TCP{
				SourcePort: uint32(32768 + i%28000), DestinationPort: 6379, Flags: &flowpb.TCPFlags{SYN: true},
			}}},
			Source:      f.clients[client],
			Destination: f.servers[server],
		}}}
}

// benchObjects returns classes, and resources with a policy each.
func benchObjects() map[string][]any {
	const resourceHead, subjectHead = "trnv1:rsc:trip-com:redis:clusters:", "trnv1:rsc:trip-com:iam:sa:app/"
	out := map[string][]any{
		"resourceclasses": {v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{
			Pattern: resourceHead + "*", LabelKey: "com.trip/redis-cluster",
			Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379}}}}}}},
		"subjectclasses": {v1alpha1.SubjectClass{ObjectMeta: metav1.ObjectMeta{Name: "application"}, Spec: v1alpha1.SubjectClassSpec{
			Pattern: subjectHead + "*", LabelKey: "com.trip/appid"}}},
	}
	for i := range benchResources {
		name := v1alpha1.ResourceName(fmt.Sprint(resourceHead, "r", i))
		out["protectedresources"] = append(out["protectedresources"], v1alpha1.ProtectedResource{
			ObjectMeta: metav1.ObjectMeta{Name: policy.UnitID(string(name))},
			Spec:       v1alpha1.ProtectedResourceSpec{Resource: name, Mode: v1alpha1.ModeEnforce},
		})
		p := v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyNameFor(string(name))}}
		for g := range grantsPerResource {
			subject := v1alpha1.Subject(fmt.Sprint(subjectHead, (i*newGrants+g)%benchApplications))
			p.Spec.Statements = append(p.Spec.Statements, v1alpha1.Statement{SID: fmt.Sprintf("t-%d-%d", i, g), Effect: v1alpha1.EffectAllow,
				Actions: []v1alpha1.Action{"redis:connect"}, Subjects: []v1alpha1.Subject{subject}, Resources: []v1alpha1.ResourceName{name}})
		}
		out["accesscontrolpolicies"] = append(out["accesscontrolpolicies"], p)
	}
	return out
}
