package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/time/rate"
	"gorm.io/gorm"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/approval/gormstore/gormstoretest"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/testenv"
)

const (
	readers = 150 // sessions of u0 to u149
	writers = 20  // a requester and a leader in each group from that of firstWriter on

	firstWriter = readers / 5

	readsPerSecond, writesPerSecond = 150, 15
	warmUp, measured                = 5 * time.Second, 30 * time.Second

	// saturated is the number of clients that send requests back to back to measure the capacity, for saturation.
	saturated  = 64
	saturation = 10 * time.Second

	fewTickets, manyTickets = 1_000, 100_000
)

// BenchmarkPortal measures the portal's server with a real API server, login provider and database on a disk. Requests
// arrive at a constant rate, whether or not earlier ones were answered (an open loop), so that a time is what people wait
// for at that load. It prints lines "bench NAME VALUE UNIT" and is run once, with -benchtime 1x.
func BenchmarkPortal(b *testing.B) {
	config := portaltest.APIServer(b, true)
	newFleet(b, config)
	provider := portaltest.NewProvider(b)
	folder := writeCompany(b)
	for kind, dsn := range map[string]func(testing.TB) string{"sqlite": databasetest.SQLite, "postgres": testenv.DurablePostgres} {
		b.Run(kind, func(b *testing.B) {
			few := openPortal(b, config, provider, folder, dsn(b), fewTickets)
			fewReads, _ := few.openLoop()
			few.stop()
			url := dsn(b)
			many := openPortal(b, config, provider, folder, url, manyTickets)
			reads, writes := many.openLoop()
			capacity := many.capacity(many.read)
			many.stop()
			row := rowCapacity(b, url)
			for kindOfRead, took := range reads {
				fmt.Printf("bench portal_read_p99_%s_%s %.1f ms\n", kindOfRead, kind, p99(took))
			}
			fmt.Printf("bench portal_read_p99_%s %.1f ms\n", kind, p99(all(reads)))
			fmt.Printf("bench portal_write_p99_%s %.1f ms\n", kind, p99(writes))
			fmt.Printf("bench portal_read_growth_%s %.2f x\n", kind, p99(all(reads))/p99(all(fewReads)))
			fmt.Printf("bench portal_reads_per_s_%s %.0f /s\n", kind, capacity)
			fmt.Printf("bench portal_reads_vs_row_%s %.2f x\n", kind, capacity/row)
		})
	}
}

// portalUnderLoad is a portal with the people who use it.
type portalUnderLoad struct {
	b       *testing.B
	tickets int
	stop    func()
	readers []*portaltest.Browser
	writers [writers]struct{ requester, leader *portaltest.Browser }
}

// openPortal starts a portal on a new database with so many tickets, and logs its people in.
func openPortal(b *testing.B, config *rest.Config, provider *portaltest.Provider, folder, dsn string, tickets int) *portalUnderLoad {
	b.Helper()
	gormstoretest.WriteTickets(b, dsn, tickets)
	file := filepath.Join(b.TempDir(), "url")
	if err := os.WriteFile(file, []byte(dsn), 0o600); err != nil {
		b.Fatal(err)
	}
	o := testOptions(b, config, provider)
	o.catalog, o.databaseURLFile = folder, file
	p := startLogged(b, o, slog.New(slog.NewTextHandler(b.Output(), &slog.HandlerOptions{Level: slog.LevelError})))
	transport := &http.Transport{MaxIdleConnsPerHost: 1000}
	b.Cleanup(transport.CloseIdleConnections)
	// All people log in from one address, whose rate the portal limits: a login is two requests without a session.
	pace := rate.NewLimiter(20, 100)
	login := func(person int) *portaltest.Browser {
		if err := pace.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
		x := portaltest.NewBrowser(b, p.base)
		x.Client.Transport = transport
		x.Login(provider, "/", fmt.Sprint("u", person))
		return x
	}
	m := &portalUnderLoad{b: b, tickets: tickets, stop: p.stop}
	for i := range readers {
		m.readers = append(m.readers, login(m.person(i)))
	}
	for i := range m.writers {
		m.writers[i].requester, m.writers[i].leader = login(5*(firstWriter+i)+1), login(5*(firstWriter+i))
	}
	return m
}

