package rollout_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight"
	auditsqlite "github.com/acp-io/acp/internal/audit/sqlite"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/notify"
	notifystore "github.com/acp-io/acp/internal/notify/gormstore"
	"github.com/acp-io/acp/internal/organization"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/rollout"
	"github.com/acp-io/acp/internal/rollout/gormstore"
	"github.com/acp-io/acp/internal/waves"
)

const (
	cart    = "trnv1:rsc:o:iam:sa:app/cart"
	search  = "trnv1:rsc:o:iam:sa:app/search"
	scanner = "trnv1:rsc:o:iam:sa:app/scanner"
	orders  = "trnv1:rsc:o:redis:clusters:orders"
)

const company = `
{kind: Group, metadata: {name: security}, spec: {members: [sam]}}
---
{kind: Group, metadata: {name: auditors}, spec: {members: [otto]}}
---
{kind: User, metadata: {name: alice}}
---
{kind: User, metadata: {name: bob}}
---
{kind: User, metadata: {name: dan}}
---
{kind: User, metadata: {name: erin}}
---
{kind: User, metadata: {name: sam}}
---
{kind: User, metadata: {name: otto}}
---
{kind: Component, metadata: {name: cart, annotations: {acp.io/resource-name: "trnv1:rsc:o:iam:sa:app/cart"}}, spec: {owner: "user:alice"}}
---
{kind: Component, metadata: {name: search, annotations: {acp.io/resource-name: "trnv1:rsc:o:iam:sa:app/search"}}, spec: {owner: "user:erin"}}
---
{kind: Resource, metadata: {name: orders, annotations: {acp.io/resource-name: "trnv1:rsc:o:redis:clusters:orders"}}, spec: {owner: "user:bob"}}
`

var (
	bob  = approval.Actor{ID: "bob"}
	sam  = approval.Actor{ID: "sam", Security: true}
	otto = approval.Actor{ID: "otto", Auditor: true, Security: true}
	erin = approval.Actor{ID: "erin"}
)

// world is one resource in a host cluster in memory, with real stores and a clock that stands still.
type world struct {
	t       *testing.T
	now     time.Time
	object  *v1alpha1.ProtectedResource // nil if not onboarded
	version int
	down    error // what writing gives
	catalog *catalog.Catalog
	db      *database.DB
	store   *gormstore.Store
	flows   *auditsqlite.Store
	batches int
	halted  []string
	policy  []v1alpha1.Statement
	class   *v1alpha1.ResourceClass
	*rollout.Service
	insight       *rollout.Insight
	fleet         insight.Fleet
	missing       map[string]rollout.GapKind // members whose flows the guard does not see
	counted       []string                   // the members of the resource in which the guard counted denials
	organizations []*v1alpha1.Organization
}

func newWorld(t *testing.T, mode v1alpha1.Mode) *world {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "company.yaml"), []byte(company), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, now: time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC), db: databasetest.Open(t, databasetest.SQLite(t)),
		fleet: insight.Fleet{Everywhere: []string{"m1"}}}
	read, err := catalog.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	w.catalog = read
	w.store = gormstore.New(w.db)
	if w.flows, err = auditsqlite.Open(t.Context(), filepath.Join(dir, "flows.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.flows.Close() })
	w.object = &v1alpha1.ProtectedResource{
		ObjectMeta: metav1.ObjectMeta{Name: "orders", ResourceVersion: "1"},
		Spec:       v1alpha1.ProtectedResourceSpec{Resource: orders, Mode: mode},
	}
	w.Service = rollout.NewService(
		rollout.Config{Store: w.store, Writer: w, Host: w, Catalog: func() *catalog.Catalog { return w.catalog }, Now: func() time.Time { return w.now },
			Organizations: func() (*organization.Index, error) { return organization.NewIndex(w.organizations), nil },
			Log:           slog.New(slog.DiscardHandler)},
	)
	w.insight = rollout.NewInsight(
		rollout.InsightConfig{
			Flows:     w.flows,
			Snapshot:  w.snapshot,
			Fleet:     func() insight.Fleet { return w.fleet },
			Enforced:  func() ([]string, bool) { return []string{orders}, true },
			Store:     w.store,
			Window:    14 * 24 * time.Hour,
			Threshold: 70,
			Now:       func() time.Time { return w.now },
		},
	)
	return w
}

func (w *world) entity() catalog.Entity {
	e, _ := w.catalog.Resource("orders")
	return e
}

func redis() *v1alpha1.ResourceClass {
	return &v1alpha1.ResourceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "redis"},
		Spec: v1alpha1.ResourceClassSpec{Pattern: "trnv1:rsc:o:redis:clusters:*", LabelKey: "redis",
			Actions: []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}}}},
	}
}

