package memberhealth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/federation/preflight"
	"github.com/acp-io/acp/internal/message"
)

func found(code string) []preflight.Finding {
	return []preflight.Finding{{Severity: preflight.Stops, Code: code, Message: message.Verbatim(code)}}
}

func TestDecide(t *testing.T) {
	for _, c := range []struct {
		reason   string
		before   history
		held     bool
		findings []preflight.Finding
		next     history
		do       action
	}{
		{"a healthy member", history{}, false, nil, history{Good: 1}, actionNone},
		{
			"what is not enforced there stops nobody", history{}, false,
			[]preflight.Finding{{Severity: preflight.Fails, Code: preflight.AuditMode}}, history{Good: 1}, actionNone,
		},
		{"a missing kind is certain", history{Good: 9}, false, found(preflight.KindMissing), history{Bad: 1}, actionQuarantine},
		{"so is a forbidden one", history{}, false, found(preflight.KindForbidden), history{Bad: 1}, actionQuarantine},
		{"a list may fail once", history{}, false, found(preflight.KindFails), history{Bad: 1}, actionNone},
		{"and not twice", history{Bad: 1}, false, found(preflight.KindFails), history{Bad: 2}, actionQuarantine},
		{"a held member stays so, whatever stops it now", history{}, true, found(preflight.KindFails), history{Bad: 1}, actionQuarantine},
		{"one good look is not enough to let it back", history{Bad: 7}, true, nil, history{Good: 1}, actionNone},
		{"two are", history{Good: 1}, true, nil, history{Good: 2}, actionResume},
		{"a member that does not answer stops nobody", history{Bad: 1}, false, found(preflight.Unreachable), history{}, actionNone},
		{"and is not let back either", history{Good: 1}, true, found(preflight.Unreachable), history{}, actionNone},
		{"a member that the host has no token of is not let back either", history{Good: 1}, true,
			[]preflight.Finding{{Severity: preflight.Warns, Code: preflight.NotReadByHost}}, history{}, actionNone},
	} {
		t.Run(c.reason, func(t *testing.T) {
			next, do, why := decide(c.before, c.held, c.findings)
			if next != c.next || do != c.do || (do == actionQuarantine) == why.IsZero() {
				t.Errorf("%+v, %q because %q; want %+v, %q", next, do, why, c.next, c.do)
			}
		})
	}
}

// host is where the inspector writes; it returns the configured error.
type host struct {
	mu       sync.Mutex
	clusters []federation.Cluster
	result   preflight.Result
	fails    error
	calls    []string
}

func (h *host) members() []federation.Cluster {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.clusters)
}

// read is what the members answer: m2 what was set, the others that all is well.
func (h *host) read(_ context.Context, c federation.Cluster) preflight.Facts {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := preflight.Listing{Resource: federation.CiliumPolicy.TargetResource, Result: preflight.Listed}
	if c.Name == "m2" {
		l.Result = h.result
	}
	return preflight.Facts{Member: c.Name, Kinds: []preflight.Listing{l}}
}

func (h *host) now(result preflight.Result, fails error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.result, h.fails = result, fails
}

func (h *host) called() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

func (h *host) set(call, cluster string, held bool, why message.Message) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, call+" "+cluster)
	if h.fails != nil {
		return h.fails
	}
	for i := range h.clusters {
		if h.clusters[i].Name == cluster {
			h.clusters[i].Quarantined, h.clusters[i].QuarantineReason = held, why
		}
	}
	return nil
}

func (h *host) Suspend(_ context.Context, cluster string, why message.Message) error {
	if err := h.set("hold", cluster, true, why); err != nil {
		return err
	}
	return h.mark(cluster, nil)
}

func (h *host) SuspendDowngraded(_ context.Context, cluster string, mark guard.DowngradeMark) error {
	if err := h.set("spare", cluster, true, mark.Message()); err != nil {
		return err
	}
	return h.mark(cluster, &mark)
}

func (h *host) mark(cluster string, mark *guard.DowngradeMark) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.clusters {
		if h.clusters[i].Name == cluster {
			h.clusters[i].DowngradeMark = mark
		}
	}
	return nil
}

func (h *host) Resume(_ context.Context, cluster string) error {
	if err := h.set("release", cluster, false, message.Message{}); err != nil {
		return err
	}
	return h.mark(cluster, nil)
}

func kinds() []federation.Kind { return []federation.Kind{federation.CiliumPolicy} }

