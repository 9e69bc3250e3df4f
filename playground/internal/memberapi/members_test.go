package memberapi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/playground/internal/fleet"
)

// startMembers starts members, and returns clients of them with the account that writes.
func startMembers(t *testing.T, n int) (*Members, []dynamic.ResourceInterface, []byte) {
	t.Helper()
	pki, err := fleet.EnsurePKI(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.LoadX509KeyPair(pki.APIServer.Cert, pki.APIServer.Key)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(pki.ServerCA)
	if err != nil {
		t.Fatal(err)
	}
	members, err := Start(Config{Certificate: certificate, Users: map[string]User{"w": {Name: "writer", Writes: true}, "r": {Name: "reader"}}}, n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(members.Stop)
	var clients []dynamic.ResourceInterface
	for _, m := range members.All() {
		c, err := dynamic.NewForConfig(&rest.Config{Host: m.URL(), BearerToken: "w", QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: ca}})
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c.Resource(Policies.GroupVersionResource))
	}
	return members, clients, ca
}

func startLight(t *testing.T) *target {
	t.Helper()
	members, _, ca := startMembers(t, 1)
	file := t.TempDir() + "/ca"
	if err := os.WriteFile(file, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	pool, err := fleet.Pool(file)
	if err != nil {
		t.Fatal(err)
	}
	return &target{url: members.All()[0].URL(), client: clientOf(pool), last: map[string]map[string]any{},
		tokens: map[string]string{"admin": "w", "reader": "r", "nobody": "x"}}
}

func applyTo(ctx context.Context, c dynamic.ResourceInterface, name string, apps ...any) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(rule(name, tree{"a": "b"}, nil, apps...))
	if err != nil {
		return nil, err
	}
	force := true
	return c.Patch(ctx, name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "a", Force: &force})
}

func TestMembersHaveDataOfTheirOwn(t *testing.T) {
	members, clients, _ := startMembers(t, 2)
	for _, c := range clients {
		if _, err := applyTo(t.Context(), c, "one", "1"); err != nil {
			t.Fatal(err)
		}
	}
	a, b := members.All()[0], members.All()[1]
	if key := a.Differs(b, Policies); key != "" {
		t.Errorf("the members differ in %s", key)
	}
	if _, err := applyTo(t.Context(), clients[1], "one", "2"); err != nil {
		t.Fatal(err)
	}
	if key := a.Differs(b, Policies); key != "one" {
		t.Errorf("the members differ in %q, want one", key)
	}
	if _, err := applyTo(t.Context(), clients[1], "two", "2"); err != nil {
		t.Fatal(err)
	}
	if a.Len(Policies) != 1 || b.Len(Policies) != 2 {
		t.Errorf("the members have %d and %d policies, want 1 and 2", a.Len(Policies), b.Len(Policies))
	}
}

func TestFaults(t *testing.T) {
	members, clients, _ := startMembers(t, 1)
	m := members.All()[0]
	get := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_, err := clients[0].List(ctx, metav1.ListOptions{Limit: 1})
		return err
	}
	if err := get(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	m.SetFaults(Faults{Latency: 300 * time.Millisecond})
	began := time.Now()
	if err := get(10 * time.Second); err != nil || time.Since(began) < 300*time.Millisecond {
		t.Errorf("a slow member answered after %s: %v", time.Since(began), err)
	}
	m.SetFaults(Faults{Errors: 1})
	if err := get(10 * time.Second); !apierrors.IsInternalError(err) {
		t.Errorf("a member with errors answered %v", err)
	}
	m.SetFaults(Faults{Silent: true})
	if err := get(300 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent member answered %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- get(10 * time.Second) }()
	time.Sleep(100 * time.Millisecond)
	m.SetFaults(Faults{})
	if err := <-done; err != nil {
		t.Errorf("a request during the silence was answered with %v after it", err)
	}
	m.Halt()
	if err := get(10 * time.Second); err == nil {
		t.Error("a halted member answered")
	}
	if err := m.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := get(10 * time.Second); err != nil {
		t.Errorf("a member that was resumed answered %v", err)
	}
}

// events returns the next event of a watch.
func nextEvent(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case e := <-w.ResultChan():
		return e
	case <-time.After(time.Minute):
		t.Fatal("no event arrived")
		return watch.Event{}
	}
}

func TestAWatchStopsWhileAMemberIsSilentAndMissesNothing(t *testing.T) {
	members, clients, _ := startMembers(t, 1)
	m := members.All()[0]
	w, err := clients[0].Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := applyTo(t.Context(), clients[0], "one", "1"); err != nil {
		t.Fatal(err)
	}
	if e := nextEvent(t, w); e.Type != watch.Added {
		t.Fatalf("the event is %v", e)
	}
	m.SetFaults(Faults{Silent: true})
	go func() { _, _ = applyTo(t.Context(), clients[0], "two", "1") }() // it is answered after the silence
	select {
	case e := <-w.ResultChan():
		t.Fatalf("a silent member sent %v", e)
	case <-time.After(200 * time.Millisecond):
	}
	m.SetFaults(Faults{})
	if e := nextEvent(t, w); e.Type != watch.Added || e.Object.(*unstructured.Unstructured).GetName() != "two" {
		t.Errorf("after the silence the event is %v", e)
	}
}

func TestAWatchFromAForgottenVersionExpires(t *testing.T) {
	members, clients, _ := startMembers(t, 1)
	m := members.All()[0]
	for i := range 2*maxEvents + 1 {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumClusterwideNetworkPolicy",
			"metadata": map[string]any{"name": "one"}, "spec": map[string]any{"description": fmt.Sprint(i)}}}
		if err := m.Put(Policies, u); err != nil {
			t.Fatal(err)
		}
	}
	w, err := clients[0].Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	if err == nil {
		defer w.Stop()
		e := nextEvent(t, w)
		err = apierrors.FromObject(e.Object)
	}
	if !apierrors.IsResourceExpired(err) || apierrors.ReasonForError(err) != metav1.StatusReasonExpired {
		t.Errorf("the watch answers %v, want %d", err, http.StatusGone)
	}
}
