package federation

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// paged serves lists in pages.
type paged struct {
	dynamic.ResourceInterface
	items []unstructured.Unstructured
	// expires is the request, counted from 1, by which the list has grown too old to go on.
	expires, requests int
	asked             []metav1.ListOptions
}

func (p *paged) List(_ context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	p.asked = append(p.asked, o)
	if p.requests++; p.requests == p.expires {
		return nil, apierrors.NewResourceExpired("the continue token is too old")
	}
	from, _ := strconv.Atoi(o.Continue) // "" is the beginning
	to := min(len(p.items), from+int(o.Limit))
	list := &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "70"}}, Items: p.items[from:to]}
	if to < len(p.items) {
		list.SetContinue(strconv.Itoa(to))
	}
	return list, nil
}

// takeIn does what the reflector does with a list.
func takeIn[T any](t testing.TB, w *Watch[T]) {
	t.Helper()
	s := &reflectorStore[T]{w: w}
	if _, err := s.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
}

// TestListInPages: a list of several pages is one list, which begins anew when it has grown too old on the way; nothing of
// a list that failed is taken in.
func TestListInPages(t *testing.T) {
	server := &paged{expires: 2}
	want := map[string]bool{}
	for i := range 2*pageSize + 7 {
		name := fmt.Sprint("acp-", i)
		want[name] = true
		server.items = append(server.items, unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name, "resourceVersion": "6"}}})
	}
	w := NewWatch(server, "policies", logr.Discard(), Revision(func(map[string]any) string { return "r" }).parse, func(string) {})
	w.only = "metadata.name!=x"
	s := &reflectorStore[Observed]{w: w}
	if _, err := s.list(t.Context()); !apierrors.IsResourceExpired(err) {
		t.Fatalf("got %v", err)
	}
	if s.fresh != nil {
		t.Error("half a list is kept")
	}
	version, err := s.list(t.Context())
	if err != nil || version != "70" {
		t.Fatalf("version %q, %v", version, err)
	}
	if err := s.Replace(nil, version); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, o := range w.List() {
		got[o.Name] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, o := range server.asked {
		// An API server's cache ignores the limit.
		if o.Limit != pageSize || o.ResourceVersion != "" || o.FieldSelector != w.only {
			t.Errorf("asked for %+v", o)
		}
	}
}
