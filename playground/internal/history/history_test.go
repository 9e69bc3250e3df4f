package history

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/audit/sqlite"
	"github.com/acp-io/acp/internal/policy"
)

// end is a Saturday afternoon.
var end = time.Date(2026, 11, 21, 15, 4, 0, 0, time.UTC)

const (
	app   = "trnv1:rsc:trip-com:iam:sa:app/"
	redis = "trnv1:rsc:trip-com:redis:clusters:"
)

func config(t *testing.T) Config {
	t.Helper()
	return Config{
		Store: filepath.Join(t.TempDir(), "flows.db"), Traffic: "../../demo/traffic.yaml", Workloads: "../../demo/workloads.yaml",
		Objects: "../../demo/objects", Days: 14, To: end,
	}
}

func generated(t *testing.T) []audit.Rollup {
	t.Helper()
	w, err := read(config(t))
	if err != nil {
		t.Fatal(err)
	}
	var out []audit.Rollup
	if err := w.generate(end.AddDate(0, 0, -14), end, func(r []audit.Rollup) error { out = append(out, r...); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDemoHasSomethingForEveryFeature checks that the generated past contains data for each feature of the portal.
func TestDemoHasSomethingForEveryFeature(t *testing.T) {
	type pair struct{ subject, resource string }
	days := map[pair]map[string]bool{}
	words := map[pair]map[policy.Verdict]bool{}
	sources := map[string]map[string]bool{}
	for _, r := range generated(t) {
		p := pair{strings.TrimPrefix(r.Subject, app), strings.TrimPrefix(r.Resource, redis)}
		if days[p] == nil {
			days[p], words[p] = map[string]bool{}, map[policy.Verdict]bool{}
		}
		days[p][r.Bucket.Format(time.DateOnly)] = true
		words[p][r.Decision] = true
		if r.Subject == "" {
			if sources[p.resource] == nil {
				sources[p.resource] = map[string]bool{}
			}
			sources[p.resource][r.Source] = true
		}
	}
	for name, tc := range map[string]struct {
		reason   string
		pair     pair
		min, max int
		words    []policy.Verdict
	}{
		"Regular":   {"a regular client is seen every day", pair{"888", "deals-cache"}, 14, 15, []policy.Verdict{policy.Audited}},
		"Allowed":   {"the first policy knows one client", pair{"101", "deals-cache"}, 14, 15, []policy.Verdict{policy.Allowed}},
		"Weekly":    {"a weekly job runs twice in two weeks", pair{"503", "deals-cache"}, 2, 2, []policy.Verdict{policy.Audited}},
		"Rare":      {"a rare tool runs less often than weekly, or little more", pair{"602", "deals-cache"}, 1, 4, []policy.Verdict{policy.Audited}},
		"Newcomer":  {"a new client came two days ago", pair{"206", "orders-cache"}, 2, 3, []policy.Verdict{policy.Audited}},
		"LongLived": {"a pool is opened once a day", pair{"204", "orders-cache"}, 13, 15, []policy.Verdict{policy.Audited}},
		"Machine":   {"a registered machine has its application's name", pair{"676", "bobs-cluster"}, 14, 15, []policy.Verdict{policy.DefaultDenied}},
		"Refused":   {"an enforced resource refuses who has no statement", pair{"889", "bobs-cluster"}, 14, 15, []policy.Verdict{policy.DefaultDenied}},
		"Wildcard":  {"the white list lets the operations tool in", pair{"858", "bobs-cluster"}, 14, 15, []policy.Verdict{policy.Allowed}},
		"Unmanaged": {
			"what is not onboarded is seen, too", pair{"777", "trnv1:rsc:trip-com:mysql:clusters:orders-db"},
			14, 15, []policy.Verdict{policy.Unmanaged},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if n := len(days[tc.pair]); n < tc.min || n > tc.max {
				t.Errorf("%s: seen on %d days, want %d to %d", tc.reason, n, tc.min, tc.max)
			}
			for _, w := range tc.words {
				if !words[tc.pair][w] || len(words[tc.pair]) != len(tc.words) {
					t.Errorf("%s: decided %v, want %v", tc.reason, words[tc.pair], tc.words)
				}
			}
		})
	}
	if diff := cmp.Diff(map[string]bool{"172.20.8.0/24": true, "namespace=tools,app.kubernetes.io/name=scanner": true}, sources["orders-cache"]); diff != "" {
		t.Errorf("whom nobody knows at orders-cache (-want +got):\n%s", diff)
	}
	if len(sources["deals-cache"]) > 0 {
		t.Errorf("deals-cache is ready to be closed, so everybody there is known: %v", sources["deals-cache"])
	}
	if len(days[pair{"106", "orders-cache"}]) > 0 {
		t.Error("the unused statement of the demo is used")
	}
}

func TestRollupsAreSound(t *testing.T) {
	from := end.AddDate(0, 0, -14)
	for _, r := range generated(t) {
		if !r.Bucket.Equal(r.Bucket.Truncate(audit.BucketWidth)) || r.FirstSeen.Before(r.Bucket) || r.LastSeen.Before(r.FirstSeen) ||
			!r.LastSeen.Before(r.Bucket.Add(audit.BucketWidth)) || r.Count < 1 || r.Bucket.Before(from) || !r.Bucket.Before(end) {
			t.Fatalf("not a minute of the past: %+v", r)
		}
		refused := r.Decision == policy.Denied || r.Decision == policy.DefaultDenied
		if refused != (r.Verdict == audit.VerdictDropped) {
			t.Fatalf("the dataplane of the demo does what the policies say: %+v", r)
		}
	}
}

// The resource that a newcomer closes first can be closed; the other one says why not.
func TestEvidenceOfTheDemo(t *testing.T) {
	c := config(t)
	if _, err := Seed(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w, err := read(c)
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(t.Context(), c.Store)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	scores, err := insight.EvidenceOf(
		t.Context(),
		store,
		insight.EvidenceInput{Snapshot: w.policies, Now: end, Fleet: insight.Fleet{Everywhere: []string{"m1", "m2"}}},
		[]string{redis + "deals-cache", redis + "orders-cache", "trnv1:rsc:trip-com:mysql:clusters:orders-db"},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range []string{redis + "deals-cache", "trnv1:rsc:trip-com:mysql:clusters:orders-db"} {
		if s := scores[resource]; !s.Enough || s.Value < 95 {
			t.Errorf("%s is ready: %+v", resource, s)
		}
	}
	if s := scores[redis+"deals-cache"]; s.Clients != 6 || s.Uncovered != 5 || s.Unattributed != 0 {
		t.Errorf("what a proposal adds: %+v", s)
	}
	missing := map[insight.PartName]bool{}
	if scores[redis+"orders-cache"].Enough {
		t.Errorf("orders-cache is not to be closed without a word: %+v", scores[redis+"orders-cache"])
	}
	for _, p := range scores[redis+"orders-cache"].Parts {
		missing[p.Name] = !p.Missing.IsZero()
	}
	want := map[insight.PartName]bool{insight.PartObserved: false, insight.PartWeekly: false, insight.PartLoss: true, insight.PartNewcomers: true,
		insight.PartUnattributed: true, insight.PartLongLived: true}
	if diff := cmp.Diff(want, missing); diff != "" {
		t.Errorf("what orders-cache lacks (-want +got):\n%s", diff)
	}
}

func TestSameEndSamePast(t *testing.T) {
	if diff := cmp.Diff(generated(t), generated(t)); diff != "" {
		t.Errorf("two runs differ:\n%s", diff)
	}
}

func TestSeed(t *testing.T) {
	c := config(t)
	c.Days = 2
	made, err := Seed(t.Context(), c)
	if err != nil || !made.Made || made.Rollups == 0 {
		t.Fatalf("%+v, %v", made, err)
	}
	again, err := Seed(t.Context(), c)
	if err != nil || again.Made {
		t.Errorf("a store that is there stays as it is: %+v, %v", again, err)
	}
	left, err := os.ReadDir(filepath.Dir(c.Store))
	if err != nil || len(left) != 1 {
		t.Errorf("only the store is left: %v, %v", left, err)
	}
	store, err := sqlite.Open(t.Context(), c.Store)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	coverage, err := store.Coverage(t.Context(), end.AddDate(0, 0, -2), end)
	if err != nil || len(coverage) != 2*3 || coverage[1].Cluster != "m1" || coverage[1].Watched != 24*time.Hour {
		t.Errorf("both members were watched on each day: %+v, %v", coverage, err)
	}
	denied, err := store.Denied(t.Context(), audit.DeniedQuery{By: audit.BySubject, Since: end.AddDate(0, 0, -3)})
	if err != nil || denied[app+"889"] == 0 {
		t.Errorf("the store answers with the past: %v, %v", denied, err)
	}
}

func TestSeedRefuses(t *testing.T) {
	write := func(content string) string {
		path := filepath.Join(t.TempDir(), "file.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	line := func(change string) string {
		return write("connections: [{name: a, source: {selector: a=b}, destination: {selector: a=b}, port: 1, " + change + "}]")
	}
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"NoTraffic":    {func(c *Config) { c.Traffic = filepath.Join(t.TempDir(), "none") }, "read the traffic file"},
		"UnknownField": {func(c *Config) { c.Traffic = line("every: 1s") }, "every"},
		"Interval":     {func(c *Config) { c.Traffic = line("interval: soon") }, "interval must be"},
		"Schedule":     {func(c *Config) { c.Traffic = line("schedule: sundays") }, "schedule"},
		"Since":        {func(c *Config) { c.Traffic = line("interval: 1s, since: -1h") }, "since must be"},
		"NoWorkloads":  {func(c *Config) { c.Workloads = filepath.Join(t.TempDir(), "none") }, "workloads"},
		"NoFolder":     {func(c *Config) { c.Store = filepath.Join(t.TempDir(), "none", "flows.db") }, "make a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t)
			tc.change(&c)
			if _, err := Seed(t.Context(), c); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
			if _, err := os.Stat(c.Store); err == nil {
				t.Error("half a past was left behind")
			}
		})
	}
}
