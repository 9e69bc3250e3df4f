package clickhouse

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
	"github.com/acp-io/acp/internal/testenv"
)

// breaking is a transport that fails at one request, before the request or before its response arrives.
type breaking struct {
	next  http.RoundTripper
	at    *atomic.Int64 // counts down; at 0 the transport fails and stays broken
	after bool
}

func (b breaking) RoundTrip(r *http.Request) (*http.Response, error) {
	n := b.at.Add(-1)
	if n < 0 && (n < -1 || !b.after) {
		return nil, errors.New("broken on purpose")
	}
	res, err := b.next.RoundTrip(r)
	if n < 0 && err == nil {
		_, _ = io.Copy(io.Discard, res.Body) // wait until the server has processed the request
		return nil, errors.Join(errors.New("the answer was lost on purpose"), res.Body.Close())
	}
	return res, err
}

func day(n int) time.Time { return audittest.T0.Add(time.Duration(n) * 24 * time.Hour) }

// crossing returns a batch over two days, with every kind of data.
func crossing(id string) *audit.Batch {
	e := audittest.Edge()
	b := &audit.Batch{
		ID:        id,
		Positions: []audit.Position{{Source: "m1", Time: day(1)}},
		Seen:      []audit.SeenEvent{{Source: "m1", Time: day(1), ID: 7}},
		Losses: []audit.Loss{
			{Cluster: "m1", Reason: audit.LossRing, Count: 5, From: day(0), To: day(0)},
		},
		Watched: []audit.WatchedSpan{{Source: "m1", From: day(0), To: day(1)}},
	}
	for i := range 2 {
		b.Rollups = append(b.Rollups, audit.Rollup{Bucket: day(i), Edge: e, Count: 3, FirstSeen: day(i), LastSeen: day(i)})
		b.Flows = append(b.Flows, audit.Flow{Time: day(i), Edge: e, Count: 3})
	}
	return b
}

// counts3 returns the numbers of connections, raw flows and losses in a store.
func counts3(t *testing.T, s *Store) (connections int64, flows int, losses int64) {
	t.Helper()
	page, err := s.Connections(t.Context(), audit.ConnectionQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range page.Items {
		connections += c.Count
	}
	points, err := s.Series(t.Context(), audit.SeriesQuery{Filter: audit.Filter{Since: day(0), Until: day(2)}, Step: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, p := range points {
		sum += p.Count
	}
	if sum != connections {
		t.Errorf("got %d connections in the sums by minute and %d in the roll-ups, want equal numbers", sum, connections)
	}
	raw, err := s.Flows(t.Context(), audit.FlowQuery{})
	if err != nil {
		t.Fatal(err)
	}
	lost, err := s.Losses(t.Context(), audit.LossQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lost.Items {
		losses += l.Count
	}
	return connections, len(raw.Items), losses
}

// TestAppendBreaksAnywhere breaks the connection at each request of an Append. Then either the same collector retries, or it has
// died and another collector counts what is not stored, in a batch of its own.
func TestAppendBreaksAnywhere(t *testing.T) {
	for _, dies := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			for n := int64(0); ; n++ {
				broke := false
				t.Run(fmt.Sprintf("dies=%v,after=%v,request=%d", dies, after, n), func(t *testing.T) {
					dsn := testenv.ClickHouse(t)
					healthy := open(t, dsn)
					o := options(t, dsn)
					var at atomic.Int64
					at.Store(1 << 40)
					o.driver.TransportFunc = func(t *http.Transport) (http.RoundTripper, error) { return breaking{t, &at, after}, nil }
					s, err := Open(t.Context(), o)
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					at.Store(n)
					err = s.Append(t.Context(), crossing("first"))
					broke = err != nil
					if broke && !errors.Is(err, audit.ErrUnavailable) {
						t.Fatalf("Append over a broken connection: %v, want ErrUnavailable", err)
					}
					if connections, flows, _ := counts3(t, healthy); connections != 0 && connections != 6 || int64(flows)*3 != connections {
						t.Errorf("got %d connections and %d flows after the failure, want all of the batch or nothing", connections, flows)
					}
					id := "first"
					if dies {
						id = "second"
						r, err := healthy.Resume(t.Context(), "m1")
						if err != nil {
							t.Fatal(err)
						}
						if !r.Position.IsZero() {
							id = "" // the whole batch is stored
						}
					}
					at.Store(1 << 40)
					if id != "" {
						if err := s.Append(t.Context(), crossing(id)); err != nil {
							t.Fatalf("Append again: %v", err)
						}
					}
					if connections, flows, losses := counts3(t, healthy); connections != 6 || flows != 2 || losses != 5 {
						t.Errorf("got %d connections, %d flows, %d lost; want 6, 2, 5", connections, flows, losses)
					}
				})
				if !broke || t.Failed() {
					break
				}
			}
		}
	}
}

func TestOneBatchIsOnePart(t *testing.T) {
	s := open(t, testenv.ClickHouse(t))
	b := crossing("1")
	fleet := audittest.NewFleet(3000)
	for i := range 20 {
		b.Rollups = append(b.Rollups, fleet.Rollups(day(0).Add(time.Duration(i)*time.Hour), 3000)...)
	}
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	var parts uint64
	if err := s.conn.QueryRow(t.Context(), "SELECT count() FROM system.parts WHERE database = currentDatabase() AND table = 'entries'").
		Scan(&parts); err != nil {
		t.Fatal(err)
	}
	if parts != 1 {
		t.Errorf("got %d parts for a batch of two days, want 1, so that a crash cannot leave some of it", parts)
	}
}

func TestConcurrentAttemptsStoreTheBatchOnce(t *testing.T) {
	s := open(t, testenv.ClickHouse(t))
	errs := make(chan error)
	for range 4 {
		go func() { errs <- s.Append(t.Context(), crossing("same")) }()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if connections, flows, losses := counts3(t, s); connections != 6 || flows != 2 || losses != 5 {
		t.Errorf("got %d connections, %d flows, %d lost; want 6, 2, 5", connections, flows, losses)
	}
}

func TestOpenRejects(t *testing.T) {
	dsn := testenv.ClickHouse(t)
	s := open(t, dsn)
	if err := s.conn.Exec(t.Context(), "INSERT INTO schema_versions (version) VALUES (999)"); err != nil {
		t.Fatal(err)
	}
	wrong := options(t, dsn)
	wrong.driver.Auth.Password = "wr0ng-secret"
	nobody := options(t, "http://acp:s3cret@127.0.0.1:1/flows")
	for name, tc := range map[string]struct {
		reason, message string
		options         Options
		is              error
	}{
		"Newer":    {"an older program must not write into a newer schema", "use the newer program", options(t, dsn), nil},
		"Password": {"a wrong password is reported, without the password", "AUTHENTICATION_FAILED", wrong, audit.ErrUnavailable},
		"Nobody":   {"an unreachable server may become reachable", "refused", nobody, audit.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), tc.options)
			if err == nil {
				s.Close()
				t.Fatalf("%s, but Open succeeded", tc.reason)
			}
			if !strings.Contains(err.Error(), tc.message) || tc.is != nil && !errors.Is(err, tc.is) || strings.Contains(err.Error(), "secret") ||
				strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s: %v; want %q and %v", tc.reason, err, tc.message, tc.is)
			}
		})
	}
}
