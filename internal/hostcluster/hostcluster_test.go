package hostcluster

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/api/v1alpha1"
)

func TestKindsAreThoseOfTheCRDs(t *testing.T) {
	for _, k := range AllKinds() {
		data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "crds", "acp.io_"+k.Plural+".yaml"))
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
			continue
		}
		if !strings.Contains(string(data), "\n    kind: "+k.Name+"\n") {
			t.Errorf("the CRD of %s is not of kind %s", k.Plural, k.Name)
		}
	}
}

func TestUnserved(t *testing.T) {
	all := []string{"AccessControlPolicy", "ProtectedResource", "ResourceClass", "SubjectClass", "ExternalWorkload", "ApprovalPolicy", "Organization"}
	for name, tc := range map[string]struct {
		reason string
		code   int
		body   string
		want   []string
		failed bool
	}{
		"no group": {
			"nothing was applied", http.StatusNotFound,
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`, all, false,
		},
		"empty group": {
			"only what is listed is served", http.StatusOK,
			`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"acp.io/v1alpha1","resources":[]}`, all, false,
		},
		"one is there": {
			"the others are named", http.StatusOK,
			`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"acp.io/v1alpha1","resources":[{"name":"resourceclasses","kind":"ResourceClass"}]}`,
			[]string{"AccessControlPolicy", "ProtectedResource", "SubjectClass", "ExternalWorkload", "ApprovalPolicy", "Organization"}, false,
		},
		"broken": {
			"who cannot be asked lacks nothing", http.StatusInternalServerError,
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`, nil, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.code)
				_, _ = w.Write([]byte(tc.body)) // If the client is gone, the test fails anyway.
			}))
			defer server.Close()
			missing, err := Unserved(t.Context(), &rest.Config{Host: server.URL}, KindsWithApprovals())
			var names []string
			for _, k := range missing {
				names = append(names, k.Name)
			}
			if d := cmp.Diff(tc.want, names); d != "" || (err != nil) != tc.failed {
				t.Errorf("%s: %v (-want +got)\n%s", tc.reason, err, d)
			}
		})
	}
}

func TestAffectsDecisions(t *testing.T) {
	object := func(uid types.UID, generation int64, version string) *v1alpha1.ResourceClass {
		return &v1alpha1.ResourceClass{ObjectMeta: metav1.ObjectMeta{UID: uid, Generation: generation, ResourceVersion: version}}
	}
	for name, tc := range map[string]struct {
		reason        string
		before, after *v1alpha1.ResourceClass
		want          bool
	}{
		"status":  {"a status alters no decision", object("a", 1, "1"), object("a", 1, "2"), false},
		"spec":    {"a spec may", object("a", 1, "1"), object("a", 2, "2"), true},
		"another": {"a new object of the same name begins at generation 1 again", object("a", 1, "1"), object("b", 1, "2"), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := AffectsDecisions(tc.before, tc.after); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
	report := func(d v1alpha1.MemberDataplane) *v1alpha1.MemberCluster {
		return &v1alpha1.MemberCluster{Status: v1alpha1.MemberClusterStatus{State: v1alpha1.MemberClusterReady, Dataplane: &d}}
	}
	if was := report(
		v1alpha1.MemberDataplane{PolicyMapEntries: 512},
	); AffectsDecisions(was, report(v1alpha1.MemberDataplane{PolicyMapEntries: 512})) ||
		!AffectsDecisions(was, report(v1alpha1.MemberDataplane{PolicyMapEntries: 1024})) {
		t.Error("what is reported of a member's dataplane decides what fits, and nothing else of its status does")
	}
}

func TestAffectsDecisionsAboutMembers(t *testing.T) {
	with := func(findings ...v1alpha1.MemberFinding) *v1alpha1.MemberCluster {
		return &v1alpha1.MemberCluster{Status: v1alpha1.MemberClusterStatus{State: v1alpha1.MemberClusterReady, Findings: findings}}
	}
	none := v1alpha1.MemberFinding{Code: v1alpha1.FindingNoHTTP, Message: "no proxy"}
	for name, tc := range map[string]struct {
		reason        string
		before, after *v1alpha1.MemberCluster
		want          bool
	}{
		"other finding": {"most findings alter no decision", with(), with(v1alpha1.MemberFinding{Code: "OldServer"}), false},
		"same":          {"it lacked them before", with(none), with(v1alpha1.MemberFinding{Code: "OldServer"}, none), false},
		"no requests":   {"allows of requests are not enforced there any more", with(), with(none), true},
		"fixed":         {"and then they are again", with(none), with(), true},
		"Istio": {"what its Istio can express", with(), func() *v1alpha1.MemberCluster {
			m := with()
			m.Status.Istio = `{"dataplane": "none"}`
			return m
		}(), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := AffectsDecisions(tc.before, tc.after); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}
