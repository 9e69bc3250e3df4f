package federation

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/api/v1alpha1"
)

func sameMemory(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }

// TestStringTable checks that equal strings share their memory while they are in use, and that the table does not grow without bound.
func TestStringTable(t *testing.T) {
	table := &stringTable{limit: 4}
	if got := table.share(""); got != "" {
		t.Errorf("the empty string became %q", got)
	}
	first := table.share(strings.Clone("m1"))
	for i := range 20 {
		if name := fmt.Sprint("other-", i); table.share(name) != name {
			t.Errorf("%q became another string", name)
		}
		if got := table.share(strings.Clone("m1")); got != "m1" || !sameMemory(got, first) {
			t.Errorf("after %d other strings, the one that is in use has another copy", i+1)
		}
	}
	if n := len(table.recent) + len(table.former); n > 2*table.limit {
		t.Errorf("the table has %d strings, with a limit of %d", n, table.limit)
	}
	if kept := table.share("whole"[:2]); kept != "wh" || sameMemory(kept, "whole") {
		t.Error("a part of a string keeps the whole")
	}
}

// TestMembersShareStrings checks that what was read in two members has one copy of the names and revisions in memory.
func TestMembersShareStrings(t *testing.T) {
	read := func() (string, Observed) {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
		u.SetName(strings.Clone("acp-orders"))
		u.SetLabels(map[string]string{v1alpha1.LabelRevision: strings.Clone("abc")})
		w := NewWatch[Observed](nil, "policies", logr.Discard(), nil, nil)
		o, err := Revision(func(map[string]any) string { return strings.Clone("abc") }).parse(u)
		if err != nil {
			t.Fatal(err)
		}
		return w.key(u), o
	}
	key, one := read()
	again, other := read()
	if key != "acp-orders" || one.Name != key || one.Revision != "abc" || one.Label != "abc" {
		t.Fatalf("%q, %+v", key, one)
	}
	for name, pair := range map[string][2]string{
		"key": {key, again}, "name": {one.Name, other.Name}, "label": {one.Label, other.Label}, "revision": {one.Revision, other.Revision},
		"revision and label": {one.Revision, one.Label}, "name and key": {one.Name, key},
	} {
		if !sameMemory(pair[0], pair[1]) {
			t.Errorf("%s: there are two copies", name)
		}
	}
}
