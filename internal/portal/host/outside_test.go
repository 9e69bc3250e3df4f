package host_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/externalchanges"
	"github.com/acp-io/acp/internal/externalchanges/event"
	outsidestore "github.com/acp-io/acp/internal/externalchanges/gormstore"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/portal/host"
	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/rollout"
	"github.com/acp-io/acp/internal/waves"
)

// TestChangesOutsideOfThePortal checks in a real host cluster that the ledger gets lines for changes by others, and none for the
// portal's own changes.
func TestChangesOutsideOfThePortal(t *testing.T) {
	config := portaltest.APIServer(t, true)
	clients := kubernetes.NewForConfigOrDie(config)
	ctx := t.Context()
	if _, err := clients.CoreV1().
		Namespaces().
		Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: event.Namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kubectl, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	db := databasetest.Open(t, databasetest.SQLite(t))
	store := outsidestore.New(db)
	// start starts a portal's connection to the host cluster with its recorder, and returns a function that stops both.
	start := func() (*host.Host, func()) {
		h := newHost(t, config)
		h.RecordOwnChanges(store.AddOwnChange)
		h.RecordOwnInstructions(store.AddOwnInstruction)
		recorder := &externalchanges.Recorder{Host: h, Store: store, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			Settle: 500 * time.Millisecond, Every: 20 * time.Millisecond, Compare: time.Hour}
		h.OnObject(recorder.Notice)
		h.OnInstruction(recorder.NoticeInstruction)
		running, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- h.Run(running) }()
		recorded := make(chan struct{})
		go func() {
			recorder.Run(running)
			close(recorded)
		}()
		return h, sync.OnceFunc(func() {
			cancel()
			<-recorded
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	h, stop := start()
	defer func() { stop() }()
	until := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	until("the first comparison", func() bool {
		_, filled, err := store.Rows(ctx)
		return err == nil && filled
	})
	lines := func() []string {
		t.Helper()
		all, _, err := ledgerstore.NewReader(db).List(ctx, ledger.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		out := []string{}
		for _, l := range slices.Backward(all) {
			e, err := l.Entry()
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, e.Action+" "+e.Object+" "+e.Actor+" "+e.Details["generation"]+" "+e.Details["manager"])
		}
		return out
	}
	want := []string{}
	expect := func(more ...string) {
		t.Helper()
		want = append(want, more...)
		until("the lines", func() bool { return len(lines()) >= len(want) })
		if d := cmp.Diff(want, lines()); d != "" {
			t.Fatal(d)
		}
	}
	known := func(k externalchanges.Key, generation int64) {
		t.Helper()
		until("the ledger has it", func() bool {
			r, err := store.Object(ctx, k)
			return err == nil && (r == nil && generation == 0 || r != nil && r.Generation == generation)
		})
	}

	// The portal's own: a policy with two writes, and an object that is made and deleted.
	w := h.Writer()
	for _, sid := range []string{"t-1-1", "t-2-1"} {
		if _, err := w.Put(ctx, "bobs", portaltest.BobsCluster, []v1alpha1.Statement{statement(sid, portaltest.BobsCluster)}, yes); err != nil {
			t.Fatal(err)
		}
	}
	known(externalchanges.Key{Kind: "AccessControlPolicy", Name: "bobs"}, 2)
	spec := text(
		t,
		v1alpha1.ApprovalPolicySpec{
			Priority: 1,
			Steps:    []v1alpha1.ApprovalStep{{Name: "owner", Approvers: []v1alpha1.Approver{"resource.owner"}, Quorum: "Any"}},
		},
	)
	change := approval.Change{Kind: approval.ObjectApprovalPolicy, Name: "p", Verb: approval.VerbCreate, After: spec}
	if _, err := w.Apply(ctx, change, yes); err != nil {
		t.Fatal(err)
	}
	known(externalchanges.Key{Kind: "ApprovalPolicy", Name: "p"}, 1)
	change.Verb, change.Before, change.After = approval.VerbDelete, spec, nil
	if _, err := w.Apply(ctx, change, yes); err != nil {
		t.Fatal(err)
	}
	known(externalchanges.Key{Kind: "ApprovalPolicy", Name: "p"}, 0)
	expect()

	// A change of another user, which the webhook reported.
	object := &v1alpha1.ApprovalPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "application"},
		Spec:       v1alpha1.ApprovalPolicySpec{Priority: 1, Steps: []v1alpha1.ApprovalStep{{Name: "owner", Approvers: []v1alpha1.Approver{"resource.owner"}}}},
	}
	if err := kubectl.Create(ctx, object, client.FieldOwner("kubectl-create")); err != nil {
		t.Fatal(err)
	}
	seen, err := h.ObjectNow(ctx, externalchanges.Key{Kind: "ApprovalPolicy", Name: "application"})
	if err != nil || seen == nil {
		t.Fatalf("%v, %v", seen, err)
	}
	tell := func(namespace, user string, operation event.Operation, generation int64) {
		t.Helper()
		e := event.Of(
			event.Change{
				At:         time.Now(),
				User:       user,
				Kind:       "ApprovalPolicy",
				Name:       "application",
				UID:        string(object.UID),
				Operation:  operation,
				Generation: generation,
				Digest:     seen.Digest,
			},
			event.Namespace,
			"x",
		)
		e.Namespace, e.Regarding.Namespace = namespace, namespace
		if _, err := clients.EventsV1().Events(namespace).Create(ctx, e, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	tell("default", "mallory", event.Create, 1)
	tell(event.Namespace, "alice", event.Create, 1)
	expect("object.created ApprovalPolicy/application kubernetes:alice 1 kubectl-create")

	// Changes that were not reported, or with another content or in another namespace.
	object.Spec.Priority = 2
	if err := kubectl.Update(ctx, object, client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	tell("default", "mallory", event.Update, 2)
	tell(event.Namespace, "mallory", event.Update, 2)
	expect("object.updated ApprovalPolicy/application unknown 2 kubectl-edit")

	// Metadata alone is no change of what is in force.
	object.Labels = map[string]string{"team": "x"}
	if err := kubectl.Update(ctx, object); err != nil {
		t.Fatal(err)
	}
	if err := kubectl.Delete(ctx, object); err != nil {
		t.Fatal(err)
	}
	tell(event.Namespace, "bob", event.Delete, 2)
	expect("object.deleted ApprovalPolicy/application kubernetes:bob 2 ")

	// Instructions about waves, of the portal and of another user.
	protected := &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "bobs"},
		Spec: v1alpha1.ProtectedResourceSpec{Resource: portaltest.BobsCluster, Mode: v1alpha1.ModeEnforce}}
	if err := kubectl.Create(ctx, protected, client.FieldOwner("kubectl-create")); err != nil {
		t.Fatal(err)
	}
	expect("object.created ProtectedResource/bobs unknown 1 kubectl-create")
	if err := w.Instruct(ctx, "bobs", waves.New(waves.Pause, "bob", "because", time.Now())); err != nil {
		t.Fatal(err)
	}
	if err := kubectl.Get(ctx, client.ObjectKeyFromObject(protected), protected); err != nil {
		t.Fatal(err)
	}
	other := waves.New(waves.Finish, "bob", "because", time.Now())
	protected.Annotations[v1alpha1.AnnotationRollout] = other.String()
	if err := kubectl.Update(ctx, protected); err != nil {
		t.Fatal(err)
	}
	expect("resource.waves-instructed ProtectedResource/bobs unknown  ")

	// The same of a class.
	class := &v1alpha1.ResourceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "bobs"},
		Spec: v1alpha1.ResourceClassSpec{
			Pattern:   "trnv1:rsc:o:redis:clusters:bobs-*",
			LabelKey:  "bobs",
			Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
			Actions:   []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: v1alpha1.ProtocolTCP}}}},
		},
	}
	if err := kubectl.Create(ctx, class, client.FieldOwner("kubectl-create")); err != nil {
		t.Fatal(err)
	}
	expect("object.created ResourceClass/bobs unknown 1 kubectl-create")
	if err := w.InstructClass(ctx, "bobs", waves.New(waves.Pause, "dave", "because", time.Now())); err != nil {
		t.Fatal(err)
	}
	if err := kubectl.Get(ctx, client.ObjectKeyFromObject(class), class); err != nil {
		t.Fatal(err)
	}
	class.Annotations[v1alpha1.AnnotationRollout] = other.String()
	if err := kubectl.Update(ctx, class); err != nil {
		t.Fatal(err)
	}
	expect("class.waves-instructed ResourceClass/bobs unknown  ")
	if err := w.InstructClass(ctx, "bobs", waves.Instruction{ID: "g", Action: waves.Pause, By: waves.Guard, Reason: "r"}); err != nil {
		t.Fatal(err)
	}
	if err := kubectl.Get(ctx, client.ObjectKeyFromObject(class), class); err != nil || class.Annotations[v1alpha1.AnnotationRollout] != other.String() {
		t.Errorf("the guard has replaced the instruction of a person: %v, %v", class.Annotations, err)
	}
	if err := w.InstructClass(ctx, "none", other); !errors.Is(err, rollout.ErrGone) {
		t.Errorf("a class that does not exist: %v", err)
	}

	// Changes while no portal runs, of a kind that is in no list of the portal's own objects.
	organization := func(name string) *v1alpha1.Organization {
		return &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.OrganizationSpec{Teams: []v1alpha1.TeamName{"team-a"}, Administrators: []v1alpha1.OrganizationAdministrator{"person:alice"}}}
	}
	changed, deleted := organization("changed"), organization("deleted")
	for _, o := range []*v1alpha1.Organization{changed, deleted} {
		if err := kubectl.Create(ctx, o, client.FieldOwner("kubectl-create")); err != nil {
			t.Fatal(err)
		}
		expect("object.created Organization/" + o.Name + " unknown 1 kubectl-create")
	}
	stop()
	changed.Spec.Title = "Changed"
	if err := kubectl.Update(ctx, changed, client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	if err := kubectl.Delete(ctx, deleted); err != nil {
		t.Fatal(err)
	}
	if err := kubectl.Create(ctx, organization("created"), client.FieldOwner("kubectl-create")); err != nil {
		t.Fatal(err)
	}
	_, stop = start()
	more := []string{
		"object.created Organization/created unknown 1 kubectl-create",
		"object.deleted Organization/deleted unknown 1 ",
		"object.updated Organization/changed unknown 2 kubectl-edit",
	}
	until("the lines about changes while no portal ran", func() bool { return len(lines()) >= len(want)+len(more) })
	got := lines()[len(want):] // in any order
	slices.Sort(got)
	if d := cmp.Diff(more, got); d != "" {
		t.Error(d)
	}
}
