package istio

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/internal/enforcer/istiotest"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// meshWorlds is the number of random sets of PeerAuthentications.
const meshWorlds = 60

// randomAuthentications returns PeerAuthentications of the root namespace and of those of the pods, with and without selectors and modes of
// ports.
func randomAuthentications(r *rand.Rand) []*unstructured.Unstructured {
	mode := func() map[string]any {
		return map[string]any{"mode": []string{"STRICT", "STRICT", "STRICT", "UNSET", "PERMISSIVE", "DISABLE"}[r.IntN(6)]}
	}
	var out []*unstructured.Unstructured
	for i := range 1 + r.IntN(4) {
		spec := map[string]any{"mtls": mode()}
		in := []string{rootNamespace, namespace, ambientNamespace}[r.IntN(3)]
		if i == 0 {
			in = rootNamespace
			if r.IntN(4) > 0 {
				spec["mtls"] = map[string]any{"mode": "STRICT"}
			}
		} else if r.IntN(2) == 0 {
			spec["selector"] = map[string]any{"matchLabels": map[string]any{"app": "redis"}}
			if r.IntN(2) == 0 {
				spec["portLevelMtls"] = map[string]any{"8080": mode()}
			}
		}
		out = append(out, object("security.istio.io", "PeerAuthentication", in, fmt.Sprint("mode-", i), nil, spec))
	}
	return out
}

// plainText reports where the proxies of a pod in each namespace accept plain text, or "".
func (p *controlPlane) plainText(ctx context.Context) (string, error) {
	stream, err := listenersOf(ctx, p.istiod, namespace, map[string]string{"app": "redis"})
	if err != nil {
		return "", err
	}
	got, err := stream.Recv()
	if err != nil {
		return "", fmt.Errorf("receive listeners: %w", err)
	}
	for _, r := range got.GetResources() {
		l := &listenerv3.Listener{}
		if err := r.UnmarshalTo(l); err != nil {
			return "", fmt.Errorf("read a listener: %w", err)
		}
		for _, c := range l.GetFilterChains() {
			if l.GetName() == inbound && c.GetTransportSocket() == nil && !strings.HasSuffix(c.GetName(), "-blackhole") {
				return "the chain " + c.GetName() + " of a sidecar", nil
			}
		}
	}
	state, err := ztunnelState(ctx, p.istiod)
	if err != nil {
		return "", err
	}
	policies, sent := state["redis"]
	if !sent {
		return "", errors.New("istiod does not send the pod to ztunnel")
	}
	for _, port := range []uint16{80, 8080} {
		if passes, err := policies.passes(istiotest.Traffic{Port: port}); err != nil || passes {
			return fmt.Sprintf("the port %d of ztunnel", port), err
		}
	}
	return "", nil
}

// untilPlainText waits until proxies accept plain text somewhere, or nowhere.
func (p *controlPlane) untilPlainText(ctx context.Context, accepted bool) error {
	deadline := time.Now().Add(pushTimeout)
	for {
		ctx, cancel := context.WithCancel(ctx)
		where, err := p.plainText(ctx)
		cancel() // It ends the stream.
		switch {
		case err == nil && (where != "") == accepted:
			return nil
		case time.Now().After(deadline):
			return errors.Join(err, fmt.Errorf("plain text is accepted at %q", where))
		}
		time.Sleep(50 * time.Millisecond) // poll interval
	}
}

// TestPlainTextIsDetected checks that no proxy accepts plain text where the preflight finds that PeerAuthentications require mutual TLS. The
// preflight is stricter: it does not consider which pods an exception selects.
func TestPlainTextIsDetected(t *testing.T) {
	p := startControlPlane(t)
	if err := p.createPods(t.Context(), map[string]map[string]string{"redis": {"app": "redis"}}); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(*firstSeed, 4)) //nolint:gosec // reproducible
	strict := 0
	for n := range meshWorlds {
		if err := p.untilPlainText(t.Context(), true); err != nil {
			t.Fatalf("without a PeerAuthentication: %v", err)
		}
		policies := randomAuthentications(r)
		var texts []string
		for _, u := range policies {
			if err := p.client.Create(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, fmt.Sprint(u.GetNamespace(), u.Object["spec"]))
		}
		f := preflight.ReadConfig(t.Context(), "m", p.config, "", federation.DefaultLocations())
		if why := f.Istio.MTLS.Unread; !why.IsZero() {
			t.Fatal(why.Text)
		}
		if f.Istio.MTLS.Strict && len(f.Istio.MTLS.Exceptions) == 0 {
			strict++
			if err := p.untilPlainText(t.Context(), false); err != nil {
				t.Fatalf("set %d of seed %d: %v\n%s", n, *firstSeed, err, strings.Join(texts, "\n"))
			}
		}
		for _, u := range policies {
			if err := p.client.Delete(t.Context(), u, client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("mutual TLS is required in %d of %d sets", strict, meshWorlds)
	if *firstSeed == 0 && strict < meshWorlds/6 {
		t.Error("too few sets require mutual TLS: a mistake there would not be noticed")
	}
}
