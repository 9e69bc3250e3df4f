package guard

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestMarkIsReadAsItWasWritten(t *testing.T) {
	d := DowngradeMark{Since: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC), By: "alice", Reason: "the control plane is gone"}
	if diff := cmp.Diff(d, ParseDowngradeMark(d.Object())); diff != "" {
		t.Error(diff)
	}
	if got := d.String(); got != "downgraded since 2026-11-21T08:00:00Z by alice (the control plane is gone)" {
		t.Error(got)
	}
}

func FuzzParseMark(f *testing.F) {
	f.Add("2026-11-21T08:00:00Z", "alice", "reason")
	f.Add("yesterday", "a\nb", strings.Repeat("long ", 100))
	f.Fuzz(func(t *testing.T, since, by, reason string) {
		d := ParseDowngradeMark(&unstructured.Unstructured{Object: map[string]any{"data": map[string]any{keySince: since, keyBy: by, keyReason: reason}}})
		if strings.ContainsAny(d.String(), "\n\r\x00") || utf8.RuneCountInString(d.By) > maxText || utf8.RuneCountInString(d.Reason) > maxText {
			t.Errorf("%q", d.String())
		}
	})
}
