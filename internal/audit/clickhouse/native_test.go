package clickhouse

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	chdriver "github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
	"github.com/acp-io/acp/internal/testenv"
)

// TestNative tests the native protocol with a real server process. A server in PATH that is new enough runs the whole conformance
// suite. Debian's server, of 2018, must be rejected; with the version check disabled it runs the tests that it supports.
func TestNative(t *testing.T) {
	dsn := testenv.ClickHouseServer(t)
	conn, v, err := dial(t.Context(), options(t, dsn))
	if err != nil {
		t.Fatalf("connect and ping over the native protocol: %v", err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	if !v.tooOld() {
		audittest.Run(t, func(t *testing.T) audit.Store { return open(t, testenv.ClickHouseServer(t)) })
		return
	}
	t.Logf("the server has version %d.%d", v.major, v.minor)
	s := &Store{queries: queries{conn: conn}, options: options(t, dsn), now: time.Now, edges: newKnownEdges(), spans: map[string]audit.WatchedSpan{}}
	t.Run("Refused", func(t *testing.T) { oldServerIsRefused(t, dsn) })
	t.Run("WrongPassword", func(t *testing.T) { wrongPasswordIsTold(t, dsn) })
	for _, text := range migrations[0] {
		if err := conn.Exec(t.Context(), inOldWords(text)); err != nil {
			t.Fatalf("make a table: %v", err)
		}
	}
	t.Run("Unknown", func(t *testing.T) { oldServerLacks(t, s) })
	s.conn = lenient{conn}
	t.Run("Batch", func(t *testing.T) { batchOverNative(t, s) })
}

func oldServerIsRefused(t *testing.T, dsn string) {
	for name, try := range map[string]func() error{
		"writer": func() error { _, err := Open(t.Context(), options(t, dsn)); return err },
		"reader": func() error { _, err := OpenReader(t.Context(), options(t, dsn)); return err },
	} {
		// A retry would not help, so the error must not be one that is retried.
		if err := try(); err == nil || !strings.Contains(err.Error(), "24.8 or newer is needed") || errors.Is(err, audit.ErrUnavailable) {
			t.Errorf("%s: %v; want the version that is needed", name, err)
		}
	}
}

func wrongPasswordIsTold(t *testing.T, dsn string) {
	o := options(t, dsn)
	o.driver.Auth.Password = "wr0ng-secret"
	if _, err := Open(
		t.Context(), o,
	); !errors.Is(err, audit.ErrUnavailable) || !strings.Contains(err.Error(), "assword") || strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("%v; want that the password is wrong, without it", err)
	}
}

// tooNew lists the parts of the schema that a server of 2018 does not support. They concern the storage of values only.
var tooNew = []struct {
	what *regexp.Regexp
	old  string
}{
	{regexp.MustCompile(` CODEC\((\w+(\(\d+\))?(, )?)+\)`), ""},
	{regexp.MustCompile(`LowCardinality\((\w+)\)`), "$1"},
	{regexp.MustCompile(`SimpleAggregateFunction\(\w+, (\w+)\)`), "$1"},
	{regexp.MustCompile(`,\s+INDEX [^\n]+`), ""},
	{regexp.MustCompile(`\bIPv6\b`), "FixedString(16)"},
	{regexp.MustCompile(` SETTINGS .*`), ""},
	{regexp.MustCompile(`AggregatingMergeTree`), "MergeTree"},
}

func inOldWords(text string) string {
	text = Options{}.statement(text)
	for _, x := range tooNew {
		text = x.what.ReplaceAllString(text, x.old)
	}
	return text
}

// oldServerLacks verifies the reason for the version check: without it, the missing features would cause errors later.
func oldServerLacks(t *testing.T, s *Store) {
	ctx := t.Context()
	for name, try := range map[string]func() error{
		"the schema":                 func() error { return s.conn.Exec(ctx, Options{}.statement(migrations[0][1])) },
		"the settings of an insert":  func() error { return s.insert(ctx, entriesInsert, "acp-1", newEntries(0).columns()...) },
		"values bound by the server": func() error { _, err := s.stored(ctx, "1"); return err },
		"semi joins":                 func() error { return s.Totals(ctx, audit.Filter{}, func(audit.Total) error { return nil }) },
		"the function char":          func() error { _, err := s.Coverage(ctx, time.Time{}, time.Time{}); return err },
	} {
		if err := try(); err == nil {
			t.Errorf("the server supports %s, want an error", name)
		}
	}
}

// lenient is a connection that removes settings which the server does not support, and writes values into the text for a server
// that cannot bind them.
type lenient struct{ driver.Conn }

var placeholder = regexp.MustCompile(`\{(\w+):[\w()]+\}`)

func (l lenient) PrepareBatch(ctx context.Context, text string, opts ...chdriver.PrepareBatchOption) (chdriver.Batch, error) {
	return l.Conn.PrepareBatch(driver.Context(ctx, driver.WithSettings(driver.Settings{})), text, opts...)
}

func (l lenient) Query(ctx context.Context, text string, args ...any) (chdriver.Rows, error) {
	return l.Conn.Query(ctx, placeholder.ReplaceAllString(text, "@$1"), args...)
}

func (l lenient) QueryRow(ctx context.Context, text string, args ...any) chdriver.Row {
	return l.Conn.QueryRow(ctx, placeholder.ReplaceAllString(text, "@$1"), args...)
}

// batchOverNative appends in blocks and reads with the statements of the store. It leaves out raw flows, which need a type that
// the server lacks, and bound lists, which the server expects in another form.
func batchOverNative(t *testing.T, s *Store) {
	ctx := t.Context()
	b := crossing("first")
	b.Flows = nil
	b.Rollups = append(
		b.Rollups,
		audit.Rollup{Bucket: day(0), Edge: audittest.Edge(func(e *audit.Edge) { e.Source = hostile }), Count: 5, FirstSeen: day(0), LastSeen: day(0)},
	)
	for range 2 { // the second time the batch is stored already
		if err := s.Append(ctx, b); err != nil {
			t.Fatalf("Append: %v", err)
		}
	}
	resume, err := s.Resume(ctx, "m1")
	if diff := cmp.Diff(audit.Resume{Position: day(1), Seen: b.Seen}, resume); err != nil || diff != "" {
		t.Errorf("Resume: %v (-want +got)\n%s", err, diff)
	}
	last, err := s.LastFlow(ctx)
	if diff := cmp.Diff(map[string]time.Time{"m1": day(1)}, last); err != nil || diff != "" {
		t.Errorf("LastFlow: %v (-want +got)\n%s", err, diff)
	}
	for name, tc := range map[string]struct {
		reason string
		query  audit.ConnectionQuery
		want   []int64
	}{
		"All":    {"the newest first, both days added up", audit.ConnectionQuery{}, []int64{6, 5}},
		"Window": {"bound times leave the first day out", audit.ConnectionQuery{Filter: audit.Filter{Since: day(1), Until: day(2)}}, []int64{3}},
		"Text":   {"a bound text stays a text", audit.ConnectionQuery{Filter: audit.Filter{SID: hostile}}, nil},
	} {
		page, err := s.Connections(ctx, tc.query)
		var got []int64
		for _, c := range page.Items {
			got = append(got, c.Count)
		}
		if err != nil || !cmp.Equal(tc.want, got) {
			t.Errorf("%s: %s: %v, %v; want %v", name, tc.reason, got, err, tc.want)
		}
	}
	page, err := s.Connections(ctx, audit.ConnectionQuery{Filter: audit.Filter{Until: day(1)}})
	if err != nil || !slices.ContainsFunc(page.Items, func(c audit.Connection) bool { return c.Source == hostile }) {
		t.Errorf("got connections %+v, %v; want the edge as it was written", page.Items, err)
	}
}

// hostile is a text that must be returned unchanged.
const hostile = "\\') OR 1 = 1 -- \t\x00 {x:String} 世界"
