package core

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestCodecReadsEachSessionAnew checks that values that one request puts into its session are not visible to the next request before they
// are stored.
func TestCodecReadsEachSessionAnew(t *testing.T) {
	x := newCodec()
	end := time.Now().UTC().Truncate(time.Second)
	store := func(values map[string]any) []byte {
		t.Helper()
		data, err := x.Encode(end, values)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	alice := map[string]any{"person": "alice", "groups": []string{"security"}, "touched": int64(1)}
	data := store(alice)
	for range 3 {
		deadline, got, err := x.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(alice, got); d != "" || !deadline.Equal(end) {
			t.Fatalf("the session until %s: (-stored +read)\n%s", deadline, d)
		}
		got["person"] = "bob"
		delete(got, "groups")
	}
	later := map[string]any{"person": "alice", "touched": int64(2)}
	_, got, err := x.Decode(store(later))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(later, got); d != "" {
		t.Errorf("what was stored since: (-stored +read)\n%s", d)
	}
	for range 2 {
		if _, _, err := x.Decode([]byte("no session")); err == nil {
			t.Error("what is no session was read")
		}
	}
}
