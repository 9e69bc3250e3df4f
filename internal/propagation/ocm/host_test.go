package ocm

import (
	"errors"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/acp-io/acp/internal/testenv"
)

// TestHost checks against a real API server with OCM's definition of ManifestWorks what the engine relies on: the host stores the spec as it
// was sent, without defaults and without losing a field, because a ManifestWork with another content is written again; and a write that
// arrives late changes nothing.
func TestHost(t *testing.T) {
	server := testenv.Start(t, testenv.Options{CRDs: []string{"internal/propagation/ocm/testdata/host"}})
	host, err := dynamic.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	core, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	if _, err := core.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	works, err := NewWorks(WorksConfig{Host: host, Members: oneMember{}, Log: logr.Discard(), Changed: func(string, string) {}})
	if err != nil {
		t.Fatal(err)
	}
	read := func(t *testing.T, name string) *work {
		t.Helper()
		u, err := works.client("m1").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return parseWork(u)
	}
	for _, as := range []purpose{purposeApply, purposeHold, purposeAdopt, purposeRead, purposeHeartbeat} {
		t.Run("stores "+string(as)+" as sent", func(t *testing.T) {
			o := recorded()
			o.Meta.Name += "-" + string(as)
			// As the host decodes a record: whole numbers are int64.
			o.TemplateSpec = map[string]any{"text": "a\"b'\\\n\u2028<&>é😀", "int": int64(5), "fraction": 1.5, "large": int64(9007199254740993),
				"yes": true, "none": nil, "empty": []any{}, "emptyMap": map[string]any{}, "metadata": map[string]any{"name": "x"},
				"mixed": []any{int64(1), "a", map[string]any{"b": []any{}}}, "status": map[string]any{}}
			d := desiredOf(t, o, as)
			switch as {
			case purposeRead:
				d = readRequest(o, "m1", "")
			case purposeHeartbeat:
				d = heartbeatRequest("m1", works.config.Clock.Now(), works.config.Clock.Now())
			}
			if err := works.write(t.Context(), &d, "n1"); err != nil {
				t.Fatal(err)
			}
			w := read(t, d.name)
			if !d.matches(w) || w.nonce != "n1" {
				t.Errorf("the host has another content: %+v", w)
			}
			if as == purposeRead {
				return // it is never replaced
			}
			if err := works.write(t.Context(), &d, "n2"); err != nil {
				t.Fatal(err)
			}
			if w = read(t, d.name); !d.matches(w) || w.nonce != "n2" {
				t.Errorf("the host has another content after a replacement: %+v", w)
			}
			if err := works.suspend(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			if w = read(t, d.name); !w.readOnly || w.purpose != purposeHold || w.nonce == "n2" {
				t.Errorf("it is not suspended: %+v", w)
			}
		})
	}
	t.Run("refuses what arrives late", func(t *testing.T) {
		o := recorded()
		o.Meta.Name += "-late"
		d := desiredOf(t, o, purposeApply)
		if err := works.write(t.Context(), &d, "n1"); err != nil {
			t.Fatal(err)
		}
		early := read(t, d.name)
		if err := works.write(t.Context(), &d, "n2"); err != nil {
			t.Fatal(err)
		}
		if err := works.suspend(t.Context(), early); !errors.Is(err, errSuperseded) {
			t.Errorf("an early suspension that arrives late: %v", err)
		}
		if err := works.remove(t.Context(), early); !errors.Is(err, errSuperseded) {
			t.Errorf("an early deletion that arrives late: %v", err)
		}
		if w := read(t, d.name); w.nonce != "n2" || w.deleting || w.readOnly {
			t.Errorf("it was changed: %+v", w)
		}
		if err := works.remove(t.Context(), read(t, d.name)); err != nil {
			t.Errorf("a deletion in time: %v", err)
		}
		if err := works.suspend(t.Context(), early); err == nil {
			t.Error("a suspension after the deletion succeeds")
		}
	})
}
