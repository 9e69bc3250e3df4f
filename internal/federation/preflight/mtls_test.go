package preflight

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/internal/message"
)

// peerAuthentication returns a PeerAuthentication with a spec.
func peerAuthentication(namespace, name string, spec map[string]any) unstructured.Unstructured {
	return unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": spec}}
}

// created returns the policy as if it was created some seconds after the epoch.
func created(u unstructured.Unstructured, seconds int64) unstructured.Unstructured {
	out := u.DeepCopy()
	out.SetCreationTimestamp(metav1.Unix(seconds, 0))
	return *out
}

func mode(m string) map[string]any { return map[string]any{"mtls": map[string]any{"mode": m}} }

// TestMTLS checks which PeerAuthentications require mutual TLS of every client.
func TestMTLS(t *testing.T) {
	const root = "istio-system"
	strict := peerAuthentication(root, "default", mode("STRICT"))
	selected := mode("STRICT")
	selected["selector"] = map[string]any{"matchLabels": map[string]any{"app": "x"}}
	allPorts, ports := mode("STRICT"), mode("STRICT")
	allPorts["portLevelMtls"] = map[string]any{"8080": map[string]any{"mode": "DISABLE"}}
	ports["portLevelMtls"], ports["selector"] = allPorts["portLevelMtls"], selected["selector"]
	revised := peerAuthentication(root, "default", mode("STRICT"))
	revised.SetLabels(map[string]string{"istio.io/rev": "canary"})
	for name, tc := range map[string]struct {
		reason     string
		policies   []unstructured.Unstructured
		strict     bool
		exceptions []string
	}{
		"None":      {reason: "Istio accepts both without a policy"},
		"Strict":    {reason: "the whole mesh", policies: []unstructured.Unstructured{strict}, strict: true},
		"Namespace": {reason: "only one namespace", policies: []unstructured.Unstructured{peerAuthentication("shop", "default", mode("STRICT"))}},
		"Selected":  {reason: "only some pods", policies: []unstructured.Unstructured{peerAuthentication(root, "x", selected)}},
		"Permissive": {
			reason:     "the whole mesh accepts plain text",
			policies:   []unstructured.Unstructured{peerAuthentication(root, "default", mode("PERMISSIVE"))},
			exceptions: []string{root + "/default"},
		},
		"Exception": {
			reason:   "a namespace accepts plain text",
			policies: []unstructured.Unstructured{strict, peerAuthentication("shop", "legacy", mode("PERMISSIVE"))},
			strict:   true, exceptions: []string{"shop/legacy"},
		},
		"Port": {
			reason:   "a port does",
			policies: []unstructured.Unstructured{strict, peerAuthentication("shop", "p", ports)},
			strict:   true, exceptions: []string{"shop/p"},
		},
		"PortOfAll": {
			reason:   "modes of ports count only with a selector",
			policies: []unstructured.Unstructured{strict, peerAuthentication("shop", "p", allPorts)}, strict: true,
		},
		"OlderUnset": {
			reason:   "the oldest counts, and without a mode it is permissive",
			policies: []unstructured.Unstructured{created(strict, 2), created(peerAuthentication(root, "a", mode("UNSET")), 1)},
		},
		"YoungerUnset": {
			reason:   "the younger one does not count",
			policies: []unstructured.Unstructured{created(strict, 1), created(peerAuthentication(root, "a", mode("UNSET")), 2)}, strict: true,
		},
		"SameSecond": {
			reason:   "sidecars and ztunnel may use different ones",
			policies: []unstructured.Unstructured{created(strict, 1), created(peerAuthentication(root, "z", mode("UNSET")), 1)},
		},
		"BothStrict": {
			reason:   "it does not matter which one counts",
			policies: []unstructured.Unstructured{created(strict, 1), created(peerAuthentication(root, "z", mode("STRICT")), 1)}, strict: true,
		},
		"OtherRevision": {reason: "it may be for another istiod", policies: []unstructured.Unstructured{revised}},
		"Inherit": {
			reason:   "it inherits STRICT",
			policies: []unstructured.Unstructured{strict, peerAuthentication("shop", "u", mode("UNSET"))},
			strict:   true,
		},
		"Unknown": {
			reason:   "a mode that this version does not know",
			policies: []unstructured.Unstructured{strict, peerAuthentication("shop", "n", mode("NEW"))},
			strict:   true, exceptions: []string{"shop/n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := mtlsOf(tc.policies, root)
			if got.Strict != tc.strict || !slices.Equal(got.Exceptions, tc.exceptions) {
				t.Errorf("%s: %+v", tc.reason, got)
			}
			i := Istio{Declared: `{"dataplane": "sidecar", "version": "1.31.2", "strictMTLS": true}`, MTLS: got}
			if why := i.PlainText(); why.IsZero() != (tc.strict && len(tc.exceptions) == 0) {
				t.Errorf("%s: %q", tc.reason, why.Text)
			}
			if i.Declared = `{"dataplane": "sidecar", "version": "1.31.2"}`; !i.PlainText().IsZero() {
				t.Errorf("%s: the member does not declare strictMTLS: %q", tc.reason, i.PlainText().Text)
			}
		})
	}
}

// TestPlainTextFinding checks that a wrong declaration fails the preflight if a class relies on it, and that unknown is not sound.
func TestPlainTextFinding(t *testing.T) {
	f, n := healthy(), needs
	f.Istio = Istio{Declared: `{"dataplane": "sidecar", "version": "1.31.2", "strictMTLS": true}`}
	if found := Assess(f, n); len(found) != 0 {
		t.Errorf("no class of Istio's: %+v", found)
	}
	n.Keys = []Key{{Class: "redis", Label: needs.Keys[0].Label, Istio: true}}
	if found := Assess(f, n); len(found) != 1 || found[0].Code != PlainTextAccepted || Passes(found) {
		t.Errorf("%+v", found)
	}
	f.Istio.MTLS = MTLS{Strict: true}
	if found := Assess(f, n); len(found) != 0 {
		t.Errorf("mutual TLS is required: %+v", found)
	}
	f.Istio.MTLS = MTLS{Unread: message.Verbatim("forbidden")}
	if found := Assess(f, n); len(found) != 1 || !strings.Contains(found[0].Message.Text, "unknown: forbidden") {
		t.Errorf("unknown is taken for sound: %+v", found)
	}
}
