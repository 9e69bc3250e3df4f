package workloads_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/ledger"
)

const (
	app1 = "trnv1:rsc:trip-com:iam:sa:app/1"
	app2 = "trnv1:rsc:trip-com:iam:sa:app/2"
)

var (
	platform = workloads.Actor{ID: "token:vm", Machine: true}
	alice    = workloads.Actor{ID: "alice"}
	dave     = workloads.Actor{ID: "dave", Security: true}
)

// world is a registrar on a cluster that is a map.
type world struct {
	*workloads.Registrar
	t       testing.TB
	state   *workloads.State
	writes  []string
	failing map[string]bool
	lines   []ledger.Entry
	record  error
}

func (w *world) Put(_ context.Context, in []workloads.Workload) []error {
	errs := make([]error, len(in))
	for i, x := range in {
		if w.failing[x.ID] {
			errs[i] = errors.New("away")
			continue
		}
		w.writes = append(w.writes, "put "+x.Name())
		w.state.Set(workloads.Registered{Workload: x, Object: x.Name(), Managed: true, Version: fmt.Sprint(len(w.writes))})
	}
	return errs
}

func (w *world) Delete(_ context.Context, in []workloads.Registered) []error {
	for _, x := range in {
		w.writes = append(w.writes, "delete "+x.Object)
		w.state.Delete(x.Object)
	}
	return make([]error, len(in))
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, state: workloads.NewState(), failing: map[string]bool{}}
	w.state.SetReady()
	c := catalog.Build([]catalog.Record{
		{Kind: catalog.KindPerson, ID: "alice"}, {Kind: catalog.KindPerson, ID: "bob"},
		{Kind: catalog.KindApplication, ID: "app-1", Name: app1, Owners: []catalog.Owner{{Kind: catalog.OwnerPerson, ID: "alice"}}},
		{Kind: catalog.KindApplication, ID: "app-2", Name: app2, Owners: []catalog.Owner{{Kind: catalog.OwnerPerson, ID: "bob"}}},
		{Kind: catalog.KindResource, ID: "db", Name: "trnv1:rsc:trip-com:mysql:clusters:db", Owners: []catalog.Owner{{Kind: catalog.OwnerPerson, ID: "alice"}}},
	})
	w.Registrar = workloads.New(
		workloads.Config{Cluster: w, State: w.state, Catalog: func() *catalog.Catalog { return c }, Now: func() time.Time { return time.Unix(1, 0) },
			Covered: func(s string) (bool, error) { return strings.HasPrefix(s, "trnv1:rsc:trip-com:iam:sa:app/"), nil },
			Record: func(_ context.Context, e ...ledger.Entry) error {
				if w.record == nil {
					w.lines = append(w.lines, e...)
				}
				return w.record
			}},
	)
	return w
}

func vm(id, subject string, addresses ...string) workloads.Workload {
	return workloads.Workload{ID: id, Subject: subject, Addresses: addresses}
}

