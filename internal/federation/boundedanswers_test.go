package federation

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/internal/message"
)

// serverOf starts an API server of a member, and returns the member's registration.
func serverOf(t *testing.T, answer http.HandlerFunc) Cluster {
	t.Helper()
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	return Cluster{Name: "m1", Endpoint: server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
}

// endless writes a list that does not end, until the client closes the connection.
func endless(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"kind":"XList","items":["`)
	for part := strings.Repeat("x", 1<<16); r.Context().Err() == nil; {
		if _, err := io.WriteString(w, part); err != nil {
			return
		}
	}
}

// TestEndlessAnswersFail checks that an answer that does not end becomes an error, and what the member's state says then: for the clients of package
// federation, and for those that others make with RESTConfig.
func TestEndlessAnswersFail(t *testing.T) {
	c := serverOf(t, endless)
	m, err := newMember(c, "token", CiliumPolicy, Revision(nil).parse, DefaultProbing, logr.Discard(), &atomic.Uint64{}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	m.probing.Timeout = time.Minute
	err = m.probe(t.Context())
	if !errors.Is(err, errAnswerTooLarge) {
		t.Errorf("probe: %v", err)
	}
	if got, want := m.explain(err), message.MemberTooMuchData("m1", "ciliumclusterwidenetworkpolicies.cilium.io"); got != want {
		t.Errorf("the state says %q", got.Text)
	}
	if _, err := (&reflectorStore[Observed]{w: m.watch}).list(t.Context()); !errors.Is(err, errAnswerTooLarge) {
		t.Errorf("list: %v", err)
	}
	client := clientOf(t, c)
	if _, err := client.Resource(CiliumPolicy.TargetResource).Get(t.Context(), "x", metav1.GetOptions{}); !errors.Is(err, errAnswerTooLarge) {
		t.Errorf("other clients: %v", err)
	}
}

// clientOf returns a client of a member as those that do not watch a kind have it.
func clientOf(t *testing.T, c Cluster) dynamic.Interface {
	t.Helper()
	config, err := RESTConfig(c, "token")
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestLargeObjectsAreReadInSmallPages checks that a page that is too large is read again with fewer objects.
func TestLargeObjectsAreReadInSmallPages(t *testing.T) {
	const objects = 40 // together larger than a page
	text := strings.Repeat("x", 1<<20)
	c := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		var from, limit int
		_, _ = fmt.Sscan(r.FormValue("continue"), &from)
		_, _ = fmt.Sscan(r.FormValue("limit"), &limit)
		to, next := min(from+limit, objects), ""
		if to < objects {
			next = fmt.Sprint(to)
		}
		var items []string
		for i := from; i < to; i++ {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":"acp-%d","resourceVersion":"6"},"spec":{"text":%q}}`, i, text))
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind":"XList","metadata":{"resourceVersion":"7","continue":%q},"items":[%s]}`, next, strings.Join(items, ","))
	})
	m, err := newMember(c, "token", CiliumPolicy, Revision(func(map[string]any) string { return "r" }).parse, DefaultProbing, logr.Discard(),
		&atomic.Uint64{}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	m.watch.size = sizeOfObserved
	takeIn(t, m.watch)
	if n := len(m.watch.List()); n != objects {
		t.Errorf("%d objects were read", n)
	}
	if m.watch.bytes > 1<<20 {
		t.Errorf("%d bytes are counted of what is kept", m.watch.bytes)
	}
}

// TestRedirectsAreNotFollowed checks that a member cannot make the adapter send requests to other addresses, whatever the method and the status are.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var reached atomic.Int32
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(target.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		c := serverOf(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target.URL+"/internal", status) })
		client := clientOf(t, c)
		policies := client.Resource(CiliumPolicy.TargetResource)
		_, read := policies.Get(t.Context(), "x", metav1.GetOptions{})
		_, written := policies.Patch(t.Context(), "x", "application/merge-patch+json", []byte("{}"), metav1.PatchOptions{})
		_, watched := policies.Watch(t.Context(), metav1.ListOptions{})
		deleted := policies.Delete(t.Context(), "x", metav1.DeleteOptions{})
		for request, err := range map[string]error{"read": read, "write": written, "watch": watched, "delete": deleted} {
			if !errors.Is(err, errRedirected) {
				t.Errorf("%d, %s: %v", status, request, err)
			}
		}
		m, err := newMember(c, "token", CiliumPolicy, Revision(nil).parse, DefaultProbing, logr.Discard(), &atomic.Uint64{}, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		m.probing.Timeout = time.Minute
		if got, want := m.explain(m.probe(t.Context())), message.MemberRedirects("m1", c.Endpoint); got != want {
			t.Errorf("%d: the state says %q", status, got.Text)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests reached the target", n)
	}
}

// body is a transport that answers each request with the same text.
type body struct {
	status       int
	format, text string
}

func (b body) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: b.status,
		Header:     http.Header{"Content-Type": {b.format}},
		Request:    req,
		Body:       io.NopCloser(strings.NewReader(b.text)),
	}, nil
}

// TestOnlyEventsHaveNoCommonLimit checks which answers may have any length in all: that of a request for a watch, if it consists of events. A member
// cannot make another answer such a one.
func TestOnlyEventsHaveNoCommonLimit(t *testing.T) {
	const limit = 100
	event := `{"a":[{"b":"}]\\\"}"}],"c":"\\"}` // the brackets in the text end nothing
	events := strings.Repeat(event+"\n", 50)
	for name, c := range map[string]struct {
		method, query, format, text string
		status                      int
		fails                       bool
	}{
		"a short answer":            {text: strings.Repeat("x", limit)},
		"a byte more":               {text: strings.Repeat("x", limit+1), fails: true},
		"events":                    {query: "watch=true", text: events},
		"events, by 1":              {query: "resourceVersion=7&watch=1", text: events},
		"with parameters":           {query: "watch=true", format: "application/json;stream=watch", text: events},
		"no watch":                  {text: events, fails: true},
		"watch=false":               {query: "watch=false", text: events, fails: true},
		"the second of two values":  {query: "watch=false&watch=true", text: events, fails: true},
		"a name that contains it":   {query: "fieldSelector=watch%3Dtrue", text: events, fails: true},
		"a write":                   {method: http.MethodPost, query: "watch=true", text: events, fails: true},
		"an error":                  {query: "watch=true", status: 500, text: events, fails: true},
		"another status":            {query: "watch=true", status: 201, text: events, fails: true},
		"another format":            {query: "watch=true", format: "application/cbor", text: events, fails: true},
		"a large event":             {query: "watch=true", text: events + `{"a":"` + strings.Repeat("x", limit) + `"}`, fails: true},
		"many values in an event":   {query: "watch=true", text: "[" + events + "]", fails: true},
		"only spaces":               {query: "watch=true", text: strings.Repeat("\n", limit+1), fails: true},
		"only digits":               {query: "watch=true", text: strings.Repeat("1", limit+1), fails: true},
		"only ends":                 {query: "watch=true", text: strings.Repeat("}", limit+1), fails: true},
		"a text with escaped quote": {query: "watch=true", text: `"` + strings.Repeat(`\"{}`, limit) + `"`, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.format == "" {
				c.format = "application/json"
			}
			if c.status == 0 {
				c.status = http.StatusOK
			}
			req, err := http.NewRequestWithContext(t.Context(), c.method, "https://m1/apis/cilium.io/v2/x?"+c.query, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := boundedAnswers{body{c.status, c.format, c.text}, limit}.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			got, err := io.ReadAll(res.Body)
			if c.fails != errors.Is(err, errAnswerTooLarge) || !c.fails && (err != nil || string(got) != c.text) {
				t.Errorf("%d of %d bytes, %v", len(got), len(c.text), err)
			}
			if !strings.HasPrefix(c.text, string(got)) {
				t.Error("the text differs")
			}
		})
	}
}

// TestEndlessEventsEndTheWatch checks that client-go ends a watch with an event that does not end.
func TestEndlessEventsEndTheWatch(t *testing.T) {
	c := serverOf(t, endless)
	m, err := newMember(c, "token", CiliumPolicy, Revision(nil).parse, DefaultProbing, logr.Discard(), &atomic.Uint64{}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	events, err := m.client.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	var last any
	for e := range events.ResultChan() {
		last = e.Object
	}
	if status, ok := last.(*metav1.Status); !ok || !strings.Contains(status.Message, errAnswerTooLarge.Error()) {
		t.Errorf("got %v (%v)", last, ctx.Err())
	}
}
