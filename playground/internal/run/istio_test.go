package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/sqlite"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/playground/internal/fleet"
)

const (
	loyalty = "trnv1:rsc:trip-com:mesh:services:loyalty-points"
	billing = "trnv1:rsc:trip-com:iam:sa:app/777"
	// checkout is not allowed at the start.
	checkout = "trnv1:rsc:trip-com:iam:sa:app/888"
)

// TestIstioEnforces runs the demo with a real istiod in each member. Grants and revocations of a resource that Istio alone enforces are
// distributed by the real KubeFed and decide real requests to gRPC servers, whose access log reaches the flow store.
func TestIstioEnforces(t *testing.T) {
	repo, err := FindRepo(".")
	if err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(t.TempDir(), "acp-playground")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", self, filepath.Join(repo, "playground/cmd/acp-playground"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build acp-playground: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	ran := false
	err = Up(ctx, Options{
		Repo: repo, StateDir: filepath.Join(t.TempDir(), "state"), Port: DefaultPort, Traffic: filepath.Join(repo, "playground/demo/traffic.yaml"),
		TrafficRate: 5, Guard: true, Istio: true, Self: self,
		Started: func(ctx context.Context, r Running) error {
			ran = true
			return enforces(ctx, t, r)
		},
	}, &Printer{Out: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	if !ran {
		t.Fatal("the fleet did not start")
	}
}

func enforces(ctx context.Context, t *testing.T, r Running) error {
	for _, s := range r.Supervisor.Status() {
		t.Logf("%-16s %4d MB", s.Name, s.RSSBytes>>20)
	}
	store, err := sqlite.OpenReader(ctx, r.FlowFile)
	if err != nil {
		return err
	}
	defer store.Close()
	f := &meshFlows{ctx: ctx, store: store, fleet: r.Fleet}
	type step struct {
		name   string
		change func() error
		// allowed and refused are the subjects whose requests are let through and refused, with the decisions.
		allowed, refused map[string]policy.Verdict
	}
	allow := func(subjects ...any) func() error {
		return func() error { return f.statements(subjects...) }
	}
	for _, s := range []step{
		{"at the start", func() error { return nil },
			map[string]policy.Verdict{billing: policy.Allowed}, map[string]policy.Verdict{checkout: policy.DefaultDenied}},
		{"after a grant", allow(billing, checkout), map[string]policy.Verdict{billing: policy.Allowed, checkout: policy.Allowed}, nil},
		{"after a revocation", allow(checkout), map[string]policy.Verdict{checkout: policy.Allowed}, map[string]policy.Verdict{billing: policy.DefaultDenied}},
		{"when nobody is allowed", allow(), nil, map[string]policy.Verdict{billing: policy.DefaultDenied, checkout: policy.DefaultDenied}},
		{"in Audit", func() error { return f.mode(v1alpha1.ModeAudit) },
			map[string]policy.Verdict{billing: policy.Audited, checkout: policy.Audited}, nil},
		{"in Enforce again", func() error { return errors.Join(f.mode(v1alpha1.ModeEnforce), f.statements(billing)) },
			map[string]policy.Verdict{billing: policy.Allowed}, map[string]policy.Verdict{checkout: policy.DefaultDenied}},
	} {
		began := time.Now()
		if err := s.change(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		for subject, decision := range s.allowed {
			if err := f.until(subject, decision, audit.VerdictForwarded, began); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		for subject, decision := range s.refused {
			if err := f.until(subject, decision, audit.VerdictDropped, began); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		t.Logf("%s: %s", s.name, time.Since(began).Round(time.Millisecond))
	}
	return f.consistent()
}

// meshFlows reads the flows of the resource and changes what it allows.
type meshFlows struct {
	ctx   context.Context
	store *sqlite.Reader
	fleet *fleet.Fleet
}

func (f *meshFlows) patch(resource, name string, spec map[string]any) error {
	text, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return err
	}
	_, err = f.fleet.Applier(fleet.Host).Client.Resource(v1alpha1.GroupVersion.WithResource(resource)).
		Patch(f.ctx, name, types.MergePatchType, text, metav1.PatchOptions{})
	return err
}

func (f *meshFlows) mode(m v1alpha1.Mode) error {
	return f.patch("protectedresources", "loyalty-points", map[string]any{"mode": m})
}

func (f *meshFlows) statements(subjects ...any) error {
	list := []any{}
	for i, s := range subjects {
		list = append(list, map[string]any{"sid": fmt.Sprint("s", i), "effect": "Allow", "subjects": []any{s}, "actions": []any{"mesh:call"},
			"resources": []any{loyalty}})
	}
	return f.patch("accesscontrolpolicies", "loyalty", map[string]any{"statements": list})
}

// until waits until requests of a subject in both members were decided and treated this way after an instant.
func (f *meshFlows) until(subject string, decision policy.Verdict, verdict audit.Verdict, after time.Time) error {
	var page audit.ConnectionPage
	for {
		var err error
		if page, err = f.store.Connections(f.ctx, audit.ConnectionQuery{Filter: audit.Filter{Resources: []string{loyalty}}}); err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, c := range page.Items {
			if c.Subject == subject && c.Decision == decision && c.Verdict == verdict && c.LastSeen.After(after) && c.Action == "mesh:call" {
				seen[c.Cluster] = true
			}
		}
		if len(seen) == len(fleet.Members()) {
			return nil
		}
		select {
		case <-f.ctx.Done():
			return fmt.Errorf("%s is not %s and %s: %+v; the resource is %v", subject, decision, verdict, page.Items, f.state())
		case <-time.After(200 * time.Millisecond): // poll interval
		}
	}
}

// state returns the states of the members, for messages.
func (f *meshFlows) state() any {
	o, err := f.fleet.Applier(fleet.Host).Client.Resource(v1alpha1.GroupVersion.WithResource("protectedresources")).
		Get(context.WithoutCancel(f.ctx), "loyalty-points", metav1.GetOptions{})
	if err != nil {
		return err
	}
	clusters, _, err := unstructured.NestedSlice(o.Object, "status", "clusters")
	return fmt.Sprint(clusters, err)
}

// consistent checks that no flow of the resource was counted by Hubble's view of it, and that Istio never treated one differently.
func (f *meshFlows) consistent() error {
	page, err := f.store.Connections(f.ctx, audit.ConnectionQuery{Filter: audit.Filter{Resources: []string{loyalty}}})
	if err != nil {
		return err
	}
	for _, c := range page.Items {
		if c.Verdict == audit.VerdictUnknown || c.Disagrees() || c.Subject == "" {
			err = errors.Join(err, fmt.Errorf("unexpected flow %+v", c))
		}
	}
	losses, e := f.store.Losses(f.ctx, audit.LossQuery{})
	if e != nil || len(losses.Items) > 0 {
		err = errors.Join(err, fmt.Errorf("losses %+v, %w", losses.Items, e))
	}
	return err
}