func (w *world) put(a workloads.Actor, source string, in ...workloads.Workload) []workloads.Result {
	w.t.Helper()
	out, err := w.Registrar.Put(w.t.Context(), a, source, in)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func outcomes(in []workloads.Result) string {
	var out []string
	for _, r := range in {
		out = append(out, string(r.Outcome))
	}
	return strings.Join(out, " ")
}

func (w *world) did() string {
	out := strings.Join(w.writes, ", ")
	w.writes = nil
	return out
}

func TestPutIsIdempotent(t *testing.T) {
	w := newWorld(t)
	if got := outcomes(
		w.put(platform, "vms", vm("a", app1, "10.5.0.7", "10.5.0.7/32", "10.5.0.0/28"), vm("b", app1, "2001:db8::1")),
	); got != "created created" {
		t.Fatal(got)
	}
	if got := w.did(); got != "put vms.a, put vms.b" {
		t.Error(got)
	}
	want := []ledger.Entry{{At: time.Unix(1, 0), Actor: "token:vm", Action: "workloads.registered", Object: "vms",
		Details: map[string]string{"a": app1 + " 10.5.0.0/28 10.5.0.7", "b": app1 + " 2001:db8::1"}}}
	if d := cmp.Diff(want, w.lines); d != "" {
		t.Errorf("the ledger has it: -want +got\n%s", d)
	}
	if got := outcomes(
		w.put(platform, "vms", vm("a", app1, "10.5.0.0/28", "10.5.0.7"), vm("b", app2, "2001:db8::1")),
	); got != "unchanged changed" || w.did() != "put vms.b" {
		t.Errorf("the same in another order is the same: %s", got)
	}
	w.failing["c"] = true
	if got := w.put(
		platform, "vms", vm("c", app1, "10.5.1.1"), vm("d", app1, "10.5.1.2"),
	); outcomes(got) != "refused created" || got[0].Message.Text != "away" {
		t.Errorf("one that fails does not hold up the others: %v", got)
	}
}

func TestPutRefuses(t *testing.T) {
	held := vm("held", app2, "10.9.0.1", "10.9.1.0/28")
	for name, tc := range map[string]struct {
		reason string
		actor  workloads.Actor
		w      workloads.Workload
		want   string
	}{
		"id":              {"it names an object", platform, vm("A b", app1, "10.5.0.7"), "the id must be a DNS name"},
		"dots":            {"an object could not be named so", platform, vm("a..b", app1, "10.5.0.7"), "the id must be a DNS name"},
		"long":            {"nor so", platform, vm(strings.Repeat("a", 300), app1, "10.5.0.7"), "the id must be a DNS name"},
		"wildcard":        {"one machine is one application", platform, vm("a", "trnv1:rsc:trip-com:iam:sa:app/*", "10.5.0.7"), "one exact name"},
		"no name":         {"nonsense", platform, vm("a", "app-1", "10.5.0.7"), "must begin with"},
		"prefix subject":  {"a range is no application", platform, vm("a", "trnv1:rsc:trip-com:net:cidr:10.0.0.0/8", "10.5.0.7"), "one exact name"},
		"no class":        {"it would have no identity", platform, vm("a", "trnv1:rsc:trip-com:redis:clusters:x", "10.5.0.7"), "no class of subjects"},
		"no address":      {"nothing to register", platform, vm("a", app1), "1 to 64 addresses"},
		"many addresses":  {"that is no machine", platform, vm("a", app1, strings.Split(strings.Repeat("10.5.0.7,", 65), ",")...), "1 to 64 addresses"},
		"host bits":       {"one machine or 256", platform, vm("a", app1, "10.5.0.7/24"), "host bits"},
		"everybody":       {"half of the world is no machine", platform, vm("a", app1, "0.0.0.0/1"), "wider than /24"},
		"wide IPv6":       {"nor is this", platform, vm("a", app1, "2001:db8::/48"), "wider than /64"},
		"loopback":        {"every node has it", platform, vm("a", app1, "127.0.0.1"), "no address that a machine connects from"},
		"link-local":      {"every network has it", platform, vm("a", app1, "169.254.169.254"), "no address that a machine connects from"},
		"mapped":          {"one way to write it", platform, vm("a", app1, "::ffff:10.5.0.7"), "write IPv4 as"},
		"zone":            {"it means something on one machine only", platform, vm("a", app1, "fe80::1%eth0"), "zone"},
		"no address text": {"nonsense", platform, vm("a", app1, "vm-17"), "is no address"},
		"line break": {
			"it would break the log", platform,
			workloads.Workload{ID: "a", Subject: app1, Addresses: []string{"10.5.0.7"}, Description: "a\nb"}, "one line",
		},
		"taken":         {"none of the two could connect", platform, vm("a", app1, "10.9.0.1"), "is registered for " + app2},
		"not the owner": {"alice does not own it", alice, vm("a", app2, "10.5.0.7"), "you do not own"},
		"owner of a db": {"a resource is no client", alice, vm("a", "trnv1:rsc:trip-com:mysql:clusters:db", "10.5.0.7"), "you do not own"},
		"unknown app":   {"nobody owns it", alice, vm("a", "trnv1:rsc:trip-com:iam:sa:app/9", "10.5.0.7"), "you do not own"},
		"within":        {"the longer prefix would take it from them", alice, vm("a", app1, "10.9.1.3"), "10.9.1.3/32 is registered for another application"},
		"around":        {"theirs would be a hole in it", alice, vm("a", app1, "10.9.0.0/24"), "10.9.0.0/24 is registered for another application"},
		"security":      {"who administrates speaks for no application", dave, vm("a", app1, "10.5.0.7"), "you do not own"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put(platform, "vms", held)
			w.writes = nil
			source := "vms"
			if !tc.actor.Machine {
				source = ""
			}
			got := w.put(tc.actor, source, tc.w)
			if got[0].Outcome != workloads.Refused || !strings.Contains(got[0].Message.Text, tc.want) || w.did() != "" {
				t.Errorf("%s: want %q, got %+v", tc.reason, tc.want, got)
			}
		})
	}
}

