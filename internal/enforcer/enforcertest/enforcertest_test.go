package enforcertest

import (
	"errors"
	"testing"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// broken is a good enforcer with one promise to break.
type broken struct {
	change     func(u *policy.Unit, r *enforcer.Rendering)
	renderings *int
}

func (broken) Name() v1alpha1.EnforcerName { return "broken" }

func (b broken) Render(u policy.Unit) (enforcer.Rendering, error) {
	if u.ID == "" {
		return enforcer.Rendering{}, errors.New("no id")
	}
	if u.LabelKey == "" && b.renderings != nil {
		return enforcer.Rendering{}, errors.New("no label")
	}
	o, err := enforcer.Render(enforcer.Object{GroupVersion: "g/v1", Kind: "K", Name: "acp-" + u.ID, Spec: map[string]any{"n": int64(1)}}, u.ID,
		map[string]map[string]any{"m1": {"n": int64(2)}})
	if err != nil {
		return enforcer.Rendering{}, err
	}
	r := enforcer.Rendering{Objects: []enforcer.Rendered{o}}
	if b.renderings != nil {
		*b.renderings++
	}
	if b.change != nil {
		b.change(&u, &r)
	}
	return r, nil
}

func TestProblems(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		good   bool
		change func(n int, u *policy.Unit, r *enforcer.Rendering)
	}{
		"Good": {reason: "nothing is wrong", good: true, change: func(int, *policy.Unit, *enforcer.Rendering) {}},
		"Name": {
			reason: "the read-back finds objects by their prefix",
			change: func(_ int, _ *policy.Unit, r *enforcer.Rendering) { r.Objects[0].Object.Name = "x" },
		},
		"Kind": {reason: "no kind", change: func(_ int, _ *policy.Unit, r *enforcer.Rendering) { r.Objects[0].Object.Kind = "" }},
		"Labels": {
			reason: "the read-back finds objects by their labels",
			change: func(_ int, _ *policy.Unit, r *enforcer.Rendering) { r.Objects[0].Object.Labels = nil },
		},
		"Revision": {
			reason: "every member would look drifted",
			change: func(_ int, _ *policy.Unit, r *enforcer.Rendering) { r.Objects[0].Object.Spec["n"] = int64(3) },
		},
		"Override": {
			reason: "the member would look drifted",
			change: func(_ int, _ *policy.Unit, r *enforcer.Rendering) { r.Objects[0].Overrides["m1"]["n"] = int64(3) },
		},
		"Refusal": {
			reason: "nobody could do anything about it",
			change: func(_ int, _ *policy.Unit, r *enforcer.Rendering) { r.Refused = []policy.Refusal{{}} },
		},
		"RefusedIn": {reason: "nor about this", change: func(_ int, _ *policy.Unit, r *enforcer.Rendering) {
			r.RefusedIn = map[string][]policy.Refusal{"m1": {{}}}
		}},
		"Changes": {reason: "units are shared", change: func(_ int, u *policy.Unit, _ *enforcer.Rendering) { u.From[0].SID = "y" }},
		"Undetermined": {
			reason: "every pass would write",
			change: func(n int, _ *policy.Unit, r *enforcer.Rendering) { r.Unenforced = make([]message.Message, n) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			b := broken{renderings: &n, change: func(u *policy.Unit, r *enforcer.Rendering) { tc.change(n, u, r) }}
			u := policy.Unit{ID: "u", Resource: "r", LabelKey: "k", LabelValue: "v", From: []policy.Ref{{Policy: "p", SID: "x"}}}
			if got := problems(b, u); (len(got) == 0) != tc.good {
				t.Errorf("%s: problems %q", tc.reason, got)
			}
		})
	}
	if got := problems(broken{}, policy.Unit{ID: "u", LabelKey: "k"}); len(got) != 1 {
		t.Errorf("a unit without label was rendered, and the problems are %q", got)
	}
}
