package clickhouse

import (
	"context"
	"fmt"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/sqlquery"
)

// ClickHouse has no compare-and-swap. A collector therefore writes a claim and waits until every earlier claim must be visible.
// It has the lease if its own claim is the oldest valid one. All times are from the server's clock.
const (
	sqlClaims = `SELECT claim, any(holder) AS h, toInt64(until_ - toUnixTimestamp64Micro(now64(6))) FROM` +
		` (SELECT claim, any(holder) AS holder, min(since) AS since_, max(until) AS until_, max(released) AS released_ FROM leases ` +
		`WHERE source = {source:String} GROUP BY claim)` +
		` WHERE released_ = 0 AND until_ > toUnixTimestamp64Micro(now64(6)) GROUP BY claim, since_, until_ ORDER BY since_, claim LIMIT 1`
	sqlClaim = `INSERT INTO leases (source, claim, holder, since, until, released) SELECT {source:String}, {claim:String}, {holder:String},` +
		` toUnixTimestamp64Micro(now64(6)), toUnixTimestamp64Micro(now64(6)) + {ttl:Int64}, 0`
	sqlRenew = `INSERT INTO leases (source, claim, holder, since, until, released) SELECT {source:String}, {claim:String}, {holder:String},` +
		` toInt64(9223372036854775807), toUnixTimestamp64Micro(now64(6)) + {ttl:Int64}, 0`
	sqlRelease = `INSERT INTO leases (source, claim, holder, since, until, released) SELECT {source:String}, {claim:String}, {holder:String},` +
		` toInt64(9223372036854775807), toInt64(0), 1`
)

type claim struct{ id, holder string }

// oldestClaim returns the oldest valid claim; an empty one if there is none.
func (s *Store) oldestClaim(ctx context.Context, source string) (claim, error) {
	var c claim
	err := s.each(ctx, "the lease on "+source, sqlquery.Statement{Text: sqlClaims, Args: []any{driver.Named("source", source)}}, func(rows driverRows) error {
		var left int64
		return rows.Scan(&c.id, &c.holder, &left)
	})
	return c, err
}

func (s *Store) writeClaim(ctx context.Context, text, source string, c claim, ttl time.Duration) error {
	args := []any{driver.Named("source", source), driver.Named("claim", c.id), driver.Named("holder", c.holder)}
	if ttl > 0 {
		args = append(args, driver.Named("ttl", ttl.Microseconds()))
	}
	return writeError(ctx, s.conn.Exec(ctx, text, args...))
}

// Holder implements audit.Writer.
func (s *Store) Holder(ctx context.Context, source string) (string, error) {
	has, err := s.oldestClaim(ctx, source)
	return has.holder, err
}

// Lease implements audit.Writer. A new lease may last a little longer than its ttl.
func (s *Store) Lease(ctx context.Context, source, holder string, ttl time.Duration) (bool, error) {
	ttl = max(ttl, time.Microsecond)
	has, err := s.oldestClaim(ctx, source)
	switch {
	case err != nil:
		return false, err
	case has.holder == holder:
		if err := s.writeClaim(ctx, sqlRenew, source, has, ttl); err != nil {
			return false, fmt.Errorf("renew the lease on %s: %w", source, err)
		}
		return true, nil
	case has.id != "":
		return false, nil
	}
	mine := claim{uuid.NewString(), holder}
	begun := s.now()
	if err := s.writeClaim(ctx, sqlClaim, source, mine, ttl+3*s.options.claimWait); err != nil {
		return false, fmt.Errorf("claim %s: %w", source, err)
	}
	// A claim that took longer to arrive may not have been visible to another collector after its wait.
	late := s.now().Sub(begun) > s.options.claimWait
	if !late {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(s.options.claimWait):
		}
		if has, err = s.oldestClaim(ctx, source); err != nil {
			return false, err
		}
		if has == mine {
			return true, nil
		}
	}
	if err := s.writeClaim(ctx, sqlRelease, source, mine, 0); err != nil {
		return false, fmt.Errorf("withdraw the claim on %s: %w", source, err)
	}
	return false, nil
}

// Release implements audit.Writer.
func (s *Store) Release(ctx context.Context, source, holder string) error {
	has, err := s.oldestClaim(ctx, source)
	if err != nil || has.holder != holder {
		return err
	}
	if err := s.writeClaim(ctx, sqlRelease, source, has, 0); err != nil {
		return fmt.Errorf("release %s: %w", source, err)
	}
	return nil
}

func (s *Store) checkHolder(ctx context.Context, b *audit.Batch) error {
	if b.Holder == "" {
		return nil
	}
	for _, p := range b.Positions {
		has, err := s.oldestClaim(ctx, audit.ClusterOf(p.Source))
		if err != nil {
			return err
		}
		if has.holder != b.Holder {
			return fmt.Errorf("%w: %s is not leased to %s", audit.ErrNotHolder, p.Source, b.Holder)
		}
	}
	return nil
}