func keys() []preflight.Key {
	return []preflight.Key{{Class: "redis", Label: "com.trip/redis"}, {Class: "app", Label: "com.trip/appid"}}
}

// configured are the facts of a member whose agents have these settings.
func configured(settings map[string]string) preflight.Facts {
	return preflight.Facts{
		Member: "m1",
		Kinds:  []preflight.Listing{{Resource: federation.CiliumPolicy.TargetResource, Result: preflight.Listed}},
		Cilium: preflight.ParseCilium(settings),
	}
}

// TestInspectorDoesNotWaitForASlowMember checks that the state of a fast member is known before a slow member answers.
func TestInspectorDoesNotWaitForASlowMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &Inspector{
			Clusters:      func() []federation.Cluster { return []federation.Cluster{{Name: "m1"}, {Name: "m2"}} },
			Kinds:         kinds,
			Keys:          keys,
			Registrations: &host{},
			Log:           logr.Discard(),
			Read: func(ctx context.Context, c federation.Cluster) preflight.Facts {
				if c.Name == "m2" {
					<-ctx.Done()
				}
				return configured(nil)
			},
		}
		if err := i.Prepare(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = i.Start(ctx) }()
		synctest.Wait()
		if !i.Unenforced("m1", redisKey).IsZero() || !i.NoHTTP("m1").IsZero() || i.Unenforced("m2", redisKey).IsZero() || !i.Pending() {
			t.Errorf("m1 %q, m2 %q", i.Unenforced("m1", redisKey), i.Unenforced("m2", redisKey))
		}
		cancel()
		synctest.Wait()
	})
}

// TestNewMembersAreReadAtOnce checks that a member is read soon after its registration, also if another trigger came before it: units
// wait for members that were never read.
func TestNewMembersAreReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{}
		i := &Inspector{Clusters: h.members, Kinds: kinds, Keys: keys, Registrations: h, Log: logr.Discard(),
			Read: func(_ context.Context, c federation.Cluster) preflight.Facts {
				f := configured(nil)
				f.Member = c.Name
				return f
			}}
		if err := i.Prepare(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = i.Start(ctx) }()
		synctest.Wait()
		i.Requeue() // of a fleet without members
		time.Sleep(100 * time.Millisecond)
		h.mu.Lock()
		h.clusters = []federation.Cluster{{Name: "m1"}}
		h.mu.Unlock()
		i.Requeue()
		time.Sleep(firstCheckDelay)
		synctest.Wait()
		if i.Pending() {
			t.Error("a new member waits for the delay of an earlier trigger")
		}
		cancel()
		synctest.Wait()
	})
}

// TestSlowMembersDelayNoOther checks that other members are checked at the usual interval while a slow one is being read, which
// is not read twice at the same time, that its result is evaluated afterwards, and that the number of concurrent reads is limited.
func TestSlowMembersDelayNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slowness = 90 * time.Second
		h := &host{clusters: []federation.Cluster{{Name: "m1"}, {Name: "m2"}}}
		for n := range 2 * maxConcurrentChecks {
			h.clusters = append(h.clusters, federation.Cluster{Name: fmt.Sprintf("n%d", n)})
		}
		var mu sync.Mutex
		concurrent, most, reads := 0, 0, map[string]int{}
		audit := false
		i := &Inspector{Clusters: h.members, Kinds: kinds, Keys: keys, Registrations: h, Log: logr.Discard(),
			Read: func(_ context.Context, c federation.Cluster) preflight.Facts {
				mu.Lock()
				concurrent++
				most = max(most, concurrent)
				reads[c.Name]++
				f := configured(nil)
				f.Member = c.Name
				if audit {
					f = configured(map[string]string{"policy-audit-mode": "true"})
				}
				mu.Unlock()
				if c.Name == "m2" {
					time.Sleep(slowness)
					f.Kinds[0].Result = preflight.NotServed
				}
				time.Sleep(100 * time.Millisecond)
				mu.Lock()
				concurrent--
				mu.Unlock()
				return f
			}}
		if err := i.Prepare(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- i.Start(ctx) }()
		defer func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(time.Second)
		if why := i.Unenforced("m1", redisKey); !why.IsZero() || i.Unenforced("m2", redisKey).IsZero() {
			t.Errorf("first check: m1 %q, m2 %q", why, i.Unenforced("m2", redisKey))
		}
		mu.Lock()
		audit = true
		mu.Unlock()
		time.Sleep(DefaultTiming.Interval + maxRoundTime + time.Second)
		mu.Lock()
		if i.Unenforced("m1", redisKey).IsZero() || reads["m2"] != 1 || len(h.called()) > 0 {
			t.Errorf("while m2 is being read: m1 %q, m2 read %d times, %v", i.Unenforced("m1", redisKey), reads["m2"], h.called())
		}
		mu.Unlock()
		time.Sleep(slowness)
		synctest.Wait()
		if d := cmp.Diff([]string{"hold m2"}, h.called()); d != "" {
			t.Error(d)
		}
		mu.Lock()
		defer mu.Unlock()
		if most > maxConcurrentChecks || most < maxConcurrentChecks/2 {
			t.Errorf("%d members were read at the same time, want at most %d", most, maxConcurrentChecks)
		}
	})
}

func TestQuarantineAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{clusters: []federation.Cluster{{Name: "m1"}, {Name: "m2"}}, result: preflight.NotServed}
		i := &Inspector{Clusters: h.members, Read: h.read, Kinds: kinds, Keys: keys, Registrations: h, Log: logr.Discard()}
		if err := i.Prepare(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- i.Start(ctx) }()

		synctest.Wait()
		if d := cmp.Diff([]string{"hold m2"}, h.called()); d != "" {
			t.Fatal(d)
		}
		time.Sleep(10 * DefaultTiming.Interval) // of the bubble
		synctest.Wait()
		if calls := h.called(); len(calls) != 1 {
			t.Errorf("what did not change is written again: %v", calls)
		}
		h.now(preflight.Listed, errors.New("the host is away"))
		time.Sleep(DefaultTiming.Interval + 2*DefaultTiming.RetryInterval)
		synctest.Wait()
		if calls := h.called(); !h.members()[1].Quarantined || len(calls) < 2 {
			t.Fatalf("%v", calls)
		}
		h.now(preflight.Listed, nil)
		time.Sleep(2 * DefaultTiming.RetryInterval)
		synctest.Wait()
		if h.members()[1].Quarantined {
			t.Errorf("it was not let back: %v", h.called())
		}
		h.now(preflight.Forbidden, nil)
		i.Requeue()
		time.Sleep(DefaultTiming.RetryInterval)
		synctest.Wait()
		if members := h.members(); !members[1].Quarantined || members[0].Quarantined {
			t.Errorf("%+v", members)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestDowngradeMark checks that KubeFed is kept away from a member that was opened by hand until the mark is read as removed.
func TestDowngradeMark(t *testing.T) {
	h := &host{clusters: []federation.Cluster{{Name: "m1"}}}
	facts := preflight.Facts{Member: "m1", Kinds: []preflight.Listing{{Resource: federation.CiliumPolicy.TargetResource, Result: preflight.Listed}}}
	i := &Inspector{Clusters: h.members, Kinds: kinds, Keys: keys, Registrations: h, Log: logr.Discard(),
		Read: func(context.Context, federation.Cluster) preflight.Facts { return facts }}
	if err := i.Prepare(); err != nil {
		t.Fatal(err)
	}
	mark := guard.DowngradeMark{By: "alice", Reason: "r"}
	other := guard.DowngradeMark{By: "bob", Reason: "s"}
	for _, c := range []struct {
		reason string
		change func()
		want   []string
	}{
		{"a mark", func() { facts.Mark = &mark }, []string{"spare m1"}},
		{"it is not written again and again", func() {}, nil},
		{"a mark that says something else", func() { facts.Mark = &other }, []string{"spare m1"}},
		{"a member that does not answer says nothing", func() { facts.Mark, facts.Unreachable = nil, "away" }, nil},
		{"nor one whose mark may not be read", func() { facts.Unreachable, facts.MarkUnread = "", message.Verbatim("forbidden") }, nil},
		{"what stops KubeFed for all counts more", func() {
			facts.Mark, facts.MarkUnread, facts.Kinds[0].Result = &mark, message.Message{}, preflight.NotServed
		}, []string{"hold m1"}},
		{"and less when it is fixed", func() { facts.Kinds[0].Result = preflight.Listed }, []string{"spare m1"}},
		{"the mark is gone", func() { facts.Mark = nil }, []string{"release m1"}},
		{"a member without a mark is nobody's business", func() {}, nil},
	} {
		before := len(h.called())
		c.change()
		i.checkAll(t.Context())
		if d := cmp.Diff(c.want, h.called()[before:], cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: %s", c.reason, d)
		}
	}
}

func TestPrepare(t *testing.T) {
	if err := new(Inspector).Prepare(); err == nil {
		t.Error("an inspector of nothing was made")
	}
}
