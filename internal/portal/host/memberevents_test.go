package host_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/host"
	"github.com/acp-io/acp/internal/testenv"
)

// Only the adapter's Events about members are recorded, one that could not be recorded again, and all of them after a restart.
func TestFollowMemberEvents(t *testing.T) {
	server := testenv.Start(t, testenv.Options{})
	clients := kubernetes.NewForConfigOrDie(server.Config)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	at := metav1.NewMicroTime(time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC))
	create := func(name, controller, reason, kind string) *eventsv1.Event {
		t.Helper()
		e, err := clients.EventsV1().
			Events("default").
			Create(ctx, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: name}, EventTime: at, ReportingController: controller,
				ReportingInstance: "x", Action: "Reconcile", Type: "Warning", Reason: reason, Note: "m2: " + name,
				Regarding: corev1.ObjectReference{Kind: kind, Name: "bobs", APIVersion: "acp.io/v1alpha1"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	drifted := create("drifted", "acp-adapter", "MemberDrifted", "ProtectedResource")
	create("of-another", "somebody", "MemberDrifted", "ProtectedResource")
	create("realized", "acp-adapter", "Realized", "ProtectedResource")
	create("of-a-pod", "acp-adapter", "MemberDrifted", "Pod")
	want := host.MemberEvent{ID: string(drifted.UID), At: at.Time, Resource: "bobs", Reason: "MemberDrifted", Cluster: "m2", Message: message.OfText("drifted")}

	h, err := host.New(server.Config, func(string) {}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, restart := range []string{"first", "again"} {
		running, stop := context.WithCancel(ctx)
		recorded, ended := make(chan host.MemberEvent, 10), make(chan error, 1)
		failed := false
		go func() {
			ended <- h.FollowMemberEvents(running, func(_ context.Context, x host.MemberEvent) error {
				if !failed {
					failed = true
					return errors.New("the database is unavailable")
				}
				recorded <- x
				return nil
			})
		}()
		select {
		case got := <-recorded:
			got.At = got.At.UTC()
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: %s", restart, d)
			}
		case <-ctx.Done():
			t.Fatalf("%s: no event was recorded", restart)
		}
		stop()
		if err := <-ended; err != nil || len(recorded) != 0 {
			t.Errorf("%s: %v, and %d more", restart, err, len(recorded))
		}
	}
}

// TestCodesOfMemberEvents checks that an event gets the code of its text from the status, and no code of another member, of another text,
// or of a status without codes.
func TestCodesOfMemberEvents(t *testing.T) {
	m := message.StateDeleted(message.OfText("CiliumNetworkPolicy acp-x"))
	event := host.MemberEvent{Cluster: "m2", Message: message.OfText(m.Text)}
	state := v1alpha1.ClusterState{Name: "m2", State: v1alpha1.MemberDrifted, Message: m.Text}
	state.MessageCode, state.MessageParams = m.Compact()
	with := func(change func(*v1alpha1.ClusterState)) []v1alpha1.ClusterState {
		s := state
		change(&s)
		return []v1alpha1.ClusterState{{Name: "m1", State: v1alpha1.MemberRealized}, s}
	}
	for _, tc := range []struct {
		reason string
		states []v1alpha1.ClusterState
		coded  bool
	}{
		{"the state of the event", with(func(*v1alpha1.ClusterState) {}), true},
		{"another member", with(func(s *v1alpha1.ClusterState) { s.Name = "m3" }), false},
		{"another text", with(func(s *v1alpha1.ClusterState) { s.Message = "changed" }), false},
		{"no code", with(func(s *v1alpha1.ClusterState) { s.MessageCode, s.MessageParams = "", "" }), false},
		{"no status", nil, false},
	} {
		got, coded := host.AddCode(event, &v1alpha1.ProtectedResource{Status: v1alpha1.ProtectedResourceStatus{Clusters: tc.states}})
		want := event
		if tc.coded {
			want.Message = m
		}
		if coded != tc.coded || got != want {
			t.Errorf("%s: %+v, %t", tc.reason, got, coded)
		}
	}
}
