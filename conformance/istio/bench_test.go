package istio

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/anypb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
)

// benchPolicy is a policy as ACP renders it, for the pods of one resource.
func benchPolicy(name, in, value, account string) *unstructured.Unstructured {
	u := policyObject(&enforcer.Object{GroupVersion: "security.istio.io/v1", Kind: "AuthorizationPolicy", Name: name, Spec: map[string]any{
		"action":   "ALLOW",
		"selector": map[string]any{"matchLabels": map[string]any{istiotest.RedisLabel: value}},
		"rules": []any{map[string]any{
			"from": []any{map[string]any{"source": map[string]any{"principals": []any{"*/sa/" + account}}}},
			"to":   []any{map[string]any{"operation": map[string]any{"ports": []any{"6379"}}}},
		}},
	}})
	u.SetNamespace(in)
	return u
}

func percentile(of []time.Duration, p int) float64 {
	slices.Sort(of)
	return float64(of[(len(of)-1)*p/100].Microseconds()) / 1000
}

// BenchmarkApplyToEnforced measures the time from the answer of the API server to the first request that a gRPC server decides by the
// changed policy.
func BenchmarkApplyToEnforced(b *testing.B) {
	p := startControlPlane(b)
	p.createNamespaces(b, plain)
	ca, err := newAuthority(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	if _, err := ca.issue("cluster.local/ns/"+plain+"/sa/server", "server"); err != nil {
		b.Fatal(err)
	}
	x := pod{in: plain, name: "measured", labels: map[string]string{istiotest.RedisLabel: "measured"}, at: netip.MustParseAddr("10.200.0.1")}
	s, c := x.start(b, p, ca), &caller{authority: ca}
	u := policyObject(&enforcer.Object{GroupVersion: "security.istio.io/v1", Kind: "AuthorizationPolicy", Name: "measured", Spec: map[string]any{
		"action": "DENY", "selector": map[string]any{"matchLabels": map[string]any{istiotest.RedisLabel: "measured"}},
		"rules": []any{map[string]any{"to": []any{map[string]any{"operation": map[string]any{"ports": []any{"9121"}}}}}},
	}})
	if err := p.client.Create(b.Context(), u); err != nil {
		b.Fatal(err)
	}
	t := istiotest.Traffic{Address: netip.MustParseAddr("10.0.3.4"), Port: 6379, Method: "POST", Path: "/orders/1"}
	const changes = 40
	for b.Loop() {
		var took []time.Duration
		for i := range changes {
			port, passes := "6379", false
			if i%2 == 1 {
				port, passes = "9121", true
			}
			change := fmt.Appendf(nil, `{"spec": {"rules": [{"to": [{"operation": {"ports": [%q]}}]}]}}`, port)
			if err := p.client.Patch(b.Context(), u, client.RawPatch(types.MergePatchType, change)); err != nil {
				b.Fatal(err)
			}
			begin := time.Now()
			for {
				got, err := c.request(b.Context(), s, t)
				if err != nil {
					b.Fatal(err)
				}
				if got == passes {
					break
				}
				if time.Since(begin) > pushTimeout {
					b.Fatal("the change is not enforced")
				}
			}
			took = append(took, time.Since(begin))
			time.Sleep(300 * time.Millisecond) // so that istiod does not put the next change into the same push
		}
		fmt.Printf("bench istio_apply_to_enforced_p50 %.1f ms\n", percentile(took, 50))
		fmt.Printf("bench istio_apply_to_enforced_p99 %.1f ms\n", percentile(took, 99))
	}
}

const (
	benchPolicies   = 10_000
	benchNamespaces = 100
	// benchProxies are connected while a policy changes.
	benchProxies = 20
	benchChanges = 20
)

// BenchmarkPush10k measures the time from the answer of the API server to a changed policy until a proxy has the new listeners, with 10,000
// policies: all in the root namespace, as ACP writes them, or spread over the namespaces of the pods.
func BenchmarkPush10k(b *testing.B) {
	for b.Loop() {
		for _, layout := range []string{"root", "namespaced"} {
			b.Run(layout, func(b *testing.B) { benchmarkPush(b, layout) })
		}
	}
}

func benchmarkPush(b *testing.B, layout string) {
	p := startControlPlane(b)
	var namespaces []string
	for i := range benchNamespaces {
		namespaces = append(namespaces, fmt.Sprint("team-", i))
	}
	p.createNamespaces(b, namespaces...)
	in := func(i int) string {
		if layout == "root" {
			return rootNamespace
		}
		return namespaces[i%benchNamespaces]
	}
	g, ctx := errgroup.WithContext(b.Context())
	g.SetLimit(writers)
	for i := range benchPolicies {
		g.Go(func() error {
			return p.client.Create(ctx, benchPolicy(fmt.Sprint("acp-", i), in(i), fmt.Sprint("r-", i), "app-1"))
		})
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	if err := p.untilPushed(b.Context()); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	received := make([]chan *discoveryv3.DiscoveryResponse, benchProxies)
	for i := range benchProxies {
		stream, err := listenersOf(ctx, p.istiod, namespaces[i%benchNamespaces], map[string]string{istiotest.RedisLabel: fmt.Sprint("r-", i)})
		if err != nil {
			b.Fatal(err)
		}
		received[i] = make(chan *discoveryv3.DiscoveryResponse, 100)
		go follow(stream, received[i])
		<-received[i]
	}
	var took []time.Duration
	for n := range benchChanges {
		proxy := n % benchProxies
		account := fmt.Sprint("changed-", n)
		u := benchPolicy(fmt.Sprint("acp-", proxy), in(proxy), fmt.Sprint("r-", proxy), account)
		if err := p.client.Patch(b.Context(), u, client.Merge); err != nil {
			b.Fatal(err)
		}
		begin := time.Now()
		for {
			var r *discoveryv3.DiscoveryResponse
			select {
			case r = <-received[proxy]:
			case <-time.After(pushTimeout):
			}
			if r == nil {
				b.Fatal("istiod does not send the change")
			}
			if contains(r, account) {
				break
			}
		}
		took = append(took, time.Since(begin))
		time.Sleep(300 * time.Millisecond) // so that istiod does not put the next change into the same push
	}
	fmt.Printf("bench istiod_push_10k_%s %.1f ms\n", layout, percentile(took, 50))
	if layout == "root" {
		fmt.Printf("bench istiod_rss_10k %.0f MB\n", residentMB(b, p.pid))
	}
}

// follow acknowledges every response, as a proxy does, until the stream ends.
func follow(stream discoveryStream, to chan<- *discoveryv3.DiscoveryResponse) {
	defer close(to)
	for {
		r, err := stream.Recv()
		if err != nil {
			return
		}
		to <- r
		if stream.Send(&discoveryv3.DiscoveryRequest{TypeUrl: r.GetTypeUrl(), VersionInfo: r.GetVersionInfo(), ResponseNonce: r.GetNonce()}) != nil {
			return
		}
	}
}

// contains reports whether a response contains a text.
func contains(r *discoveryv3.DiscoveryResponse, text string) bool {
	return slices.ContainsFunc(r.GetResources(), func(a *anypb.Any) bool { return bytes.Contains(a.GetValue(), []byte(text)) })
}

// residentMB returns the resident memory of a process in megabytes.
func residentMB(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if value, found := bytes.CutPrefix(line, []byte("VmRSS:")); found {
			kb, err := strconv.Atoi(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(value), []byte("kB")))))
			if err != nil {
				b.Fatal(err)
			}
			return float64(kb) / 1024
		}
	}
	b.Fatal("the process has no resident memory")
	return 0
}
