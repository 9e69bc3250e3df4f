package federation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/internal/message"
)

func objectOf(name, text string) unstructured.Unstructured {
	return unstructured.Unstructured{Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": "X", "text": text,
		"metadata": map[string]any{"name": name, "resourceVersion": "6"}}}
}

// invented is an API server whose lists do not end: each page has a new token.
type invented struct {
	dynamic.ResourceInterface
	requests int
	// item returns an object of a page, by its number.
	item func(n int) (name, text string)
	// perPage is the number of objects in a page.
	perPage int
}

func (s *invented) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "7"}}}
	for i := range s.perPage {
		name, text := s.item(s.requests*s.perPage + i)
		list.Items = append(list.Items, objectOf(name, text))
	}
	s.requests++
	list.SetContinue(fmt.Sprint(s.requests))
	return list, nil
}

// TestEndlessListsFail checks that a list that does not end becomes an error, whatever its pages contain, and that nothing of it is stored.
func TestEndlessListsFail(t *testing.T) {
	for name, c := range map[string]struct {
		item    func(int) (string, string)
		perPage int
		want    error
	}{
		"new names":       {func(n int) (string, string) { return fmt.Sprint("acp-", n), "" }, 50, errTooManyObjects},
		"the same name":   {func(int) (string, string) { return "acp-x", "" }, 50, errTooManyObjects},
		"unreadable":      {func(int) (string, string) { return "", "unreadable" }, 50, errTooManyObjects},
		"no objects":      {nil, 0, errTooManyObjects},
		"large objects":   {func(n int) (string, string) { return fmt.Sprint("acp-", n), strings.Repeat("x", 5000) }, 50, errObjectsTooLarge},
		"one large name":  {func(int) (string, string) { return strings.Repeat("x", 1<<20), "" }, 1, errObjectsTooLarge},
		"large and equal": {func(int) (string, string) { return "acp-x", strings.Repeat("x", 5000) }, 50, errObjectsTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			server := &invented{item: c.item, perPage: c.perPage}
			w := NewWatch(server, "policies", logr.Discard(), func(u *unstructured.Unstructured) (string, error) {
				if u.Object["text"] == "unreadable" {
					return "", errors.New("unreadable")
				}
				return u.GetName(), nil
			}, func(string) {})
			w.bounds = bounds{objects: 1000, bytes: 1 << 20}
			s := &reflectorStore[string]{w: w}
			if _, err := s.list(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("got %v", err)
			}
			if server.requests > 1001 || s.fresh != nil {
				t.Errorf("%d requests, %d objects", server.requests, len(s.fresh))
			}
		})
	}
}

// TestEqualObjectsCountOnce checks that objects which are listed and change again and again count once, and that deleted ones do not count.
func TestEqualObjectsCountOnce(t *testing.T) {
	w := NewWatch(&paged{items: []unstructured.Unstructured{objectOf("a", "x"), objectOf("b", "x")}}, "policies", logr.Discard(),
		func(u *unstructured.Unstructured) (string, error) { return u.GetName(), nil }, func(string) {})
	w.bounds = bounds{objects: 2, bytes: 1000}
	s := &reflectorStore[string]{w: w}
	for range 10 {
		takeIn(t, w)
		for _, name := range []string{"a", "b", "a"} {
			u := objectOf(name, "y")
			if err := s.Update(&u); err != nil || s.exceeded != nil {
				t.Fatal(err, s.exceeded)
			}
		}
		a, c := objectOf("a", ""), objectOf("c", "y")
		if err := errors.Join(s.Delete(&a), s.Add(&c)); err != nil || s.exceeded != nil {
			t.Fatal(err, s.exceeded)
		}
	}
	bytes := 0
	for _, i := range w.items {
		bytes += i.bytes
	}
	if len(w.items) != 2 || w.bytes != bytes || bytes == 0 {
		t.Errorf("%d objects, %d bytes instead of %d", len(w.items), w.bytes, bytes)
	}
}

// flooding is an API server with few objects in its list, and many more in the events of its watches.
type flooding struct {
	dynamic.ResourceInterface
	mu           sync.Mutex
	lists, watch int
	flood        bool
	sent         int
}

func (f *flooding) List(_ context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "7"}},
		Items: []unstructured.Unstructured{objectOf("acp-x", "")}}
	if o.Limit != 1 {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.lists++
	}
	return list, nil
}

func (f *flooding) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watch++
	w := watch.NewRaceFreeFake()
	if f.flood {
		for i := range 80 { // the buffer has room for 100
			u := objectOf(fmt.Sprint("acp-", f.sent, "-", i), "")
			u.SetResourceVersion(fmt.Sprint(8 + i))
			w.Add(&u)
		}
		f.sent++
	}
	return w, nil
}

// TestFloodOfEventsMakesTheKindUnreadable checks that events with ever new names make the member's kind unreadable, with the reason, and not a current
// state; that the objects are not listed again at once; and that the kind is read again when the member has stopped.
func TestFloodOfEventsMakesTheKindUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &flooding{flood: true}
		m := &member[Observed]{cluster: Cluster{Name: "m1"}, kind: CiliumPolicy, probing: DefaultProbing, log: logr.Discard(), changed: func(string) {},
			client: server, http: &http.Client{}, why: errNotProbed}
		m.watch = NewWatch(m.client, "policies", logr.Discard(), Revision(func(map[string]any) string { return "r" }).parse, m.changed)
		m.watch.bounds = bounds{objects: 50}
		defer start(t, m)()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		why := message.MemberTooManyObjects("m1", "ciliumclusterwidenetworkpolicies.cilium.io", maxObjects)
		if o := m.observe(); o.Reachable || o.Unknown || o.Message != why {
			t.Errorf("after a flood: %+v", o)
		}
		if n := len(m.watch.List()); n > 50 {
			t.Errorf("%d objects are kept", n)
		}
		server.mu.Lock()
		if server.lists != 1 || server.watch != 1 {
			t.Errorf("%d lists and %d watches in ten seconds", server.lists, server.watch)
		}
		server.flood = false
		server.mu.Unlock()
		time.Sleep(boundedRetryDelay + time.Second)
		synctest.Wait()
		if o := withObject(m.observe(), m, "acp-x"); !o.Reachable || o.Object == nil || len(m.watch.List()) != 1 {
			t.Errorf("after the flood: %+v, %d lists, %d watches, %d objects", o, server.lists, server.watch, len(m.watch.List()))
		}
	})
}

// TestListsThatExceedTheBoundsAreRare checks that a list that exceeds the bounds is not repeated at once, and that another failure delays nothing.
func TestListsThatExceedTheBoundsAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &invented{perPage: 10, item: func(n int) (string, string) { return fmt.Sprint("acp-", n), "" }}
		w := NewWatch(server, "policies", logr.Discard(), Revision(func(map[string]any) string { return "r" }).parse, func(string) {})
		w.bounds = bounds{objects: 50}
		w.fail(errors.New("no route"))
		if d := w.delayOfList(); d != 0 {
			t.Errorf("another failure delays the list by %s", d)
		}
		_, err := (&reflectorStore[Observed]{w: w}).list(t.Context())
		for _, err := range []error{err, tooLarge(1), bounds{bytes: 1}.check(1, 2)} {
			w.fail(err)
			if d := w.delayOfList(); d != boundedRetryDelay {
				t.Errorf("%v: the next list is in %s", err, d)
			}
			time.Sleep(boundedRetryDelay)
			if d := w.delayOfList(); d != 0 {
				t.Errorf("%v: it waits another %s", err, d)
			}
		}
	})
}
