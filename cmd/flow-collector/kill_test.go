package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	observerpb "github.com/cilium/cilium/api/v1/observer"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/sqlite"
	"github.com/acp-io/acp/internal/hostcluster"
	"github.com/acp-io/acp/internal/testenv"
)

const beCollector = "ACP_TEST_BE_COLLECTOR"

// TestMain runs the program itself in the child processes of tests that kill it.
func TestMain(m *testing.M) {
	if os.Getenv(beCollector) != "" {
		main()
	}
	os.Exit(m.Run())
}

// emptyHost serves the parts of an API server that the collector needs: its kinds, without any objects.
func emptyHost(t testing.TB) (kubeconfig string) { return hostWith(t, nil) }

// hostWith serves these objects, by the plurals of their kinds.
func hostWith(t testing.TB, objects map[string][]any) (kubeconfig string) {
	kinds := map[string]string{}
	for _, k := range hostcluster.DecisionKinds() {
		kinds[k.Plural] = k.Name
	}
	base := "/apis/" + v1alpha1.GroupVersion.String()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := func(v any) { _ = json.NewEncoder(w).Encode(v) } // a killed client needs no response
		plural := strings.TrimPrefix(r.URL.Path, base+"/")
		switch {
		case r.URL.Path == base:
			list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: v1alpha1.GroupVersion.String()}
			for plural, kind := range kinds {
				list.APIResources = append(
					list.APIResources,
					metav1.APIResource{Name: plural, SingularName: strings.ToLower(kind), Kind: kind, Verbs: metav1.Verbs{"list", "watch"}},
				)
			}
			answer(list)
		case r.URL.Path == "/apis":
			v := metav1.GroupVersionForDiscovery{GroupVersion: v1alpha1.GroupVersion.String(), Version: v1alpha1.GroupVersion.Version}
			answer(metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
				Groups: []metav1.APIGroup{{Name: v1alpha1.GroupVersion.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}}})
		case kinds[plural] == "":
			w.WriteHeader(http.StatusNotFound)
		case r.URL.Query().Get("sendInitialEvents") == "true": // like an API server without streaming lists
			w.WriteHeader(http.StatusUnprocessableEntity)
			answer(
				metav1.Status{
					TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
					Status:   "Failure",
					Reason:   metav1.StatusReasonInvalid,
					Code:     http.StatusUnprocessableEntity,
				},
			)
		case r.URL.Query().Get("watch") != "":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			answer(
				map[string]any{
					"kind":       kinds[plural] + "List",
					"apiVersion": v1alpha1.GroupVersion.String(),
					"metadata":   map[string]any{"resourceVersion": "1"},
					"items":      append([]any{}, objects[plural]...),
				},
			)
		}
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return file(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "h",
 "clusters": [{"name": "h", "cluster": {"server": %q}}], "contexts": [{"name": "h", "context": {"cluster": "h"}}]}`, server.URL))
}

// process is a running collector.
type process struct {
	cmd    *exec.Cmd
	health string
}

func startProcess(t testing.TB, args ...string) *process {
	t.Helper()
	return begin(t, exec.CommandContext(t.Context(), os.Args[0], args...))
}

func begin(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd}
	p.cmd.Args = append(p.cmd.Args, "--health-address=127.0.0.1:0")
	p.cmd.Env = append([]string{"GOMEMLIMIT=200MiB"}, append(p.cmd.Environ(), beCollector+"=1")...)
	log, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started := make(chan string, 1)
	go func() {
		var all strings.Builder
		for s := bufio.NewScanner(log); s.Scan(); {
			all.WriteString(s.Text() + "\n")
			if _, address, ok := strings.Cut(s.Text(), "health="); ok {
				started <- address
			}
		}
		started <- "" + all.String()
	}()
	if p.health = <-started; strings.Contains(p.health, "\n") || p.health == "" {
		t.Fatalf("the collector did not start: %s", p.health)
	}
	return p
}

// end sends a signal and waits for the process to end.
func (p *process) end(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	err := p.cmd.Wait()
	if s == syscall.SIGTERM && err != nil {
		t.Errorf("the collector ended with error %v", err)
	}
}

// readiness returns what the collector says of its members.
func (p *process) readiness(t testing.TB) readiness {
	t.Helper()
	r, err := http.Get("http://" + p.health + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var body readiness
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return body
}

// position returns the time up to which the collector has ingested its member.
func (p *process) position(t testing.TB) time.Time {
	t.Helper()
	body := p.readiness(t)
	if len(body.Members) == 0 || body.Members[0].Position == nil {
		return time.Time{}
	}
	return *body.Members[0].Position
}

// TestKilledCollectorsCountOnce kills a real process repeatedly with SIGKILL while Hubble's exporter writes and rotates its file.
// Every connection is counted once.
func TestKilledCollectorsCountOnce(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	events, db := filepath.Join(dir, "events.log"), filepath.Join(dir, "flows.db")
	args := []string{"--kubeconfig=" + emptyHost(t), "--store=sqlite:" + db, "--exporter=m1=" + events, "--spool=" + filepath.Join(dir, "spool"),
		"--audit-log=file:" + filepath.Join(dir, "audit.jsonl"), "--flows=refused"}
	at := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
	written := 0
	write := func(n int) {
		f, err := os.OpenFile(events, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		out := json.NewEncoder(f)
		for range n {
			at = at.Add(20 * time.Millisecond)
			written++
			if err := out.Encode(exportedFlow(written, at)); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	const kills = 6
	for i := range kills {
		write(500 + r.IntN(1000))
		p := startProcess(t, args...)
		write(200)
		if i%2 == 0 { // the process has ingested and stored some flows
			for reached := at.Add(-10 * time.Second); p.position(t).Before(reached); {
				time.Sleep(time.Millisecond)
			}
		}
		time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond) // at a random time
		p.end(t, syscall.SIGKILL)
		if i == 3 {
			if err := os.Rename(events, filepath.Join(dir, "events-2026-11-01T10-00-00.000.log")); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := startProcess(t, args...)
	write(100)
	for p.position(t).Before(at) {
		time.Sleep(time.Millisecond)
	}
	p.end(t, syscall.SIGTERM) // the counts in memory are stored, or kept in the spool
	for kept(t, dir) {        // if the store was too slow
		p = startProcess(t, args...)
		for kept(t, dir) {
			time.Sleep(time.Millisecond)
		}
		p.end(t, syscall.SIGTERM)
	}
	store, err := sqlite.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var counted int64
	if err := store.Totals(t.Context(), audit.Filter{}, func(x audit.Total) error { counted += x.Count; return nil }); err != nil {
		t.Fatal(err)
	}
	losses, err := store.Losses(t.Context(), audit.LossQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if counted != int64(written) || len(losses.Items) > 0 {
		t.Errorf("got %d counted connections, want %d; losses %+v", counted, written, losses.Items)
	}
}

// kept reports whether the spool holds batches.
func kept(t testing.TB, dir string) bool {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(dir, "spool"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files) > 0
}

func exportedFlow(i int, at time.Time) *observerpb.ExportEvent {
	return &observerpb.ExportEvent{NodeName: "n1", Time: timestamppb.New(at), ResponseTypes: &observerpb.ExportEvent_Flow{Flow: &flowpb.Flow{
		Uuid:             fmt.Sprintf("flow-%d", i),
		Time:             timestamppb.New(at),
		NodeName:         "n1",
		Verdict:          flowpb.Verdict_FORWARDED,
		EventType:        &flowpb.CiliumEventType{Type: 5},
		TrafficDirection: flowpb.TrafficDirection_INGRESS,
		IsReply:          wrapperspb.Bool(false),
		IP:               &flowpb.IP{Source: "10.0.0.1", Destination: "10.0.0.2"},
		L4:               &flowpb.Layer4{Protocol: &flowpb.Layer4_TCP{TCP: &flowpb.TCP{SourcePort: uint32(10000 + i%50000), DestinationPort: 6379}}},
		Source: &flowpb.Endpoint{
			Namespace: "apps",
			Labels:    []string{"k8s:app=client"},
		},
		Destination: &flowpb.Endpoint{Namespace: "apps", Labels: []string{"k8s:app=server"}},
	}}}
}

// TestRunsConfined: as in the pod of deploy/workloads, the collector is not root, has no capability, and can write to its data folder alone.
// On SIGTERM it stores what it counted.
func TestRunsConfined(t *testing.T) {
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(emptyHost(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "kubeconfig"), kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
	events, err := os.Create(filepath.Join(folder, "events.log"))
	if err != nil {
		t.Fatal(err)
	}
	const written = 100
	for i := range written {
		if err := json.NewEncoder(events).Encode(exportedFlow(i, at.Add(time.Duration(i)*time.Millisecond))); err != nil {
			t.Fatal(err)
		}
	}
	if err := events.Close(); err != nil {
		t.Fatal(err)
	}
	p := begin(
		t,
		testenv.Confined(t, folder, "--kubeconfig="+filepath.Join(folder, "kubeconfig"), "--data-dir="+data, "--store=sqlite:flows.db", "--spool=spool",
			"--audit-log=file:audit.jsonl", "--exporter=m1="+filepath.Join(folder, "events.log")),
	)
	for p.position(t).Before(at.Add((written - 1) * time.Millisecond)) {
		time.Sleep(time.Millisecond)
	}
	p.end(t, syscall.SIGTERM)
	store, err := sqlite.Open(t.Context(), filepath.Join(data, "flows.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var counted int64
	if err := store.Totals(t.Context(), audit.Filter{}, func(x audit.Total) error { counted += x.Count; return nil }); err != nil || counted != written {
		t.Errorf("%d of %d connections are stored, %v", counted, written, err)
	}
}