// person returns the number of the person who is a reader. If fewer people request tickets than there are readers, some of them read in
// several sessions, so that all have pages of the same length.
func (m *portalUnderLoad) person(reader int) int { return reader % gormstoretest.Requesters(m.tickets) }

// A readKind is a page that people open. path returns the path for the n-th time that it is opened, by the reader.
type readKind struct {
	name string
	path func(m *portalUnderLoad, n, reader int) string
}

var readKinds = []readKind{
	{"lists", func(_ *portalUnderLoad, n, _ int) string {
		views := []string{"mine", "approvals", "decided", "all", "mine&state=pending", "all&state=effective"}
		return "/api/v1/tickets?limit=25&view=" + views[n/readers%len(views)]
	}},
	{"ticket", func(m *portalUnderLoad, n, reader int) string { // one of those that the reader requested; T-0 does not exist
		all := gormstoretest.Requesters(m.tickets)
		return fmt.Sprintf("/api/v1/tickets/T-%d", m.person(reader)+all*(1+n/readers%(m.tickets/all-1)))
	}},
	{"find", func(_ *portalUnderLoad, n, _ int) string {
		words := []string{"checkout", fmt.Sprint("checkout+", n), fmt.Sprint(n % 100), fmt.Sprint("u", n%gormstoretest.People), "need+cache", "nothing+of+this"}
		return "/api/v1/tickets?limit=25&view=all&q=" + words[n/readers%len(words)]
	}},
	{"search", func(_ *portalUnderLoad, n, _ int) string {
		words := []string{
			"shop",
			fmt.Sprint("checkout+", n*31%gormstoretest.Entities),
			"orders+cache",
			fmt.Sprint("cache-", n*97%gormstoretest.Entities),
			fmt.Sprint("app-", n),
		}
		return "/api/v1/search?q=" + words[n%len(words)]
	}},
	{"resource", func(_ *portalUnderLoad, n, _ int) string {
		return fmt.Sprintf("/api/v1/resources/cache-%d", n*7919%gormstoretest.Entities)
	}},
	{"application", func(_ *portalUnderLoad, n, _ int) string {
		return fmt.Sprintf("/api/v1/applications/app-%d", n*7919%gormstoretest.Entities)
	}},
}

// read opens the i-th page, which nobody has opened before for the first 900 pages of each kind.
func (m *portalUnderLoad) read(i int) string {
	kind, n := readKinds[i%len(readKinds)], i/len(readKinds)
	reader := n % readers
	if a := m.readers[reader].Get(kind.path(m, n, reader)); a.Status != http.StatusOK {
		m.b.Errorf("%s for u%d was answered %d: %s", kind.path(m, n, reader), m.person(reader), a.Status, a.Body)
	}
	return kind.name
}

// openLoop sends reads and writes at their rates, and returns how long each took, of the reads by kind.
func (m *portalUnderLoad) openLoop() (reads map[string][]time.Duration, writes []time.Duration) {
	var mu sync.Mutex
	reads = map[string][]time.Duration{}
	end := time.Now().Add(warmUp + measured)
	from := time.Now().Add(warmUp)
	var wg sync.WaitGroup
	wg.Go(func() {
		every(readsPerSecond, end, func(i int, due time.Time) {
			kind := m.read(i)
			if took := time.Since(due); due.After(from) {
				mu.Lock()
				defer mu.Unlock()
				reads[kind] = append(reads[kind], took)
			}
		})
	})
	wg.Go(func() {
		w := &writeSequence{portalUnderLoad: m, submitted: make(chan submittedTicket, writesPerSecond*int((warmUp+measured)/time.Second))}
		every(writesPerSecond, end, func(i int, due time.Time) {
			w.write(i)
			if took := time.Since(due); due.After(from) {
				mu.Lock()
				defer mu.Unlock()
				writes = append(writes, took)
			}
		})
	})
	wg.Wait()
	if m.b.Failed() {
		m.b.FailNow()
	}
	return reads, writes
}