func TestCallsAreRefused(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	one := []workloads.Workload{vm("a", app1, "10.5.0.7")}
	for name, tc := range map[string]struct {
		reason string
		call   func() error
		want   error
	}{
		"people's source": {
			"a platform is no person", func() error { _, err := w.Registrar.Put(ctx, platform, workloads.Portal, one); return err },
			workloads.ErrForbidden,
		},
		"platform's source": {
			"a person is no platform",
			func() error { _, err := w.Registrar.Put(ctx, alice, "vms", one); return err }, workloads.ErrForbidden,
		},
		"source": {"it is a label", func() error { _, err := w.Registrar.Put(ctx, platform, "a.b", one); return err }, workloads.ErrInvalid},
		"nobody": {
			"an actor has a name", func() error { _, err := w.Registrar.Put(ctx, workloads.Actor{Machine: true}, "vms", one); return err },
			workloads.ErrForbidden,
		},
		"none": {"nothing to do", func() error { _, err := w.Registrar.Put(ctx, platform, "vms", nil); return err }, workloads.ErrInvalid},
		"many": {"a full sync is for that", func() error {
			_, err := w.Registrar.Put(ctx, platform, "vms", make([]workloads.Workload, 1001))
			return err
		}, workloads.ErrInvalid},
		"sync by a person": {
			"owners register for their applications only",
			func() error { _, err := w.PreviewSync(ctx, alice, "", one); return err }, workloads.ErrForbidden,
		},
		"huge sync": {"bounded", func() error {
			_, err := w.PreviewSync(ctx, platform, "vms", make([]workloads.Workload, 50_001))
			return err
		}, workloads.ErrInvalid},
		"list by nobody": {
			"an actor has a name", func() error { _, _, err := w.List(workloads.Actor{}, workloads.Query{Limit: 1}); return err },
			workloads.ErrForbidden,
		},
	} {
		if err := tc.call(); !errors.Is(err, tc.want) {
			t.Errorf("%s: %s: want %v, got %v", name, tc.reason, tc.want, err)
		}
	}
	w.record = errors.New("full")
	if _, err := w.Registrar.Put(ctx, platform, "vms", one); !errors.Is(err, w.record) || w.did() != "" {
		t.Errorf("what the ledger does not have is not done: %v", err)
	}
	w.record = nil
	unseen := newWorld(t)
	unseen.State = workloads.NewState()
	if _, err := unseen.Registrar.Put(ctx, platform, "vms", one); !errors.Is(err, workloads.ErrUnknown) {
		t.Errorf("before the host cluster was seen nothing is known: %v", err)
	}
}

