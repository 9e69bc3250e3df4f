package workloads_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/catalog/workloads"
)

func fleet(n int) []workloads.Workload {
	out := make([]workloads.Workload, n)
	for i := range out {
		out[i] = vm(fmt.Sprintf("vm-%d", i), app1, fmt.Sprintf("10.%d.%d.%d", 5+i/65000, i/250%250, i%250+1))
	}
	return out
}

func (w *world) sync(in []workloads.Workload) workloads.Sync {
	w.t.Helper()
	w.did()
	s, err := w.PreviewSync(w.t.Context(), platform, "vms", in)
	if err != nil || s.Applied || w.did() != "" {
		w.t.Fatalf("a preview changes nothing: %+v, %v", s, err)
	}
	s, err = w.ApplySync(w.t.Context(), platform, "vms", in, s.Token, false)
	if err != nil || !s.Applied {
		w.t.Fatalf("%+v, %v", s, err)
	}
	return s
}

func counts(s workloads.Sync) string {
	return fmt.Sprintf("added %d changed %d removed %d unchanged %d refused %d", s.Added, s.Changed, s.Removed, s.Unchanged, len(s.Refused))
}

func TestSync(t *testing.T) {
	w := newWorld(t)
	w.put(platform, "other", vm("x", app2, "10.99.0.1"))
	w.did()
	all := fleet(30)
	if got := counts(w.sync(all)); got != "added 30 changed 0 removed 0 unchanged 0 refused 0" {
		t.Fatal(got)
	}
	w.did()
	if got := counts(w.sync(all)); got != "added 0 changed 0 removed 0 unchanged 30 refused 0" || w.did() != "" {
		t.Error(got)
	}
	next := append(fleet(28), vm("new", app2, "10.7.0.1"))
	next[0].Subject = app2
	if got := counts(w.sync(next)); got != "added 1 changed 1 removed 2 unchanged 27 refused 0" {
		t.Error(got)
	}
	if d := cmp.Diff("put vms.new, put vms.vm-0, delete vms.vm-28, delete vms.vm-29", w.did()); d != "" {
		t.Errorf("what is new first, what goes last; other sources stay: -want +got\n%s", d)
	}
}

func TestSyncHasToBeConfirmed(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.sync(fleet(30))
	w.did()
	s, err := w.PreviewSync(ctx, platform, "vms", fleet(10))
	if err != nil || !s.Unconfirmed || s.Removed != 20 || len(s.Sample) != 20 {
		t.Fatalf("%+v, %v", s, err)
	}
	if _, err := w.ApplySync(ctx, platform, "vms", fleet(10), s.Token, false); !errors.Is(err, workloads.ErrUnconfirmed) || w.did() != "" {
		t.Errorf("much goes only when somebody says so: %v", err)
	}
	for what, in := range map[string][]workloads.Workload{"fewer": fleet(9), "other": append(fleet(9), vm("z", app1, "10.8.0.1"))} {
		if _, err := w.ApplySync(ctx, platform, "vms", in, s.Token, true); !errors.Is(err, workloads.ErrChanged) {
			t.Errorf("%s workloads than the preview's: %v", what, err)
		}
	}
	w.put(platform, "vms", vm("late", app1, "10.8.0.2"))
	if _, err := w.ApplySync(ctx, platform, "vms", fleet(10), s.Token, true); !errors.Is(err, workloads.ErrChanged) {
		t.Errorf("one more would go than the preview showed: %v", err)
	}
	if s, err = w.PreviewSync(ctx, platform, "vms", fleet(10)); err != nil {
		t.Fatal(err)
	}
	if s, err = w.ApplySync(ctx, platform, "vms", fleet(10), s.Token, true); err != nil || s.Removed != 21 {
		t.Errorf("confirmed: %+v, %v", s, err)
	}
}

func TestSyncRefusesSingleOnes(t *testing.T) {
	w := newWorld(t)
	w.put(platform, "other", vm("x", app2, "10.99.0.1"))
	w.sync(fleet(4))
	w.did()
	in := fleet(4)
	in[0].Subject = "nonsense"                     // stays unchanged
	in[1].Addresses = []string{"10.99.0.1"}        // is registered by another source
	in = append(in, vm("twin", app2, "10.5.0.3"))  // vm-2 has it
	in = append(in, vm("vm-3", app1, "10.77.0.1")) // occurs twice
	in = append(in, vm("fine", app2, "10.77.0.2"))
	s := w.sync(in)
	if got := counts(s); got != "added 1 changed 0 removed 0 unchanged 2 refused 4" {
		t.Errorf("%s: %+v", got, s.Refused)
	}
	if got := w.did(); got != "put vms.fine" {
		t.Errorf("what is refused stays as it is: %s", got)
	}
	for i, want := range []string{"registered for " + app1, "must begin with", "registered for " + app2, "there twice"} {
		if got := s.Refused[i].Message.Text; !strings.Contains(got, want) {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}

// TestSyncMovesAddresses checks that an address can move from one machine to another in one sync.
func TestSyncMovesAddresses(t *testing.T) {
	w := newWorld(t)
	w.sync([]workloads.Workload{vm("a", app1, "10.5.0.1"), vm("b", app2, "10.5.0.2")})
	if got := counts(
		w.sync([]workloads.Workload{vm("a", app1, "10.5.0.2"), vm("b", app2, "10.5.0.1")}),
	); got != "added 0 changed 2 removed 0 unchanged 0 refused 0" {
		t.Error(got)
	}
	if got := counts(
		w.sync([]workloads.Workload{vm("c", app2, "10.5.0.2"), vm("b", app2, "10.5.0.1")}),
	); got != "added 1 changed 0 removed 1 unchanged 1 refused 0" {
		t.Error(got)
	}
}

func FuzzWorkload(f *testing.F) {
	f.Add("vm-1", app1, "10.5.0.7")
	f.Add("a.b", "trnv1:rsc:trip-com:iam:sa:app/*", "2001:db8::/64")
	f.Add("", "*", "::ffff:1.2.3.4/120")
	f.Fuzz(func(t *testing.T, id, subject, address string) {
		w := newWorld(t)
		in := vm(id, subject, address)
		got := w.put(platform, "vms", in)
		switch got[0].Outcome {
		case workloads.Created:
			if again := outcomes(w.put(platform, "vms", in)); again != "unchanged" {
				t.Errorf("%+v: again: %s", in, again)
			}
			s, err := w.PreviewSync(t.Context(), platform, "vms", []workloads.Workload{in})
			if err != nil || s.Unchanged != 1 {
				t.Errorf("%+v: %+v, %v", in, s, err)
			}
		case workloads.Refused:
			if got[0].Message.IsZero() {
				t.Errorf("%+v is refused without a message", in)
			}
		default:
			t.Errorf("%+v: %+v", in, got)
		}
	})
}

// BenchmarkPlan measures a full sync of 40,000 workloads without the writes.
func BenchmarkPlan(b *testing.B) {
	w := newWorld(b)
	all := fleet(40_000)
	for start := 0; start < len(all); start += workloads.MaxPut {
		if _, err := w.Registrar.Put(b.Context(), platform, "vms", all[start:start+workloads.MaxPut]); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if s, err := w.PreviewSync(b.Context(), platform, "vms", all); err != nil || s.Unchanged != len(all) {
			b.Fatal(s, err)
		}
	}
}