// ResourceClasses implements rollout.Host.
func (w *world) ResourceClasses() ([]*v1alpha1.ResourceClass, bool) {
	if w.class == nil {
		return nil, true
	}
	return []*v1alpha1.ResourceClass{w.class}, true
}

// InstructClass implements rollout.HostWriter.
func (w *world) InstructClass(_ context.Context, name string, i waves.Instruction) error {
	switch {
	case w.class == nil || name != w.class.Name:
		return rollout.ErrGone
	case w.down != nil:
		return w.down
	}
	if err := i.Validate(); err != nil {
		return err
	}
	w.class.Annotations = map[string]string{v1alpha1.AnnotationRollout: i.String()}
	return nil
}

func (w *world) snapshot() (*policy.Snapshot, bool) {
	rc := redis()
	sc := &v1alpha1.SubjectClass{
		ObjectMeta: metav1.ObjectMeta{Name: "app"},
		Spec:       v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:o:iam:sa:app/*", LabelKey: "app"},
	}
	in := policy.Input{ResourceClasses: []*v1alpha1.ResourceClass{rc}, SubjectClasses: []*v1alpha1.SubjectClass{sc},
		Policies: []*v1alpha1.AccessControlPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.AccessControlPolicySpec{Statements: w.policy}}}}
	if w.object != nil {
		in.Resources = append(in.Resources, w.object)
	}
	return policy.NewSnapshot(in), true
}

func (w *world) Protection(resource string) *v1alpha1.ProtectedResource {
	if w.object == nil || resource != orders {
		return nil
	}
	out := w.object.DeepCopy() // as it is with many members
	out.Status.Clusters, out.Status.Groups = nil, v1alpha1.GroupMembers(out.Status.Clusters)
	return out
}

func (w *world) SetTemporaryAudit(
	ctx context.Context,
	object, version string,
	audit *v1alpha1.TemporaryAudit,
	check func(context.Context, v1alpha1.ProtectedResourceSpec) error,
) (*v1alpha1.ProtectedResource, error) {
	if w.object == nil || object != w.object.Name {
		return nil, rollout.ErrGone
	}
	if version != "" && version != w.object.ResourceVersion {
		return nil, rollout.ErrChanged
	}
	for range 2 { // as after a conflict
		if err := check(ctx, w.object.Spec); err != nil {
			return nil, err
		}
	}
	if w.down != nil {
		return nil, w.down
	}
	w.version++
	w.object.Spec.TemporaryAudit, w.object.ResourceVersion = audit, fmt.Sprint("v", w.version)
	w.report()
	return w.object.DeepCopy(), nil
}

// Instruct implements rollout.HostWriter.
func (w *world) Instruct(_ context.Context, object string, i waves.Instruction) error {
	switch {
	case w.object == nil || object != w.object.Name:
		return rollout.ErrGone
	case w.down != nil:
		return w.down
	}
	if err := i.Validate(); err != nil {
		return err
	}
	w.object.Annotations = map[string]string{v1alpha1.AnnotationRollout: i.String()}
	return nil
}

// report is what the adapter does: every member has the effective mode.
func (w *world) report() {
	for i, c := range w.object.Status.Clusters {
		mode := w.object.Spec.Mode
		for _, m := range w.object.Spec.ClusterModes {
			if m.Cluster == c.Name {
				mode = m.Mode
			}
		}
		if (rollout.InTemporaryAudit(w.object.Spec, w.now) || w.object.Status.Rollout.Holds(string(c.Name))) && mode == v1alpha1.ModeEnforce {
			mode = v1alpha1.ModeAudit
		}
		if c.Mode != mode || c.Since == nil {
			at := metav1.NewMicroTime(w.now)
			w.object.Status.Clusters[i] = v1alpha1.ClusterState{Name: c.Name, State: v1alpha1.MemberRealized, Mode: mode, Since: &at}
		}
	}
}

func (w *world) members(names ...v1alpha1.ClusterName) {
	for _, n := range names {
		w.object.Status.Clusters = append(w.object.Status.Clusters, v1alpha1.ClusterState{Name: n})
	}
	w.report()
}

func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	if w.object != nil {
		w.report()
	}
}

// see stores connections at the present instant.
func (w *world) see(cluster, subject string, word policy.Verdict, n int64) {
	w.t.Helper()
	e := audit.Edge{
		Cluster:  cluster,
		Subject:  subject,
		Resource: orders,
		Action:   "redis:connect",
		Port:     6379,
		Protocol: "TCP",
		Decision: word,
		Verdict:  audit.VerdictForwarded,
	}
	if subject == "" {
		e.Source = "namespace=lost"
	}
	w.seeEdge(e, n)
}

// request is what a proxy refused.
func (w *world) request(cluster, subject, action string, n int64) {
	w.t.Helper()
	w.seeEdge(
		audit.Edge{
			Cluster:  cluster,
			Subject:  subject,
			Resource: orders,
			Action:   action,
			Port:     6379,
			Protocol: audit.ProtocolHTTP,
			Decision: policy.DefaultDenied,
			Verdict:  audit.VerdictDropped,
		},
		n,
	)
}

func (w *world) seeEdge(e audit.Edge, n int64) {
	w.t.Helper()
	w.batches++
	if err := w.flows.Append(
		w.t.Context(),
		&audit.Batch{
			ID:        fmt.Sprint(w.batches),
			Rollups:   []audit.Rollup{{Bucket: w.now.Truncate(time.Minute), Edge: e, Count: n, FirstSeen: w.now, LastSeen: w.now}},
			Positions: []audit.Position{{Source: e.Cluster, Time: w.now}},
		},
	); err != nil {
		w.t.Fatal(err)
	}
}

// Halt implements rollout.Tickets.
func (w *world) Halt(_ context.Context, resource string, reason message.Message) (int, error) {
	w.halted = append(w.halted, resource+": "+reason.Text)
	return 1, nil
}

func (w *world) watcher(name string) *rollout.Watcher {
	return &rollout.Watcher{Service: w.Service, Name: name, Denials: sight{w.insight, w}, Tickets: w, Every: time.Second, Log: slog.New(slog.DiscardHandler),
		Resources: func() ([]string, bool) { return []string{orders, "trnv1:rsc:o:redis:clusters:nobodys"}, true }}
}

// sight is the insight, with the gaps that a test sets.
type sight struct {
	*rollout.Insight
	w *world
}

func (s sight) Refused(ctx context.Context, resource, cluster string, before, since, until time.Time) (int64, error) {
	s.w.counted = append(s.w.counted, cluster)
	return s.Insight.Refused(ctx, resource, cluster, before, since, until)
}

func (s sight) Missing(_ context.Context, clusters []string, _ time.Time) (map[string]rollout.GapKind, error) {
	out := map[string]rollout.GapKind{}
	for _, c := range clusters {
		if kind, ok := s.w.missing[c]; ok {
			out[c] = kind
		}
	}
	return out, nil
}

// lines of the ledger, oldest first.
func (w *world) lines() (out []ledger.Entry) {
	w.t.Helper()
	for l, err := range ledgerstore.NewReader(w.db).Lines(w.t.Context(), 1) {
		if err != nil {
			w.t.Fatal(err)
		}
		e, err := l.Entry()
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func (w *world) actions() []string {
	out := []string{}
	for _, e := range w.lines() {
		out = append(out, e.Action)
	}
	return out
}

// told contains the notified people by event of a resource.
func (w *world) told() map[string][]string {
	w.t.Helper()
	changes, err := notifystore.New(w.db).Changes(w.t.Context(), 100)
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string][]string{}
	for _, c := range changes {
		for _, m := range notify.MessagesForResourceEvent(*c.ResourceEvent, notify.Directory{Catalog: w.catalog}) {
			if m.Person != "" {
				out[m.Facts.Event] = append(out[m.Facts.Event], m.Person)
			}
			text := (&notify.Renderer{Portal: portalURL}).Render(m, notify.Preferences{})
			page := "resources/orders"
			switch {
			case strings.HasPrefix(m.Facts.Event, "downgrade"): // it is about many
				page = "resources"
			case m.Facts.Event == "class-waves-halted":
				page = "classes"
			case m.Facts.Event == notify.EventClientNotice: // it is for the owners of the application
				page = "applications/cart"
			}
			if text.Link != "https://acp.example.com/"+page || notify.ContentOf(m).Title.Code == message.NotificationUnknownTitle("").Code {
				w.t.Errorf("the notification of %s is %+v, want its own messages and the page %s", m.Facts.Event, text, page)
			}
		}
	}
	for k := range out {
		slices.Sort(out[k])
	}
	return out
}

func allow(subjects ...v1alpha1.Subject) v1alpha1.Statement {
	return v1alpha1.Statement{
		SID:       "a",
		Effect:    v1alpha1.EffectAllow,
		Subjects:  subjects,
		Actions:   []v1alpha1.Action{"redis:connect"},
		Resources: []v1alpha1.ResourceName{orders},
	}
}

func raw(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