func TestPeople(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	if got := outcomes(w.put(alice, "", vm("laptop", app1, "10.5.0.7"))); got != "created" || w.did() != "put portal.laptop" {
		t.Fatal(got)
	}
	bob := workloads.Actor{ID: "bob"}
	if got := w.put(bob, "", vm("laptop", app2, "10.5.0.7")); outcomes(got) != "refused" || !strings.Contains(got[0].Message.Text, "which you do not own") {
		t.Errorf("nobody takes another one's workload over: %+v", got)
	}
	w.put(platform, "vms", vm("a", app2, "10.5.0.9"))
	see := func(a workloads.Actor) string {
		out, _, err := w.List(a, workloads.Query{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range out {
			names = append(names, r.Object)
		}
		return strings.Join(names, " ")
	}
	for who, want := range map[workloads.Actor]string{
		alice: "portal.laptop", bob: "vms.a", dave: "portal.laptop vms.a",
		{ID: "grace", Auditor: true}: "portal.laptop vms.a", {ID: "zoe"}: "",
	} {
		if got := see(who); got != want {
			t.Errorf("%s sees %q, want %q", who.ID, got, want)
		}
	}
	if got, err := w.Remove(ctx, bob, "", []string{"laptop"}); err != nil || outcomes(got) != "refused" {
		t.Errorf("another owner's: %+v, %v", got, err)
	}
	if _, err := w.Remove(ctx, bob, "vms", []string{"a"}); !errors.Is(err, workloads.ErrForbidden) {
		t.Errorf("what a platform registers it removes itself: %v", err)
	}
	w.did()
	if got, err := w.Remove(ctx, dave, "vms", []string{"a", "none"}); err != nil || outcomes(got) != "removed unchanged" || w.did() != "delete vms.a" {
		t.Errorf("the security team may take identity away: %+v, %v", got, err)
	}
	if got, err := w.Remove(ctx, alice, "", []string{"laptop"}); err != nil || outcomes(got) != "removed" {
		t.Errorf("hers: %+v, %v", got, err)
	}
}

func TestObjectsOfOthersAreLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.state.Set(
		workloads.Registered{
			Object:   "vms.a",
			Workload: workloads.Workload{ID: "vms.a", Subject: app2, Addresses: []string{"10.0.0.0/8", "nonsense", "10.5.0.7"}},
		},
	)
	if got := w.put(platform, "vms", vm("a", app2, "10.6.0.1")); !strings.Contains(got[0].Message.Text, "was not registered here") {
		t.Errorf("an administrator's object: %+v", got)
	}
	if got := w.put(platform, "vms", vm("b", app1, "10.5.0.7")); !strings.Contains(got[0].Message.Text, "is registered for "+app2) {
		t.Errorf("and its addresses: %+v", got)
	}
	if got, err := w.Remove(t.Context(), platform, "vms", []string{"a"}); err != nil || outcomes(got) != "refused" {
		t.Errorf("it is not removed: %+v, %v", got, err)
	}
	s, err := w.PreviewSync(t.Context(), platform, "vms", nil)
	if err != nil || s.Removed != 0 {
		t.Errorf("nor by a sync: %+v, %v", s, err)
	}
}

func TestPages(t *testing.T) {
	w := newWorld(t)
	for i := range 7 {
		w.put(platform, "vms", vm(fmt.Sprintf("vm-%d", i), app1, fmt.Sprintf("10.5.0.%d", i+1)))
	}
	var got []string
	for q := (workloads.Query{Source: "vms", Subject: app1, Text: "VM", Limit: 3}); ; {
		out, next, err := w.List(platform, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range out {
			got = append(got, r.ID)
		}
		if q.Cursor = next; next == "" {
			break
		}
	}
	if d := cmp.Diff([]string{"vm-0", "vm-1", "vm-2", "vm-3", "vm-4", "vm-5", "vm-6"}, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if out, _, err := w.List(platform, workloads.Query{Text: "10.5.0.4", Limit: 3}); err != nil || len(out) != 1 {
		t.Errorf("by address: %+v, %v", out, err)
	}
}
