package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
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
	"github.com/acp-io/acp/playground/internal/bench"
	"github.com/acp-io/acp/playground/internal/demo"
	"github.com/acp-io/acp/playground/internal/fleet"
	"github.com/acp-io/acp/playground/internal/run"
)

const (
	loyalty = "trnv1:rsc:trip-com:mesh:services:loyalty-points"
	billing = "trnv1:rsc:trip-com:iam:sa:app/777"
	// checkout is not allowed at the start.
	checkout = "trnv1:rsc:trip-com:iam:sa:app/888"
	// promotions has no pods at the start.
	promotions = "trnv1:rsc:trip-com:iam:sa:app/902"
)

// promotionsTraffic is the line of the traffic file with the requests of promotions.
const promotionsTraffic = `
  - name: promotions (902) tries loyalty-points
    source: {selector: com.trip/appid=902}
    destination: {selector: com.trip/mesh-service=loyalty-points}
    port: 9090
    interval: 3s
    jitter: 0.3
`

// TestIstioEnforces runs the demo with a real istiod in each member. Grants and revocations of a resource that Istio alone enforces are
// distributed by the real KubeFed and decide real requests to gRPC servers, whose access log reaches the flow store. The evidence, the replay of a
// change and the guard of the rollout are computed from these flows.
func TestIstioEnforces(t *testing.T) {
	repo, err := run.FindRepo(".")
	if err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(t.TempDir(), "acp-playground")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", self, filepath.Join(repo, "playground/cmd/acp-playground"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build acp-playground: %v\n%s", err, out)
	}
	lines, err := os.ReadFile(filepath.Join(repo, "playground/demo/traffic.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	traffic := filepath.Join(t.TempDir(), "traffic.yaml")
	if err := os.WriteFile(traffic, append(lines, promotionsTraffic...), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	ran := false
	err = run.Up(ctx, run.Options{
		Repo: repo, StateDir: filepath.Join(t.TempDir(), "state"), Port: run.DefaultPort, Traffic: traffic,
		TrafficRate: 5, Guard: true, Istio: true, Self: self,
		Started: func(ctx context.Context, r run.Running) error {
			ran = true
			return enforces(ctx, t, r)
		},
	}, &run.Printer{Out: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	if !ran {
		t.Fatal("the fleet did not start")
	}
}

func enforces(ctx context.Context, t *testing.T, r run.Running) error {
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
	if err := f.rollOut(t, r); err != nil {
		return err
	}
	return f.consistent()
}

// rollOut takes the resource to Audit and to Enforce again, and checks what the portal computes from its flows: the evidence, the replay of the
// change, and the guard, which stops the rollout because of a client that was not refused before.
func (f *meshFlows) rollOut(t *testing.T, r run.Running) error {
	zainab, err := bench.Login(f.ctx, r.PortalURL, "zainab") // she owns the resource
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	began := time.Now()
	if err := errors.Join(f.statements(billing), f.mode(v1alpha1.ModeAudit)); err != nil {
		return err
	}
	for subject, decision := range map[string]policy.Verdict{billing: policy.Allowed, checkout: policy.Audited} {
		if err := f.until(subject, decision, audit.VerdictForwarded, began); err != nil {
			return fmt.Errorf("in Audit before the rollout: %w", err)
		}
	}
	for _, step := range []struct {
		name  string
		check func(bench.Session) error
	}{{"the replay", f.replayed}, {"the evidence", f.evident}, {"too little evidence", f.refused}} {
		if err := f.eventually(func() error { return step.check(zainab) }); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		t.Logf("%s: %s", step.name, time.Since(began).Round(time.Millisecond))
	}

	guard := map[string]any{"limit": guardLimit, "windowSeconds": 600, "reason": "few clients"}
	if err := zainab.Call(f.ctx, http.MethodPut, "/rollout/loyalty-points/guard", guard, nil); err != nil {
		return fmt.Errorf("set the guard: %w", err)
	}
	if err := f.eventually(f.refusedEarlier); err != nil {
		return fmt.Errorf("denials before the rollout: %w", err)
	}
	began = time.Now()
	if err := f.mode(v1alpha1.ModeEnforce); err != nil {
		return err
	}
	if err := f.until(checkout, policy.DefaultDenied, audit.VerdictDropped, began); err != nil {
		return fmt.Errorf("in Enforce after the rollout: %w", err)
	}
	if err := f.watched(zainab, began); err != nil {
		return fmt.Errorf("the guard after requests of a client that was refused before: %w", err)
	}
	newcomer := demo.Workload{
		Name: "promotions", Namespace: "payments", Labels: map[string]string{"com.trip/appid": "902"}, Clusters: fleet.Members(), Replicas: 1,
	}
	for _, member := range fleet.Members() {
		if err := demo.Place(f.ctx, f.fleet.AdminConfig(member), member, []demo.Workload{newcomer}); err != nil {
			return err
		}
	}
	if err := f.until(promotions, policy.DefaultDenied, audit.VerdictDropped, began); err != nil {
		return fmt.Errorf("a new client: %w", err)
	}
	if err := f.eventually(func() error { return f.stopped(zainab) }); err != nil {
		return fmt.Errorf("the guard after requests of a new client: %w", err)
	}
	t.Logf("the guard: %s", time.Since(began).Round(time.Millisecond))
	return nil
}

// guardLimit is the number of denials of new clients that do not stop the rollout, and guardChecks is the time in which the guard checks at least once.
const (
	guardLimit  = 3
	guardChecks = 12 * time.Second
)

// eventually repeats a check until it succeeds or the context ends.
func (f *meshFlows) eventually(check func() error) error {
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-f.ctx.Done():
			return err
		case <-time.After(500 * time.Millisecond): // poll interval
		}
	}
}

// named is a name of the catalog.
type named struct {
	Name string `json:"name"`
}

// replayed checks that the replay of Enforce on the flows that were seen in Audit says who would be cut off.
func (f *meshFlows) replayed(as bench.Session) error {
	var got struct {
		Available   bool `json:"available"`
		NewlyDenied []struct {
			Cluster string `json:"cluster"`
			Subject named  `json:"subject"`
			Action  string `json:"action"`
			Count   int64  `json:"count"`
		} `json:"newlyDenied"`
	}
	change := map[string]any{"kind": "mode", "reason": "enforce it", "items": []any{map[string]any{"resource": "loyalty-points", "mode": "Enforce"}}}
	if err := as.Call(f.ctx, http.MethodPost, "/tickets/impact", change, &got); err != nil {
		return err
	}
	denied := map[string]bool{}
	for _, l := range got.NewlyDenied {
		if l.Subject.Name != checkout || l.Action != "mesh:call" || l.Count == 0 {
			return fmt.Errorf("unexpected %+v", l)
		}
		denied[l.Cluster] = true
	}
	if len(denied) != len(fleet.Members()) {
		return fmt.Errorf("%s is not cut off in every member: %+v", checkout, got)
	}
	return nil
}

// card is the state of the rollout of the resource.
type card struct {
	Enough    bool `json:"enough"`
	Clients   int  `json:"clients"`
	Newcomers int  `json:"newcomers"`
	Evidence  struct {
		Parts []struct {
			Name   string `json:"name"`
			Points int    `json:"points"`
			Of     int    `json:"of"`
		} `json:"parts"`
	} `json:"evidence"`
	Guard struct {
		StoppedAt *time.Time `json:"stoppedAt"`
		Cluster   string     `json:"cluster"`
		Count     int64      `json:"count"`
	} `json:"guard"`
}

func (f *meshFlows) card(as bench.Session) (card, error) {
	var out card
	return out, as.Call(f.ctx, http.MethodGet, "/rollout/loyalty-points", nil, &out)
}

// evident checks that the evidence counts the clients of the access log, and that nothing of it was lost.
func (f *meshFlows) evident(as bench.Session) error {
	got, err := f.card(as)
	if err != nil {
		return err
	}
	for _, p := range got.Evidence.Parts {
		if (p.Name == "loss" || p.Name == "unattributed") && p.Points != p.Of {
			return fmt.Errorf("part %s: %+v", p.Name, got)
		}
	}
	if got.Clients != 2 || got.Newcomers != 1 || got.Enough || len(got.Evidence.Parts) == 0 {
		return fmt.Errorf("unexpected %+v", got)
	}
	return nil
}

// refused checks that Enforce is refused after some minutes of flows.
func (f *meshFlows) refused(as bench.Session) error {
	var got struct {
		Items []struct {
			OK      bool `json:"ok"`
			Problem struct {
				Code string `json:"code"`
			} `json:"problem"`
		} `json:"items"`
	}
	request := map[string]any{"resources": []any{"loyalty-points"}, "stage": "enforce", "reason": "close it"}
	if err := as.Call(f.ctx, http.MethodPost, "/rollout/advance", request, &got); err != nil {
		return err
	}
	if len(got.Items) != 1 || got.Items[0].OK || got.Items[0].Problem.Code != "evidence" {
		return fmt.Errorf("unexpected %+v", got)
	}
	return nil
}

// watched checks that the guard does not stop the rollout although it was checked, and a client was refused often enough since an instant.
func (f *meshFlows) watched(as bench.Session, since time.Time) error {
	if err := f.eventually(func() error {
		page, err := f.store.Connections(f.ctx, audit.ConnectionQuery{Filter: audit.Filter{Resources: []string{loyalty}, Since: since}})
		if err != nil {
			return err
		}
		refused := map[string]int64{}
		for _, c := range page.Items {
			if c.Subject == checkout && c.Verdict == audit.VerdictDropped {
				refused[c.Cluster] += c.Count
			}
		}
		for _, member := range fleet.Members() {
			if refused[member] <= guardLimit {
				return fmt.Errorf("too few requests were refused: %v", refused)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	select {
	case <-f.ctx.Done():
		return f.ctx.Err()
	case <-time.After(guardChecks):
	}
	got, err := f.card(as)
	if err == nil && got.Guard.StoppedAt != nil {
		err = fmt.Errorf("it stopped the rollout: %+v", got.Guard)
	}
	return err
}

// refusedEarlier checks that each member refused requests of checkout before the present minute. For the guard, a client that was refused only in the
// minute in which a member begins to enforce is new.
func (f *meshFlows) refusedEarlier() error {
	page, err := f.store.Connections(f.ctx, audit.ConnectionQuery{Filter: audit.Filter{Resources: []string{loyalty}}})
	if err != nil {
		return err
	}
	minute := time.Now().Truncate(audit.BucketWidth)
	seen := map[string]bool{}
	for _, c := range page.Items {
		if c.Subject == checkout && c.Decision == policy.DefaultDenied && c.Verdict == audit.VerdictDropped && c.FirstSeen.Before(minute) {
			seen[c.Cluster] = true
		}
	}
	if len(seen) != len(fleet.Members()) {
		return fmt.Errorf("only in %v: %+v", seen, page.Items)
	}
	return nil
}

// stopped checks that the guard stopped the rollout.
func (f *meshFlows) stopped(as bench.Session) error {
	got, err := f.card(as)
	if err != nil {
		return err
	}
	if got.Guard.StoppedAt == nil || got.Guard.Count <= guardLimit || got.Guard.Cluster == "" {
		return fmt.Errorf("unexpected %+v", got.Guard)
	}
	return nil
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

// consistent checks that no flow of the resource was counted by Hubble's view of it, and that Istio never treated one differently. Istiod sends gRPC
// servers no AUDIT policies, so none has the verdict audit.
func (f *meshFlows) consistent() error {
	page, err := f.store.Connections(f.ctx, audit.ConnectionQuery{Filter: audit.Filter{Resources: []string{loyalty}}})
	if err != nil {
		return err
	}
	for _, c := range page.Items {
		if c.Verdict == audit.VerdictUnknown || c.Verdict == audit.VerdictAudit || c.Disagrees() || c.Subject == "" {
			err = errors.Join(err, fmt.Errorf("unexpected flow %+v", c))
		}
	}
	losses, e := f.store.Losses(f.ctx, audit.LossQuery{})
	if e != nil || len(losses.Items) > 0 {
		err = errors.Join(err, fmt.Errorf("losses %+v, %w", losses.Items, e))
	}
	return err
}
