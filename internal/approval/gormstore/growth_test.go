package gormstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/gormstore/gormstoretest"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/testenv"
)

// page is a list of tickets that a page of the portal reads for the person un.
type page struct {
	name   string
	filter func(n int) approval.Filter
}

// visibleTo is what the person un may see by the company of gormstoretest.
func visibleTo(n int) *approval.Visible {
	v := &approval.Visible{Person: fmt.Sprint("u", n)}
	for e := range gormstoretest.Entities {
		if e%gormstoretest.Groups == n/5 {
			v.Applications = append(v.Applications, fmt.Sprint("trnv1:rsc:trip-com:iam:sa:app/", e))
		}
		if e*7%gormstoretest.Groups == n/5 {
			v.Resources = append(v.Resources, fmt.Sprint("trnv1:rsc:trip-com:redis:clusters:cache-", e))
		}
	}
	return v
}

var listPages = []page{
	{"mine", func(n int) approval.Filter { return approval.Filter{Requester: fmt.Sprint("u", n)} }},
	{"mine, pending", func(n int) approval.Filter {
		return approval.Filter{Requester: fmt.Sprint("u", n), States: []approval.State{approval.StatePending}}
	}},
	{"approvals", func(n int) approval.Filter {
		return approval.Filter{WaitsFor: &approval.Waits{Person: fmt.Sprint("u", n)}, ItemStates: []approval.State{approval.StatePending}}
	}},
	{"decided", func(n int) approval.Filter { return approval.Filter{DecidedBy: fmt.Sprint("u", n)} }},
	{"all", func(int) approval.Filter { return approval.Filter{} }},
	{"all, effective", func(int) approval.Filter { return approval.Filter{States: []approval.State{approval.StateEffective}} }},
	{"checkout", func(int) approval.Filter { return approval.Filter{Text: "checkout"} }},
	{"checkout and a number", func(n int) approval.Filter { return approval.Filter{Text: fmt.Sprint("checkout ", n*37)} }},
	{"beginning of a number", func(n int) approval.Filter { return approval.Filter{Text: fmt.Sprint(n % 100)} }},
	{"person", func(n int) approval.Filter { return approval.Filter{Text: fmt.Sprint("u", n*13%gormstoretest.People)} }},
	{"need cache", func(int) approval.Filter { return approval.Filter{Text: "need cache"} }},
	{"nothing of this", func(int) approval.Filter { return approval.Filter{Text: "nothing of this"} }},
}

// BenchmarkGrowth measures what each list of the portal takes with 1,000 and with 100,000 tickets, by turns, so that other
// work on the machine slows both alike. It is run once, with -benchtime 1x.
func BenchmarkGrowth(b *testing.B) {
	for kind, dsn := range map[string]func(testing.TB) string{"sqlite": databasetest.SQLite, "postgres": testenv.DurablePostgres} {
		b.Run(kind, func(b *testing.B) {
			var stores [2]*Store
			for i, tickets := range []int{1_000, 100_000} {
				url := dsn(b)
				gormstoretest.WriteTickets(b, url, tickets)
				stores[i] = New(databasetest.Open(b, url))
			}
			visible := make([]*approval.Visible, gormstoretest.Requesters(1_000))
			for n := range visible {
				visible[n] = visibleTo(n)
			}
			for _, p := range listPages {
				var took [2][]time.Duration
				var rows [2]int
				for round := range 5 {
					for n, v := range visible {
						f := p.filter(n)
						f.VisibleTo, f.Limit, f.OmitEvents = v, 26, true
						for i, s := range stores {
							start := time.Now()
							list, err := s.List(b.Context(), f)
							if err != nil {
								b.Fatal(err)
							}
							if round > 0 {
								took[i], rows[i] = append(took[i], time.Since(start)), rows[i]+len(list)
							}
						}
					}
				}
				var median, ninth [2]float64
				for i := range took {
					slices.Sort(took[i])
					median[i], ninth[i] = took[i][len(took[i])/2].Seconds()*1e3, took[i][len(took[i])*9/10].Seconds()*1e3
				}
				b.Logf("%-22s %5.2f to %5.2f ms (%.1f x), p90 %5.2f to %5.2f, rows %.1f to %.1f", p.name, median[0], median[1], median[1]/median[0],
					ninth[0], ninth[1], float64(rows[0])/float64(len(visible)), float64(rows[1])/float64(len(visible)))
			}
		})
	}
}
