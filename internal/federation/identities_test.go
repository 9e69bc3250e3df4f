package federation

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestIdentityLabels: the labels of pods are in security-labels with their source, which those of other sources keep; empty
// ones count, too, since selectors of policies may ask for them.
func TestIdentityLabels(t *testing.T) {
	got, err := identityLabels(&unstructured.Unstructured{Object: map[string]any{
		"metadata":        map[string]any{"name": "256", "labels": map[string]any{"io.kubernetes.pod.namespace": "shop", "com.trip/appid": "of-the-object"}},
		"security-labels": map[string]any{"k8s:com.trip/appid": "888", "reserved:host": "", "container:com.trip/appid": "x", "k8s:empty": ""},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var labels []Label
	for _, h := range got {
		labels = append(labels, h.Value())
	}
	slices.SortFunc(labels, func(a, b Label) int { return strings.Compare(a.Key, b.Key) })
	want := []Label{
		{Key: "com.trip/appid", Value: "888"},
		{Key: "container:com.trip/appid", Value: "x"},
		{Key: "empty", Value: ""},
		{Key: "reserved:host", Value: ""},
	}
	if diff := cmp.Diff(want, labels); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, bad := range []any{"text", map[string]any{"k8s:a": int64(1)}, []any{}} {
		if _, err := identityLabels(&unstructured.Unstructured{Object: map[string]any{"security-labels": bad}}); err == nil {
			t.Errorf("%v was read", bad)
		}
	}
}

// TestLabelsOutliveTheView checks that labels that were listed once stay known while the member is unreachable, and that others are reported as missing.
func TestLabelsOutliveTheView(t *testing.T) {
	server := &paged{}
	w := NewWatch(server, "identities", logr.Discard(), identityLabels, func(string) {})
	identity := func(name, app string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name},
			"security-labels": map[string]any{"k8s:com.trip/appid": app}}}
	}
	clusters := NewWatch(nil, "clusters", logr.Discard(), ParseCluster, func(string) {})
	for _, name := range []string{"m1", "m2"} {
		_ = clusters.put(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}}}, false)
	}
	m := &member[[]Handle]{cluster: Cluster{Name: "m1"}, watch: w}
	i := &Identities{&fleet[[]Handle]{clusters: clusters, members: map[string]*member[[]Handle]{"m1": m}}}
	check := func(reason string, apps, listed, missing []string) {
		t.Helper()
		labels, l, m := i.Labels()
		want := map[Label]struct{}{}
		for _, a := range apps {
			want[Label{Key: "com.trip/appid", Value: a}] = struct{}{}
		}
		if diff := cmp.Diff(want, labels) + cmp.Diff(listed, l) + cmp.Diff(missing, m); diff != "" {
			t.Errorf("%s: -want +got:\n%s", reason, diff)
		}
	}
	check("nobody was asked", nil, nil, []string{"m1", "m2"})
	server.items = []unstructured.Unstructured{*identity("1", "888"), *identity("2", "889"), *identity("3", "888")}
	takeIn(t, w)
	check("listed", []string{"888", "889"}, []string{"m1"}, []string{"m2"})
	w.forget()
	check("away", []string{"888", "889"}, []string{"m1"}, []string{"m2"})
	_ = w.remove(identity("2", "889"))
	check("one went", []string{"888"}, []string{"m1"}, []string{"m2"})
	_ = w.remove(identity("3", "888"))
	check("another pod has the label", []string{"888"}, []string{"m1"}, []string{"m2"})
}

// BenchmarkIdentities50k is what a member with 50,000 identities of ten labels costs: the list, the reading of all labels
// after a change, and the memory that stays.
func BenchmarkIdentities50k(b *testing.B) {
	list := make([]unstructured.Unstructured, 50_000)
	for i := range list {
		labels := map[string]any{"k8s:com.trip/appid": strconv.Itoa(i % 10_000), "k8s:io.kubernetes.pod.namespace": "ns-" + strconv.Itoa(i%500)}
		for j := range 8 {
			labels["k8s:example.org/label-"+strconv.Itoa(j)] = "value-" + strconv.Itoa(i%(100*(j+1)))
		}
		list[i] = unstructured.Unstructured{
			Object: map[string]any{"metadata": map[string]any{"name": strconv.Itoa(i), "resourceVersion": "1"}, "security-labels": labels},
		}
	}
	clusters := NewWatch(nil, "clusters", logr.Discard(), ParseCluster, func(string) {})
	_ = clusters.put(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "m1"}}}, false)
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := used()
	w := NewWatch(&paged{items: list}, "identities", logr.Discard(), identityLabels, func(string) {})
	takeIn(b, w)
	heap := used() - before
	i := &Identities{&fleet[[]Handle]{clusters: clusters, members: map[string]*member[[]Handle]{"m1": {cluster: Cluster{Name: "m1"}, watch: w}}}}
	for b.Loop() {
		i.Labels()
	}
	b.ReportMetric(float64(heap)/1e6, "MB")
	runtime.KeepAlive(list)
}
