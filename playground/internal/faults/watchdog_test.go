package faults

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/playground/internal/demo"
)

// One client, one server, and what the dataplane says of them.
func onePair(t *testing.T) (scene, *world) {
	t.Helper()
	s := newScene([]demo.Workload{
		{Name: "client", Namespace: "a", Labels: map[string]string{appKey: "888"}, Clusters: []string{"m1"}, Replicas: 1},
		{Name: "server", Namespace: "b", Labels: map[string]string{queueKey: "jobs"}, Clusters: []string{"m1"}, Replicas: 1},
	})
	s.sources = s.sources[:1] // none from outside
	w, err := newWorld(nil)
	if err != nil {
		t.Fatal(err)
	}
	w.set(queueClass())
	w.subjects["app"] = &v1alpha1.SubjectClass{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: v1alpha1.SubjectClassSpec{Pattern: appStem + "*", LabelKey: appKey}}
	return s, w
}

func closed(w *world) *world {
	next := w.clone()
	next.set(&v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "jobs"},
		Spec: v1alpha1.ProtectedResourceSpec{Resource: queueStem + "jobs", Mode: v1alpha1.ModeEnforce}})
	return next
}

func granted(w *world, notAfter *metav1.Time) *world {
	next := w.clone()
	next.set(&v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{{
		SID: "s", Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{appStem + "888"}, Actions: []v1alpha1.Action{"queue:publish"},
		Resources: []v1alpha1.ResourceName{queueStem + "jobs"}, NotAfter: notAfter}}}})
	return next
}

func TestWatchdog(t *testing.T) {
	now := time.Now()
	soon := metav1.NewTime(now.Add(time.Minute))
	for name, c := range map[string]struct {
		reason string
		// worlds that were wanted, one after the other.
		worlds   func(open *world) []*world
		outcome  string
		forgiven bool
		want     string
	}{
		"OpenStaysOpen": {"nothing is onboarded, and all pass", func(w *world) []*world { return []*world{w} }, "no-policy", false, ""},
		"ClosedPasses":  {"nobody was granted it", func(w *world) []*world { return []*world{closed(w)} }, "allowed", false, "which nothing allowed"},
		"OpenIsLost":    {"nobody closed it", func(w *world) []*world { return []*world{w} }, "default-denied", false, "which everything allowed"},
		"Between": {"closed before and after, and open in between", func(w *world) []*world { return []*world{closed(w), closed(w)} },
			"no-policy", false, "which nothing allowed"},
		"Revoked": {"what was granted may still pass until the revocation was seen", func(w *world) []*world {
			return []*world{granted(closed(w), nil), closed(w)}
		}, "allowed", false, ""},
		"Granted": {"what will be granted may already be lost, or pass", func(w *world) []*world {
			return []*world{closed(w), granted(closed(w), nil)}
		}, "default-denied", false, ""},
		"Expires": {"what will expire may be gone", func(w *world) []*world { return []*world{granted(closed(w), &soon)} }, "default-denied", false, ""},
		"Hand":    {"a hand in the member opened it", func(w *world) []*world { return []*world{closed(w)} }, "no-policy", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, open := onePair(t)
			attempts := slices.DeleteFunc(s.connections("m1"), func(a attempt) bool { return a.Port != 7070 })
			said := ""
			dog := newWatchdog("m1", answering(t, len(attempts), c.outcome), attempts, func(text string) { said = text })
			for i, w := range c.worlds(open) {
				if m := w.meaning(s.knownLabels()); i == 0 {
					dog.expect(m, now)
				} else {
					dog.expectAlso(m, now)
				}
			}
			if c.forgiven {
				dog.forgive(func(a attempt) bool { return a.To == "b/server-0" })
			}
			dog.look()
			if (c.want == "") != (said == "") || !strings.Contains(said, c.want) {
				t.Errorf("%s: said %q, want %q", c.reason, said, c.want)
			}
		})
	}
}

// answering is a witness that says the same of every connection.
func answering(t *testing.T, n int, outcome string) *witness {
	t.Helper()
	all := make([]string, n)
	for i := range all {
		all[i] = outcome
	}
	line, err := json.Marshal(map[string]any{"outcomes": all})
	if err != nil {
		t.Fatal(err)
	}
	return &witness{in: nowhere{}, out: bufio.NewReader(strings.NewReader(string(line) + "\n")), connections: make([]connection, n)}
}

type nowhere struct{ io.Writer }

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Close() error                { return nil }
