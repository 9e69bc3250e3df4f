package gormstore

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/testenv"
)

func BenchmarkCreate(b *testing.B) {
	for name, dsn := range map[string]func(testing.TB) string{"sqlite": databasetest.SQLite, "postgres": testenv.Postgres} {
		b.Run(name, func(b *testing.B) {
			s := New(databasetest.Open(b, dsn(b)))
			var n atomic.Int64
			b.SetParallelism(32)
			b.ResetTimer()
			start := time.Now()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := n.Add(1)
					if _, err := s.Create(b.Context(), approvaltest.Ticket(fmt.Sprint("a", i), "r", "")); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "tickets/s")
		})
	}
}
