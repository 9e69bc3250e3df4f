package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/sqlite"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/testenv/golden"
)

// flowsOf writes two weeks of one resource's flows into a store.
func flowsOf(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "flows.db")
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	edge := audit.Edge{
		Cluster:       "m1",
		SourceCluster: "m2",
		Resource:      "trnv1:rsc:trip-com:redis:clusters:bobs-cluster",
		Action:        "redis:connect",
		Port:          6379,
		Protocol:      "TCP",
		Decision:      policy.Audited,
		Verdict:       audit.VerdictForwarded,
	}
	b := &audit.Batch{
		ID: "1",
		Watched: []audit.WatchedSpan{
			{Source: "m1", From: goldenTime.AddDate(0, 0, -14), To: goldenTime},
			{Source: "m2", From: goldenTime.AddDate(0, 0, -11), To: goldenTime},
		},
	}
	add := func(count int64, days []int, change func(*audit.Edge)) {
		e := edge
		change(&e)
		for _, d := range days {
			at := goldenTime.AddDate(0, 0, -d).Add(-time.Hour)
			b.Rollups = append(b.Rollups, audit.Rollup{Bucket: at, Edge: e, Count: count, FirstSeen: at.Add(time.Second), LastSeen: at.Add(30 * time.Second)})
		}
	}
	daily := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}
	const app = "trnv1:rsc:trip-com:iam:sa:app/"
	add(100, daily, func(e *audit.Edge) {
		e.Subject, e.Decision, e.Statement = app+"100", policy.Allowed, policy.Ref{Policy: "bobs", SID: "known"}
	})
	add(7, []int{0, 7, 13}, func(e *audit.Edge) { e.Subject = app + "weekly" })
	add(1, []int{3}, func(e *audit.Edge) { e.Subject = app + "admin" })
	add(2, []int{1}, func(e *audit.Edge) { e.Source, e.SourceCluster = "203.0.113.0/24", "" })
	add(9, daily, func(e *audit.Edge) { e.Subject, e.Port, e.Action = app+"metrics", 9121, "" })
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// A case is as in TestGolden; STORE in it is the address of the store.
func TestFlowsGolden(t *testing.T) {
	store := "sqlite:" + flowsOf(t)
	t.Setenv(envServer, "")
	commands, err := filepath.Glob("testdata/flowstore/cases/*.cmd")
	if err != nil || len(commands) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range commands {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".cmd"), func(t *testing.T) {
			t.Chdir(filepath.Dir(path))
			base := strings.TrimSuffix(filepath.Base(path), ".cmd")
			line, err := os.ReadFile(base + ".cmd")
			if err != nil {
				t.Fatal(err)
			}
			code, out, errs := run(t, "", strings.Fields(strings.ReplaceAll(string(line), "STORE", store))...)
			got := fmt.Sprintf("exit %d\n-- out --\n%s-- err --\n%s", code, out, errs)
			golden.Compare(t, base+".want", got)
		})
	}
}
