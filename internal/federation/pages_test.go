package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
)

// TestPages checks that lists are read as a dynamic client reads them, with the same requests, objects and errors.
func TestPages(t *testing.T) {
	var asked []string
	answer, code := "", http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+"?"+r.URL.Query().Encode())
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	dynamics, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	of := func(k Kind) (pageReader, pageReader) {
		t.Helper()
		direct, err := newPageReader(config, server.Client(), k)
		if err != nil {
			t.Fatal(err)
		}
		var client dynamic.ResourceInterface = dynamics.Resource(k.TargetResource)
		if k.Namespace != "" {
			client = dynamics.Resource(k.TargetResource).Namespace(k.Namespace)
		}
		return direct, pagesOf(client)
	}
	for _, c := range []struct {
		reason, answer string
		code           int
		kind           Kind
		options        metav1.ListOptions
	}{
		{reason: "the first page", kind: CiliumPolicy, options: metav1.ListOptions{Limit: 500}, answer: `{"apiVersion": "cilium.io/v2",
			"kind": "CiliumClusterwideNetworkPolicyList", "metadata": {"resourceVersion": "7", "continue": "more", "remainingItemCount": 3}, "items": [
			{"apiVersion": "cilium.io/v2", "kind": "CiliumClusterwideNetworkPolicy", "metadata": {"name": "a", "generation": 3, "labels": {"x": "y"}},
			 "spec": {"n": 9007199254740993, "f": 1.5, "list": [1, null, "é"], "Spec": true}}, {"metadata": {"name": "b"}, "specs": []}]}`},
		{reason: "another page", kind: CiliumPolicy, options: metav1.ListOptions{Limit: 500, Continue: "more+/="}, answer: `{"apiVersion": "cilium.io/v2",
			"kind": "CiliumClusterwideNetworkPolicyList", "metadata": {"resourceVersion": "7"}, "items": []}`},
		{reason: "it is no list", kind: CiliumPolicy, options: metav1.ListOptions{Limit: 2}, answer: `{"metadata": {"resourceVersion": "7"}, "items": []}`},
		{reason: "one object", kind: downgradeMark, options: metav1.ListOptions{Limit: 1, FieldSelector: downgradeMark.Selector()}, answer: `{
			"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {}, "items": [{"metadata": {"name": "m"}}]}`},
		{reason: "a namespace", kind: IstioPolicy, options: metav1.ListOptions{Limit: 2}, answer: `{"apiVersion": "security.istio.io/v1",
			"kind": "AuthorizationPolicyList", "items": []}`},
		{reason: "the kind is not served", kind: CiliumPolicy, options: metav1.ListOptions{Limit: 2}, code: 404, answer: `404 page not found`},
		{reason: "it is forbidden", kind: CiliumPolicy, options: metav1.ListOptions{Limit: 2}, code: 403, answer: `{"kind": "Status", "apiVersion": "v1",
			"status": "Failure", "message": "no", "reason": "Forbidden", "code": 403}`},
		{reason: "the token has expired", kind: CiliumPolicy, options: metav1.ListOptions{Limit: 2, Continue: "old"}, code: 410, answer: `{"kind": "Status",
			"apiVersion": "v1", "status": "Failure", "message": "too old", "reason": "Expired", "code": 410}`},
		{reason: "the server fails", kind: CiliumPolicy, options: metav1.ListOptions{Limit: 2}, code: 500, answer: `{"kind": "Status", "apiVersion": "v1",
			"status": "Failure", "message": "broken", "reason": "InternalError", "code": 500}`},
	} {
		if answer, code = c.answer, c.code; code == 0 {
			code = http.StatusOK
		}
		asked = nil
		direct, client := of(c.kind)
		want, wantErr := readPage(t, client, c.options)
		before := slices.Clone(asked)
		asked = nil
		got, err := readPage(t, direct, c.options)
		if diff := cmp.Diff(before, asked); diff != "" {
			t.Errorf("%s: requests (-want +got):\n%s", c.reason, diff)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.reason, diff)
		}
		if (err == nil) != (wantErr == nil) || apierrors.ReasonForError(err) != apierrors.ReasonForError(wantErr) {
			t.Errorf("%s: error %v, want %v", c.reason, err, wantErr)
		}
	}
	for _, text := range []string{"", "{", "{}", `{"kind": "Status"}`, `{"kind": "XList", "items": 1}`, `{"kind": "XList", "items": ["x"]}`} {
		if _, err := parsePage([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// readPage reads and decodes a page.
func readPage(t *testing.T, read pageReader, o metav1.ListOptions) (page, error) {
	t.Helper()
	decode, err := read(t.Context(), o)
	if err != nil {
		return page{}, err
	}
	return decode()
}

// TestFewPagesAreDecodedAtATime checks that many members that are listed at the same time do not have all their pages decoded at the same time, and that
// a member which does not answer delays no other.
func TestFewPagesAreDecodedAtATime(t *testing.T) {
	members := runtime.GOMAXPROCS(0) + 50
	var decoded, most atomic.Int32
	parse := func(*unstructured.Unstructured) (int, error) {
		n := decoded.Add(1)
		defer decoded.Add(-1)
		for {
			m := most.Load()
			if n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		time.Sleep(time.Millisecond) // long enough for all others to begin
		return 0, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	var listed, silent sync.WaitGroup
	for i := range 2 * members {
		w := NewWatch(nil, "policies", logr.Discard(), parse, func(string) {})
		w.pages = func(ctx context.Context, _ metav1.ListOptions) (func() (page, error), error) {
			if i >= members {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return func() (page, error) {
				return page{Items: []unstructured.Unstructured{{Object: map[string]any{}}}, Version: "7"}, nil
			}, nil
		}
		wait := &listed
		if i >= members {
			wait = &silent
		}
		wait.Go(func() {
			if _, err := (&reflectorStore[int]{w: w}).list(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	listed.Wait()
	cancel()
	silent.Wait()
	if n := int(most.Load()); n > runtime.GOMAXPROCS(0) {
		t.Errorf("%d pages were decoded at the same time on %d processors", n, runtime.GOMAXPROCS(0))
	}
}

// benchPolicy returns a policy as a member lists it: with 10 clients, ACP's labels, and the managed fields of a server-side apply.
func benchPolicy(n int) map[string]any {
	rules := make([]any, 10)
	fields := map[string]any{}
	for i := range rules {
		rules[i] = map[string]any{
			"fromEndpoints": []any{map[string]any{"matchLabels": map[string]any{
				"any:com.trip/app": fmt.Sprint(100_000 + n + i), "k8s:io.cilium.k8s.namespace.labels.trip.com/env": "prod",
			}}},
			"toPorts": []any{map[string]any{"ports": []any{map[string]any{"port": "6379", "protocol": "TCP"}}}},
		}
	}
	for _, f := range []string{"f:endpointSelector", "f:enableDefaultDeny", "f:ingress", "f:labels"} {
		fields[f] = map[string]any{}
	}
	labels := map[string]any{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelUnit: fmt.Sprint("unit-", n),
		v1alpha1.LabelRevision: "0123456789abcdef", LabelKubeFed: "true"}
	labelled := map[string]any{".": map[string]any{}}
	for l := range labels {
		labelled["f:"+l] = map[string]any{}
	}
	return map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumClusterwideNetworkPolicy",
		"metadata": map[string]any{"name": fmt.Sprint(v1alpha1.ObjectPrefix, n), "uid": fmt.Sprint("2f0c41f4-7a5c-4a46-9c4a-", n),
			"resourceVersion": fmt.Sprint(n), "generation": int64(1), "creationTimestamp": "2026-01-01T00:00:00Z", "labels": labels,
			"managedFields": []any{map[string]any{"manager": DirectFieldManager, "operation": "Apply", "apiVersion": "cilium.io/v2",
				"time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:metadata": map[string]any{"f:labels": labelled}, "f:spec": fields}}}},
		"spec": map[string]any{"endpointSelector": map[string]any{"matchLabels": map[string]any{"any:com.trip/redis": fmt.Sprint(n)}},
			"enableDefaultDeny": map[string]any{"ingress": true}, "ingress": rules},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Valid", "status": "True", "message": "Policy validation succeeded",
			"lastTransitionTime": "2026-01-01T00:00:00Z"}}},
	}
}

// BenchmarkReadBack measures reading one object of a member at the start of the adapter, from the page that contains it.
func BenchmarkReadBack(b *testing.B) {
	var items []any
	for n := range pageSize {
		items = append(items, benchPolicy(n))
	}
	body, err := json.Marshal(map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumClusterwideNetworkPolicyList",
		"metadata": map[string]any{"resourceVersion": "7"}, "items": items})
	if err != nil {
		b.Fatal(err)
	}
	parse := func(b *testing.B, items []unstructured.Unstructured) {
		b.Helper()
		for i := range items {
			if _, err := Revision(enforcer.Revision).parse(&items[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
	for name, read := range map[string]func() ([]unstructured.Unstructured, error){
		"Once": func() ([]unstructured.Unstructured, error) {
			p, err := parsePage(body)
			return p.Items, err
		},
		"DynamicClient": func() ([]unstructured.Unstructured, error) {
			var list unstructured.UnstructuredList
			err := list.UnmarshalJSON(body)
			return list.Items, err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body) / pageSize))
			for i := 0; i < b.N; i += pageSize { // an iteration is one object
				items, err := read()
				if err != nil {
					b.Fatal(err)
				}
				parse(b, items)
			}
		})
	}
}
