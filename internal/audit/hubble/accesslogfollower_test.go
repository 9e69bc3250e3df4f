package hubble

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	flowpb "github.com/cilium/cilium/api/v1/flow"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
)

// lineList is a source of lines that ends only with the context.
type lineList struct {
	lines []string
	// missing means that there is nothing to be read yet; otherwise the newest line was written at the time.
	missing bool
	written time.Time
}

func (s *lineList) Replayable() bool { return true }

func (s *lineList) Follow(ctx context.Context, take func([]byte), _ func(time.Time, error), reading func(time.Time)) error {
	for _, line := range s.lines {
		take([]byte(line))
	}
	if !s.missing {
		reading(s.written)
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestAccessLogBesideHubble checks that a connection that both sources of a member report is counted once: by the access log if Istio
// alone enforces the resource.
func TestAccessLogBesideHubble(t *testing.T) {
	toFraud := func(i int, change ...func(*flowpb.Flow)) *flowpb.Flow {
		return verdict(i, append(change, func(f *flowpb.Flow) {
			f.Destination.Labels = []string{"k8s:com.trip/grpc-service=fraud"}
			f.L4.GetTCP().DestinationPort = 9090
		})...)
	}
	count := func(enforcers ...v1alpha1.EnforcerName) map[audit.Verdict]int64 {
		l := newMemorySink()
		policies := always(meshed(v1alpha1.ModeEnforce, enforcers...))
		cfg := config("unused", l)
		cfg.Policies, cfg.BesideIstio = policies, func() bool { return true }
		cilium := ingesterOf(t, &cfg, audit.Resume{})
		take(cilium, toFraud(1))
		take(cilium, toFraud(2, func(f *flowpb.Flow) { f.Verdict = refused }))
		log := config("unused", l)
		log.Policies, log.Lines, log.AccessLog, log.BesideHubble = policies, &lineList{}, true, true
		istio := ingesterOf(t, &log, audit.Resume{})
		s := scannedLine{line: []byte(accessLine(nil))}
		s.err = scanAccessLine(s.line, &s.event)
		istio.ingestAccessLine(&s)
		istio.ingestAccessLine(&s) // after a restart, for example
		out := map[audit.Verdict]int64{}
		for e, n := range l.edges {
			out[e.Verdict] += n
		}
		return out
	}
	want := map[audit.Verdict]int64{audit.VerdictForwarded: 1, audit.VerdictDropped: 1}
	for _, enforcers := range [][]v1alpha1.EnforcerName{{v1alpha1.EnforcerIstio}, {v1alpha1.EnforcerCilium, v1alpha1.EnforcerIstio}} {
		if diff := cmp.Diff(want, count(enforcers...)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", enforcers, diff)
		}
	}
}

// TestAccessLogFollower checks the follower of an access log: its source has a name of its own beside Hubble, where only the
// follower of Hubble reports the time in which the member was watched, and only while the access log is read.
func TestAccessLogFollower(t *testing.T) {
	l := newMemorySink()
	cfg := config("", l)
	cfg.Policies = always(meshed(v1alpha1.ModeEnforce, v1alpha1.EnforcerIstio))
	cfg.Lines, cfg.AccessLog, cfg.BesideHubble = &lineList{
		lines: []string{"message", accessLine(nil), accessLine(map[string]any{"start_time": "x"})},
	}, true, true
	cfg.ProgressEvery = time.Millisecond
	sources := map[string]bool{}
	cfg.Sink = sourceSink{l, sources}
	f, stop := start(t, cfg)
	l.until(t, "the entry and the loss", func(l *memorySink) bool { return l.total() == 1 && len(l.losses) == 1 })
	stop()
	if diff := cmp.Diff(map[string]bool{"m1/istio": true}, sources); diff != "" || len(l.watched) > 0 || f.State().Member != "m1/istio" {
		t.Errorf("sources (-want +got):\n%swatched %v", diff, l.watched)
	}
	if diff := cmp.Diff([]audit.Loss{{Cluster: "m1", Reason: audit.LossUnreadable, Count: 1}}, l.losses,
		cmpopts.IgnoreFields(audit.Loss{}, "From", "To")); diff != "" {
		t.Errorf("losses (-want +got):\n%s", diff)
	}

	watched := func(reading bool) int {
		l := newMemorySink()
		cfg := config("", l)
		cfg.Lines, cfg.ProgressEvery, cfg.BesideIstio = &lineList{lines: []string{strings.Repeat(" ", 3)}}, time.Millisecond, func() bool { return reading }
		now := t0
		cfg.Now = func() time.Time { now = now.Add(time.Second); return now }
		f, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		in := ingesterOf(t, &cfg, audit.Resume{})
		for range 3 {
			f.progress(in)
		}
		return len(l.watched)
	}
	if with, without := watched(true), watched(false); with != 3 || without != 0 {
		t.Errorf("watched is reported %d times while the access log is read, and %d times while it is not", with, without)
	}
}

// TestSilentAccessLogIsNotWatched checks that a member counts as watched by its access log only while lines are written to it.
func TestSilentAccessLogIsNotWatched(t *testing.T) {
	for name, tc := range map[string]struct {
		lines   *lineList
		beside  bool
		watched bool
		problem string
	}{
		"Missing": {&lineList{missing: true}, false, false, "not connected yet"},
		"Silent":  {&lineList{written: t0.Add(-maxSilence - time.Second)}, false, false, "nothing was written to the access log for 10m0s"},
		"Written": {&lineList{written: t0.Add(-maxSilence + time.Minute)}, false, true, ""},
		"Beside":  {&lineList{written: t0}, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newMemorySink()
			cfg := config("", l)
			cfg.Lines, cfg.AccessLog, cfg.BesideHubble, cfg.ProgressEvery = tc.lines, true, tc.beside, time.Millisecond
			var passed atomic.Int64
			cfg.Now = func() time.Time { return t0.Add(time.Duration(passed.Add(1))) }
			f, stop := start(t, cfg)
			for deadline := time.Now().Add(time.Minute); f.State().Connected != (tc.problem == "") || f.State().Problem != tc.problem; {
				if time.Sleep(time.Millisecond); time.Now().After(deadline) {
					t.Fatalf("state %+v", f.State())
				}
			}
			if tc.watched {
				l.until(t, "the time in which the member was watched", func(l *memorySink) bool { return len(l.watched) > 0 })
			}
			time.Sleep(10 * time.Millisecond)
			stop()
			if watched := len(l.watched) > 0; watched != tc.watched || watched && l.watched[0].Source != "m1" {
				t.Errorf("watched %+v, want %v", l.watched, tc.watched)
			}
			if f.State().Member != "m1/istio" {
				t.Errorf("the source is %q", f.State().Member)
			}
		})
	}
}

// sourceSink records the names of the sources.
type sourceSink struct {
	*memorySink
	sources map[string]bool
}

func (s sourceSink) Add(t *audit.Event) {
	s.sources[t.Source] = true
	s.memorySink.Add(t)
}
