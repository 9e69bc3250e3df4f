package ocm

import (
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
)

// oneMember is a registry with the member m1.
type oneMember struct{}

func (oneMember) Registry() (bool, error) { return true, nil }

func (oneMember) Clusters() []federation.Cluster {
	return []federation.Cluster{{Name: "m1", Engine: federation.EngineOCM}}
}

func (m oneMember) Cluster(name string) (federation.Cluster, bool) {
	return m.Clusters()[0], name == "m1"
}

// scene is a host whose time the test controls, and which has the ManifestWorks that the test puts into the cache.
type scene struct {
	*testing.T
	works   *Works
	host    *fake.FakeDynamicClient
	now     *clocktesting.FakeClock
	changes []place
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, now: clocktesting.NewFakeClock(time.Unix(1_000_000, 0))}
	s.restart()
	return s
}

// restart replaces the Works as a new process does. The ManifestWorks stay on the host.
func (s *scene) restart() {
	s.Helper()
	var kept []any
	if s.works != nil {
		kept = s.works.watches["m1"].informer.GetIndexer().List()
	}
	s.host = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{WorkResource: "ManifestWorkList"})
	works, err := NewWorks(WorksConfig{Host: s.host, Members: oneMember{}, Log: logr.Discard(), Clock: s.now,
		Heartbeats: Heartbeats{Interval: 10 * time.Second, Timeout: 30 * time.Second},
		Changed:    func(cluster, key string) { s.changes = append(s.changes, place{cluster, key}) }})
	if err != nil {
		s.Fatal(err)
	}
	s.works = works
	if works.watches["m1"], err = works.newWatch("m1"); err != nil {
		s.Fatal(err)
	}
	works.watches["m1"].listed = func() bool { return true }
	for _, in := range kept {
		s.put(in.(cached).work)
	}
}

// put makes the host have a ManifestWork.
func (s *scene) put(w *work) {
	s.Helper()
	if err := s.works.watches["m1"].informer.GetIndexer().Update(cached{w}); err != nil {
		s.Fatal(err)
	}
	s.works.onWork(w)
}

// asked sends the heartbeat that is due, and returns it as the host has it then, or nil.
func (s *scene) asked() *work {
	s.Helper()
	nonce, _ := s.works.nextHeartbeat("m1", s.works.get("m1", heartbeatName))
	if nonce == "" {
		return nil
	}
	d := heartbeatRequest("m1", s.now.Now(), s.works.unansweredSince("m1"))
	w := parseWork(d.unstructured(nonce))
	s.put(w)
	return w
}

// answers makes the agent answer a heartbeat.
func (s *scene) answers(w *work) {
	s.Helper()
	next := *w
	next.applied, next.report = true, &report{nonce: w.nonce, exact: true}
	s.put(&next)
}

func (s *scene) isAlive(want bool) {
	s.Helper()
	if alive, _ := s.works.alive("m1"); alive != want {
		s.Errorf("the agent counts as alive: %v, want %v", alive, want)
	}
}

// TestAnAgentThatDoesNotAnswerIsLost checks that only an answer to the last question counts.
func TestAnAgentThatDoesNotAnswerIsLost(t *testing.T) {
	s := newScene(t)
	first := s.asked()
	s.isAlive(false)
	if s.asked() != nil {
		t.Error("a question is repeated while it may still be answered")
	}
	half := *first
	half.report = &report{nonce: first.nonce}
	s.put(&half)
	s.isAlive(false) // The agent reported, but did not handle the question.
	s.answers(first)
	s.isAlive(true)
	if want := (place{"m1", ""}); len(s.changes) != 1 || s.changes[0] != want {
		t.Errorf("the changes %v were reported, want %v", s.changes, want)
	}
	s.now.Step(10 * time.Second)
	second := s.asked()
	s.answers(first)
	s.now.Step(31 * time.Second)
	third := s.asked()
	s.isAlive(false)
	s.answers(second)
	s.isAlive(false)
	s.answers(third)
	s.isAlive(true)
}

