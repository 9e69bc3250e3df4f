package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/hubble/relaytest"
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
	relays := benchRelays(b, members)
	common := []string{"--kubeconfig=" + hostWith(b, benchObjects()), "--store=sqlite:" + filepath.Join(dir, "flows.db"),
		"--spool=" + filepath.Join(dir, "spool"), "--flows=refused"}
	args := append(slices.Clone(common), "--hubble-tls-server-name=example.com")
	for flag, path := range certificateOf(b, relays.Certificate) {
		args = append(args, "--"+flag+"="+path)
	}
	for i := range members {
		args = append(args, fmt.Sprintf("--hubble=m%d=%s", i, relays.Address(i)))
	}
	cmd := exec.CommandContext(b.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMEMLIMIT=%dMiB", 250+2*members)) // of 300 MB and 2 MB per member
	began := time.Now()
	p := begin(b, cmd)
	last := runRelays(b, relays)
	for p.behind(b, last, members) {
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
	if sent := relays.Sent(); counted != sent || decided != sent {
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

// benchRelays returns running relays. All together have flows of 2,000 resources, each with 10 of 10,000 applications: connections that have a
// grant, but for the last of a member's resources.
func benchRelays(b *testing.B, members int) *relaytest.Relays {
	b.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	s.Close()
	c := relaytest.Config{Certificate: s.TLS.Certificates[0], Rate: fleetFlows, Length: 2*steadyPhase + keepingPhase,
		Delivered: func(at time.Duration) time.Duration {
			if at > steadyPhase && at < steadyPhase+keepingPhase {
				return steadyPhase + keepingPhase
			}
			return at
		}}
	ofMember := resourcesWithFlows / members
	for m := range members {
		var clients, servers []relaytest.Label
		for i := range ofMember {
			servers = append(servers, relaytest.Label{Key: "com.trip/redis-cluster", Value: fmt.Sprint("r", m*ofMember+i)})
		}
		for i := range ofMember * newGrants {
			clients = append(clients, relaytest.Label{Key: "com.trip/appid", Value: strconv.Itoa(m*ofMember*newGrants + i)})
		}
		flows := relaytest.NewFlows(fmt.Sprint("m", m), m, clients, servers)
		flows.Stride, flows.Width = newGrants, grantsPerResource
		c.Flows = append(c.Flows, flows)
	}
	r, err := relaytest.Start(b.Context(), c)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(r.Close)
	return r
}

// runRelays waits until every member is followed, and then until all flows happened. It returns the time of the last flow of every relay.
func runRelays(b *testing.B, r *relaytest.Relays) time.Time {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	if err := r.Begin(ctx); err != nil {
		b.Fatal(err)
	}
	time.Sleep(time.Until(r.Began().Add(r.Length)))
	interval := r.Interval()
	return r.Began().Add((r.Length - 1) / interval * interval)
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
