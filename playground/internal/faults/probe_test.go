package faults

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/playground/internal/demo"
	"github.com/acp-io/acp/playground/internal/enforcement"
)

// newPair returns a topology of one client and one server, and a model in which the server is not protected.
func newPair(t *testing.T) (topology, *model) {
	t.Helper()
	s := newTopology([]demo.Workload{
		{Name: "client", Namespace: "a", Labels: map[string]string{appKey: "888"}, Clusters: []string{"m1"}, Replicas: 1},
		{Name: "server", Namespace: "b", Labels: map[string]string{queueKey: "jobs"}, Clusters: []string{"m1"}, Replicas: 1},
	})
	s.sources = s.sources[:1] // no external addresses
	w, err := newModel(nil)
	if err != nil {
		t.Fatal(err)
	}
	w.set(queueClass())
	w.subjects["app"] = &v1alpha1.SubjectClass{
		ObjectMeta: metav1.ObjectMeta{Name: "app"},
		Spec:       v1alpha1.SubjectClassSpec{Pattern: appStem + "*", LabelKey: appKey},
	}
	return s, w
}

// withEnforcement returns a copy of the model in which the server is enforced.
func withEnforcement(w *model) *model {
	next := w.clone()
	next.set(&v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "jobs"},
		Spec: v1alpha1.ProtectedResourceSpec{Resource: queueStem + "jobs", Mode: v1alpha1.ModeEnforce}})
	return next
}

// withGrant returns a copy of the model in which the client is granted access to the server.
func withGrant(w *model, notAfter *metav1.Time) *model {
	next := w.clone()
	next.set(&v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{{
		SID: "s", Effect: v1alpha1.EffectAllow, Subjects: []v1alpha1.Subject{appStem + "888"}, Actions: []v1alpha1.Action{"queue:publish"},
		Resources: []v1alpha1.ResourceName{queueStem + "jobs"}, NotAfter: notAfter}}}})
	return next
}

func TestContinuousProbe(t *testing.T) {
	now := time.Now()
	inOneMinute := metav1.NewTime(now.Add(time.Minute))
	for name, c := range map[string]struct {
		reason string
		// models returns the models that were wanted, one after the other.
		models   func(open *model) []*model
		outcome  string
		excluded bool
		want     string
	}{
		"OpenStaysOpen": {"no resource is protected, and all connections pass", func(w *model) []*model { return []*model{w} }, "no-policy", false, ""},
		"ClosedPasses": {
			"no application has a grant", func(w *model) []*model { return []*model{withEnforcement(w)} },
			"allowed", false, "no wanted policy allowed it",
		},
		"OpenIsLost": {
			"no resource is protected, and connections are refused", func(w *model) []*model { return []*model{w} },
			"default-denied", false, "every wanted policy allowed it",
		},
		"Between": {"enforced before and after, and open in between", func(w *model) []*model { return []*model{withEnforcement(w), withEnforcement(w)} },
			"no-policy", false, "no wanted policy allowed it"},
		"Revoked": {"a revoked connection may pass until the revocation is enforced", func(w *model) []*model {
			return []*model{withGrant(withEnforcement(w), nil), withEnforcement(w)}
		}, "allowed", false, ""},
		"Granted": {"a granted connection may pass or be refused until the grant is enforced", func(w *model) []*model {
			return []*model{withEnforcement(w), withGrant(withEnforcement(w), nil)}
		}, "default-denied", false, ""},
		"Expires": {
			"a grant that expires soon may have expired",
			func(w *model) []*model { return []*model{withGrant(withEnforcement(w), &inOneMinute)} }, "default-denied", false, "",
		},
		"Manual": {"a manual change in the member opened it", func(w *model) []*model { return []*model{withEnforcement(w)} }, "no-policy", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, open := newPair(t)
			attempts := slices.DeleteFunc(s.connections("m1"), func(a attempt) bool { return a.Port != 7070 })
			reported := ""
			probe := newContinuousProbe("m1", fixedReader(t, len(attempts), c.outcome), attempts, func(text string) { reported = text })
			for i, w := range c.models(open) {
				if m := w.evaluator(s.knownLabels()); i == 0 {
					probe.setExpectation(m, now)
				} else {
					probe.widenExpectation(m, now)
				}
			}
			if c.excluded {
				probe.exclude(func(a attempt) bool { return a.To == "b/server-0" })
			}
			probe.probeOnce()
			if (c.want == "") != (reported == "") || !strings.Contains(reported, c.want) {
				t.Errorf("%s: reported %q, want %q", c.reason, reported, c.want)
			}
		})
	}
}

// fixedReader returns an enforcement reader that returns the same outcome for every connection, once.
func fixedReader(t *testing.T, n int, outcome string) *enforcement.Reader {
	t.Helper()
	all := make([]string, n)
	for i := range all {
		all[i] = outcome
	}
	line, err := json.Marshal(map[string]any{"outcomes": all})
	if err != nil {
		t.Fatal(err)
	}
	return enforcement.NewReader(discardCloser{}, strings.NewReader(string(line)+"\n"), make([]enforcement.Connection, n))
}

// discardCloser discards what is written to it.
type discardCloser struct{ io.Writer }

func (discardCloser) Write(p []byte) (int, error) { return len(p), nil }
func (discardCloser) Close() error                { return nil }