// TestAnEpochEndsWhenTheAgentIsLost checks that a report from before the agent was away does not count, and that a short pause of the
// adapter ends no epoch.
func TestAnEpochEndsWhenTheAgentIsLost(t *testing.T) {
	s := newScene(t)
	s.answers(s.asked())
	d := desiredOf(t, recorded(), purposeApply)
	w := parseWork(d.unstructured(s.works.nonce("m1")))
	isCurrent := func(what string, want bool) {
		t.Helper()
		if got := s.works.isOfPresentEpoch(w); got != want {
			t.Errorf("%s: the report counts: %v, want %v", what, got, want)
		}
	}
	isCurrent("the agent answers", true)
	s.now.Step(10 * time.Second)
	s.answers(s.asked())
	isCurrent("the agent answered again", true)

	s.now.Step(20 * time.Second)
	s.restart()
	isCurrent("another adapter, which has no answer yet", false)
	s.answers(s.asked())
	isCurrent("another adapter soon after", true)

	s.now.Step(45 * time.Second)
	s.restart()
	s.answers(s.asked())
	isCurrent("another adapter after a long time", false)

	w = parseWork(d.unstructured(s.works.nonce("m1")))
	s.now.Step(10 * time.Second)
	s.asked()
	s.now.Step(31 * time.Second)
	lost := s.asked()
	s.isAlive(false)
	s.restart() // The adapter is replaced while the agent is away.
	s.put(lost)
	s.answers(s.asked())
	isCurrent("the agent was away", false)
}

// TestObservationIsAboutThePresentVersion checks what counts as the content of an object in a member.
func TestObservationIsAboutThePresentVersion(t *testing.T) {
	now := func(s *scene) string { return s.works.nonce("m1") }
	done := func(w *work, version string) *work {
		next := *w
		next.applied, next.available = true, available
		next.report = &report{nonce: w.nonce, exact: true, uid: "u", version: version, revision: w.revision, managedBy: v1alpha1.ManagedBy}
		return &next
	}
	for _, c := range []struct {
		reason string
		// host returns the ManifestWork after the object with revision r1 was reported by w.
		host            func(s *scene, w *work) *work
		unknown, absent bool
		revision, label string
	}{
		{reason: "the agent reported the content", host: func(_ *scene, w *work) *work { return w }, revision: "r1", label: "r1"},
		{reason: "another version waits", revision: "r1", label: "r1", host: func(s *scene, w *work) *work {
			next := *w
			next.nonce, next.applied, next.revision = now(s), false, "r2"
			return &next
		}},
		{reason: "the same revision again, while another one may be in flight", host: func(s *scene, w *work) *work {
			next := *w
			next.nonce, next.applied = now(s), false
			return &next
		}},
		{reason: "the agent reported on the new version before it had handled it", host: func(s *scene, w *work) *work {
			next := *w
			next.nonce = now(s)
			next.report = &report{nonce: next.nonce, exact: true, uid: "u", version: "7", revision: "r1"}
			next.applied = false
			return &next
		}},
		{reason: "the object was changed in the member", label: "r1", host: func(_ *scene, w *work) *work {
			next := *w
			next.report = &report{nonce: w.nonce, uid: "u", version: "8", revision: "r1"}
			return &next
		}},
		{reason: "the object was deleted in the member", absent: true, host: func(_ *scene, w *work) *work {
			next := *w
			next.available = unavailable
			return &next
		}},
		{reason: "the report is from before the agent was away", unknown: true, host: func(s *scene, w *work) *work {
			s.now.Step(10 * time.Second)
			s.asked()
			s.now.Step(31 * time.Second)
			s.answers(s.asked())
			return w
		}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := newScene(t)
			s.answers(s.asked())
			o := recorded()
			d := desiredOf(t, o, purposeApply)
			w := done(parseWork(d.unstructured(now(s))), "7")
			s.put(w)
			s.put(c.host(s, w))
			got := s.works.observe("m1", o.Key())
			switch {
			case got.Unknown != c.unknown || got.Reachable == c.unknown:
				t.Errorf("got %+v", got)
			case c.unknown:
			case (got.Object == nil) != c.absent:
				t.Errorf("the object is %+v", got.Object)
			case !c.absent && (got.Object.Revision != c.revision || got.Object.Label != c.label):
				t.Errorf("the object is %+v, want revision %q and label %q", got.Object, c.revision, c.label)
			}
		})
	}
}

// TestAttemptsWaitLonger checks the delays between two attempts.
func TestAttemptsWaitLonger(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var a attempts
	for n, want := range []time.Duration{0, firstBackoff, 2 * firstBackoff, 4 * firstBackoff} {
		if got := a.wait(now); got != want {
			t.Errorf("after %d attempts: got %s, want %s", n, got, want)
		}
		a = a.next(now)
	}
	if got := a.wait(now.Add(time.Hour)); got > 0 {
		t.Errorf("got %s after an hour", got)
	}
}