// every calls do at a rate per second until end, each call in a goroutine of its own with the time at which it was due, and
// waits for the calls.
func every(rate int, end time.Time, do func(i int, due time.Time)) {
	var wg sync.WaitGroup
	start := time.Now()
	for i := 0; ; i++ {
		due := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
		if due.After(end) {
			break
		}
		time.Sleep(time.Until(due))
		wg.Go(func() { do(i, due) })
	}
	wg.Wait()
}

type submittedTicket struct {
	ID      string
	Version int64
	writer  int
}

// writeSequence submits tickets and approves them, by turns.
type writeSequence struct {
	*portalUnderLoad
	submitted chan submittedTicket
}

func (w *writeSequence) write(i int) {
	if i%2 == 1 {
		select {
		case t := <-w.submitted: // that of an earlier call
			a := w.writers[t.writer].leader.Post("/api/v1/tickets/"+t.ID+"/decision", map[string]any{"decision": "approve", "version": t.Version})
			if a.Status != http.StatusOK {
				w.b.Errorf("a decision was answered %d: %s", a.Status, a.Body)
			}
		case <-time.After(time.Minute):
			w.b.Error("no submission was answered in a minute")
		}
		return
	}
	writer := i / 2 % writers
	a := w.writers[writer].requester.Post("/api/v1/tickets", map[string]any{"reason": "the checkout needs it", "items": []map[string]any{
		{
			"application": fmt.Sprint("app-", firstWriter+writer+gormstoretest.Groups*(i/2/writers)),
			"resource":    fmt.Sprint("cache-", (i*131+3)%gormstoretest.Entities),
			"actions":     []string{"redis:connect"},
		},
	}})
	if a.Status != http.StatusCreated {
		w.b.Errorf("a submission was answered %d: %s", a.Status, a.Body)
		return
	}
	t := submittedTicket{writer: writer}
	a.Into(w.b, &t)
	w.submitted <- t
}

// capacity returns how many calls per second are answered when clients send them back to back.
func (m *portalUnderLoad) capacity(do func(i int) string) float64 {
	time.Sleep(4 * time.Second) // until the rate limit of each person has recovered
	return saturate(func(i int) { do(i) })
}

func saturate(do func(i int)) float64 {
	var next atomic.Int64
	start := time.Now()
	var wg sync.WaitGroup
	for range saturated {
		wg.Go(func() {
			for time.Since(start) < saturation {
				do(int(next.Add(1)))
			}
		})
	}
	wg.Wait()
	return float64(next.Load()) / time.Since(start).Seconds()
}

// rowCapacity returns how many times per second gin answers with one row that gorm reads by its key.
func rowCapacity(b *testing.B, dsn string) float64 {
	b.Helper()
	db, err := database.Open(b.Context(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	}()
	type ticket struct {
		Number    int64 `gorm:"primaryKey"`
		State     string
		Requester string
		Reason    string
	}
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.GET("/:number", func(c *gin.Context) {
		var t ticket
		if err := db.ReadOne(c, func(tx *gorm.DB) error { return tx.Take(&t, "number = ?", c.Param("number")).Error }); err != nil {
			c.Status(http.StatusInternalServerError)
			return
		}
		c.JSON(http.StatusOK, t)
	})
	server := httptest.NewServer(engine)
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: saturated, DialContext: (&net.Dialer{}).DialContext}}
	defer client.CloseIdleConnections()
	reader := &portaltest.Browser{T: b, Base: server.URL, Client: client}
	return saturate(func(i int) {
		if a := reader.Get(fmt.Sprint("/", i%fewTickets+1)); a.Status != http.StatusOK {
			b.Errorf("a row was answered %d", a.Status)
		}
	})
}

func all(byKind map[string][]time.Duration) (out []time.Duration) {
	for _, took := range byKind {
		out = append(out, took...)
	}
	return out
}

// p99 returns the 99th percentile in milliseconds.
func p99(took []time.Duration) float64 {
	took = slices.Clone(took)
	slices.SortFunc(took, cmp.Compare)
	return float64(took[int(math.Ceil(0.99*float64(len(took))))-1]) / float64(time.Millisecond)
}
