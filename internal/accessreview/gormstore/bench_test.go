package gormstore_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/accessreview"
	"github.com/acp-io/acp/internal/accessreview/gormstore"
	"github.com/acp-io/acp/internal/accessreview/reviewtest"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/testenv"
)

const (
	benchLines     = 100_000
	benchReviewers = 200
	benchPages     = 300
)

func benchLine(n int) accessreview.Line {
	app, resource := fmt.Sprintf("app-%d", n%2000), fmt.Sprintf("cache-%d", n/50)
	return accessreview.Line{
		Number:          n,
		Version:         1,
		State:           accessreview.LineOpen,
		Target:          approval.Target{Ticket: int64(n)},
		Application:     app,
		ApplicationName: "trnv1:rsc:trip-com:iam:sa:app/" + app,
		Resource:        resource,
		ResourceName:    "trnv1:rsc:trip-com:redis:clusters:" + resource,
		Class:           "redis",
		Sensitivity:     catalog.SensitivityMedium,
		Actions:         []string{"redis:connect"},
		Since:           reviewtest.Start,
		Grant:           "0123456789abcdef01234567",
		Requesters:      []string{"alice"},
		SIDs:            []string{approval.SID(int64(n), 0)},
		Rule:            accessreview.RuleResourceOwner,
		Reviewers:       []string{fmt.Sprintf("owner-%d", n%benchReviewers), "sam"},
		Recommendation: []accessreview.Decision{accessreview.Revoke, accessreview.Shorten,
			accessreview.None, accessreview.Keep}[n*4/(benchLines+1)],
		Evidence: accessreview.Evidence{
			At:             reviewtest.Start,
			Days:           90,
			LastUsed:       reviewtest.Start,
			Count:          12,
			Watched:        true,
			WatchedPercent: 99.5,
			Member:         "m1",
		},
	}
}

// BenchmarkCampaignPage measures what the page of an access review with 100,000 lines reads: the review, its counts and one
// page of lines, for the security team and for one reviewer, with and without filters. It prints lines
// "bench NAME VALUE UNIT" and is run once, with -benchtime 1x.
func BenchmarkCampaignPage(b *testing.B) {
	for name, dsn := range map[string]func(testing.TB) string{"sqlite": databasetest.SQLite, "postgres": testenv.DurablePostgres} {
		b.Run(name, func(b *testing.B) {
			db := databasetest.Open(b, dsn(b))
			s, ctx := gormstore.New(db), b.Context()
			c, err := s.Create(ctx, reviewtest.Campaign("everything"), func(accessreview.Campaign) accessreview.News { return accessreview.News{} })
			if err == nil {
				err = s.Rebuild(ctx, c.ID, "b")
			}
			for from := 1; err == nil && from <= benchLines; from += 500 {
				lines := make([]accessreview.Line, 500)
				for i := range lines {
					lines[i] = benchLine(from + i)
				}
				err = s.AddLines(ctx, c.ID, "b", lines)
			}
			if err == nil && db.Postgres() {
				// As autovacuum does within minutes; before, an index alone does not tell which rows are visible.
				err = db.ReadOne(ctx, func(tx *gorm.DB) error {
					_, err := database.Exec(tx, "VACUUM (ANALYZE) review_lines, review_reviewers")
					return err
				})
			}
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				b.ReportMetric(0, "ns/op")
				for kind, p99 := range measurePages(ctx, b, s, c.ID) {
					fmt.Printf("bench campaign_page_p99_%s_%s %.1f ms\n", name, kind, float64(p99.Microseconds())/1000)
				}
			}
		})
	}
}

// measurePages returns the 99th percentile of the time that the reads of a page take, by the kind of the page.
func measurePages(ctx context.Context, b *testing.B, s *gormstore.Store, id int64) map[string]time.Duration {
	b.Helper()
	took := map[string][]time.Duration{}
	for i := range benchPages {
		people, f := []string(nil), accessreview.LineFilter{Campaign: id, Limit: 101}
		kind := []string{"all", "open", "search", "nothing", "reviewer"}[i%5]
		switch kind {
		case "all":
			f.After = accessreview.Position{Campaign: id, Number: i * 331 % benchLines}
		case "open":
			f.States, f.Recommendations = []accessreview.LineState{accessreview.LineOpen}, []accessreview.Decision{accessreview.Keep}
		case "search":
			f.Text = fmt.Sprintf("cache-%d", i*7%(benchLines/50)) // an existing resource
		case "nothing":
			f.Text = fmt.Sprintf("no such name %d", i)
		case "reviewer":
			people = []string{fmt.Sprintf("owner-%d", i%benchReviewers)}
			f.Reviewers = people
		}
		begin := time.Now()
		if _, err := s.Campaign(ctx, id); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Count(ctx, people, id); err != nil {
			b.Fatal(err)
		}
		lines, err := s.Lines(ctx, f)
		if err != nil || kind != "nothing" && len(lines) == 0 {
			b.Fatal(kind, len(lines), err)
		}
		took[kind] = append(took[kind], time.Since(begin))
	}
	out := map[string]time.Duration{}
	for kind, list := range took {
		slices.Sort(list)
		out[kind] = list[len(list)*99/100]
	}
	return out
}
