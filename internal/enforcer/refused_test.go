package enforcer

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

func TestRefusalsNameTheirMembers(t *testing.T) {
	no := policy.Refusal{Ref: policy.Ref{Policy: "p", SID: "a"}, Message: message.Verbatim("no Istio")}
	other := policy.Refusal{Ref: policy.Ref{Policy: "p", SID: "b"}, Message: message.Verbatim("a range")}
	named := func(r policy.Refusal, members ...string) policy.Refusal {
		r.Message = message.RefusalInMembers(message.NamesList(members), r.Message)
		return r
	}
	r := &Rendering{Refused: []policy.Refusal{other}, RefusedIn: map[string][]policy.Refusal{"m2": {no, other}, "m3": {no, other}, "m9": {no}}}
	for _, c := range []struct {
		reason  string
		targets []string
		want    []policy.Refusal
	}{
		{"of all members it is said without names", []string{"m1"}, []policy.Refusal{other}},
		{"what some refuse names them, and who is no target is not named", []string{"m1", "m2", "m3"}, []policy.Refusal{named(no, "m2", "m3"), other}},
		{"all targets refuse it", []string{"m2", "m3"}, []policy.Refusal{no, other}},
	} {
		if diff := cmp.Diff(c.want, r.RefusedAmong(c.targets)); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.reason, diff)
		}
	}
}
