package nodereport

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var instant = time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)

func TestOf(t *testing.T) {
	fresh := Report{Node: "n1", Time: instant, Healthy: true, Policies: map[string]Policy{
		"acp-a": {Revision: "r1", Realized: true}, "acp-b": {Revision: "r1"}, "acp-c": {Realized: true},
	}}
	with := func(change func(*Report)) *Report {
		r := fresh
		change(&r)
		return &r
	}
	for name, tc := range map[string]struct {
		report           *Report
		policy, revision string
		at               time.Duration
		want             PolicyState
	}{
		"Realized":           {report: &fresh, policy: "acp-a", revision: "r1", want: Realized},
		"OtherRevision":      {report: &fresh, policy: "acp-a", revision: "r2", want: Lagging},
		"NotEveryEndpoint":   {report: &fresh, policy: "acp-b", revision: "r1", want: Lagging},
		"RulesDoNotSay":      {report: &fresh, policy: "acp-c", revision: "r1", want: Unknown},
		"NoRevisionWanted":   {report: &fresh, policy: "acp-c", revision: "", want: Unknown},
		"NotInTheAgent":      {report: &fresh, policy: "acp-d", revision: "r1", want: Lagging},
		"ListIsFull":         {report: with(func(r *Report) { r.Omitted = 1 }), policy: "acp-d", revision: "r1", want: Unknown},
		"AgentIsNotHealthy":  {report: with(func(r *Report) { r.Healthy = false }), policy: "acp-a", revision: "r1", want: Unknown},
		"NoReport":           {policy: "acp-a", revision: "r1", want: Unknown},
		"AlmostStale":        {report: &fresh, policy: "acp-a", revision: "r1", at: StaleAfter - time.Second, want: Realized},
		"Stale":              {report: &fresh, policy: "acp-a", revision: "r1", at: StaleAfter, want: Unknown},
		"ClockOfNodeIsAhead": {report: &fresh, policy: "acp-a", revision: "r1", at: -maxAhead, want: Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.report.StateOf(tc.policy, tc.revision, instant.Add(tc.at)); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func TestObjectIsParsedBack(t *testing.T) {
	for name, r := range map[string]Report{
		"Full": {Node: "n1", Time: instant, Healthy: true, Omitted: 3, Policies: map[string]Policy{"acp-a": {Revision: "r", Realized: true}, "acp-b": {}}},
		"Bad":  {Node: "n1", Time: instant, Message: "the agent does not answer", Policies: map[string]Policy{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(r.Object())
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(r, got); d != "" {
				t.Error(d)
			}
			if !got.EqualExceptTime(&r) {
				t.Error("the parsed report does not say the same")
			}
		})
	}
}

func TestObjectIsBounded(t *testing.T) {
	r := Report{Node: "n1", Time: instant, Message: strings.Repeat("語", 2*maxMessage), Policies: map[string]Policy{}}
	for i := range MaxPolicies + 5 {
		r.Policies[fmt.Sprintf("acp-%05d", i)] = Policy{Revision: "r"}
	}
	got, err := Parse(r.Object())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Policies) != MaxPolicies || got.Omitted != 5 || len([]rune(got.Message)) != maxMessage {
		t.Errorf("%d policies, %d omitted, a message of %d characters", len(got.Policies), got.Omitted, len([]rune(got.Message)))
	}
}

func FuzzParse(f *testing.F) {
	f.Add("2026-11-24T10:00:00Z", "acp-a", "r1", true, int64(0), true)
	f.Add("", "", "", false, int64(-1), false)
	f.Fuzz(func(t *testing.T, at, name, revision string, realized bool, omitted int64, healthy bool) {
		good := Report{Node: "n1", Time: instant, Policies: map[string]Policy{}}
		u := good.Object()
		u.Object["report"] = map[string]any{"time": at, "healthy": healthy, "omitted": omitted,
			"policies": []any{map[string]any{"name": name, "revision": revision, "realized": realized}}}
		r, err := Parse(u)
		if err != nil {
			return
		}
		if got := r.StateOf(name, revision, r.Time); got == Realized && (!realized || !healthy || revision == "") {
			t.Errorf("%+v counts as realized", r)
		}
	})
}
