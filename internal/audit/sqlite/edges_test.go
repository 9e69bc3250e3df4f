package sqlite

import (
	"reflect"
	"strconv"
	"testing"

	"github.com/acp-io/acp/internal/audit"
)

// TestEdgeHashCoversEveryField sets one field after the other. Two edges with one hash would be counted as one.
func TestEdgeHashCoversEveryField(t *testing.T) {
	var c edgeCache
	seen := map[edgeHash]string{c.hash(&audit.Edge{}): "nothing"}
	check := func(e *audit.Edge, name string) {
		t.Helper()
		if other, taken := seen[c.hash(e)]; taken {
			t.Errorf("an edge with %s has the hash of one with %s", name, other)
		}
		seen[c.hash(e)] = name
	}
	var set func(e *audit.Edge, v reflect.Value, name string)
	set = func(e *audit.Edge, v reflect.Value, name string) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				set(e, v.Field(i), name+"."+v.Type().Field(i).Name)
			}
			return
		case reflect.String:
			v.SetString("x")
		case reflect.Uint16:
			v.SetUint(1)
			check(e, name+" 1")
			v.SetUint(1 << 8)
		default:
			t.Fatalf("%s has the kind %s: add it to the test", name, v.Kind())
		}
		check(e, name)
		v.SetZero()
	}
	var e audit.Edge
	set(&e, reflect.ValueOf(&e).Elem(), "Edge")
	// A character must not move from one field into the next, nor a length.
	for i, pair := range [][2]audit.Edge{
		{{Resource: "ab", Subject: "c"}, {Resource: "a", Subject: "bc"}},
		{{Resource: "\x01y"}, {Subject: "y"}},
	} {
		for j := range pair {
			check(&pair[j], "pair "+strconv.Itoa(i)+strconv.Itoa(j))
		}
	}
}