// TestHeartbeatStaysDueWhenItCannotBeWritten checks that a failed write of a heartbeat is repeated before the agent counts as lost.
func TestHeartbeatStaysDueWhenItCannotBeWritten(t *testing.T) {
	s := newScene(t)
	refused := true
	s.host.PrependReactor("create", "manifestworks", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refused, nil, errors.New("the host does not answer")
	})
	s.works.sendHeartbeats(t.Context())
	refused = false
	s.works.sendHeartbeats(t.Context())
	if found, err := s.host.Resource(WorkResource).Namespace("m1").Get(t.Context(), heartbeatName, metav1.GetOptions{}); err != nil {
		t.Errorf("it was not written again: %v, %v", found, err)
	}
}

// TestChangeBackIsNotHandledBeforeTheAgentHandlesIt checks that a content that the agent handled before does not count as handled again while it
// may still write another one in between, and that a version that only asks again changes nothing.
func TestChangeBackIsNotHandledBeforeTheAgentHandlesIt(t *testing.T) {
	s := newScene(t)
	s.answers(s.asked())
	version := func(app string, generation int64, handled bool) *work {
		o := recorded()
		o.TemplateSpec = map[string]any{"app": app}
		d := desiredOf(t, o, purposeApply)
		w := parseWork(d.unstructured(s.works.nonce("m1")))
		w.generation, w.applied = generation, handled
		return w
	}
	is := func(what string, w *work, want bool) {
		t.Helper()
		s.put(w)
		if got := s.works.hasHandled(w); got != want {
			t.Errorf("%s: handled is %v, want %v", what, got, want)
		}
	}
	is("the first version is written", version("a", 1, false), false)
	is("the agent has handled it", version("a", 1, true), true)
	is("the agent is asked again", version("a", 2, false), true)
	is("another content", version("b", 3, false), false)
	is("the first content again", version("a", 4, false), false)
	is("the agent has handled that", version("a", 4, true), true)
	first := version("a", 5, false)
	s.works.discardHandled(place{"m1", first.key}, version("b", 5, false).body) // the event of this write was not seen
	is("the first content after one that was not seen", first, false)
}

// TestHeartbeatOnTheHost checks what a heartbeat says to a program that did not write it, and that an old one says nothing.
func TestHeartbeatOnTheHost(t *testing.T) {
	s := newScene(t)
	client := s.host.Resource(WorkResource).Namespace("m1")
	read := func(after time.Duration) (answered, silent bool, err error) {
		t.Helper()
		now := s.now.Now().Add(after)
		h, err := ReadHeartbeat(t.Context(), s.host, "m1", now)
		if err == nil {
			silent, _ = h.Silent(now)
		}
		return h.Answered, silent, err
	}
	if _, _, err := read(0); !errors.Is(err, ErrNotAsked) {
		t.Errorf("without a heartbeat: %v", err)
	}
	s.works.sendHeartbeats(t.Context())
	for _, c := range []struct {
		reason string
		after  time.Duration
		silent bool
		err    error
	}{
		{"it was asked just now", 0, false, nil},
		{"it does not answer", 31 * time.Second, true, nil},
		{"the adapter does not ask any more", 4 * time.Minute, false, ErrNotAsked},
	} {
		if answered, silent, err := read(c.after); answered || silent != c.silent || !errors.Is(err, c.err) {
			t.Errorf("%s: answered %v, silent %v, %v", c.reason, answered, silent, err)
		}
	}
	u, err := client.Get(t.Context(), heartbeatName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	report := u.GetAnnotations()[annotationNonce] + "|true|uid|1||||"
	u.Object["status"] = map[string]any{
		"conditions": []any{map[string]any{"type": "Applied", "status": "True", "observedGeneration": u.GetGeneration()}},
		"resourceStatus": map[string]any{"manifests": []any{map[string]any{"conditions": []any{
			map[string]any{"type": "Available", "status": "True"}, map[string]any{"type": conditionReport, "status": "True", "message": report}}}}},
	}
	if _, err := client.Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if answered, silent, err := read(time.Minute); !answered || silent || err != nil {
		t.Errorf("an answered one: answered %v, silent %v, %v", answered, silent, err)
	}
	if _, _, err := read(4 * time.Minute); !errors.Is(err, ErrNotAsked) {
		t.Errorf("an answered one of an adapter that does not ask any more: %v", err)
	}
}
