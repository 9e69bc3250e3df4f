package clickhouse

import (
	"context"
	"fmt"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"
)

// The kinds of entries follow. Rows with the same key are aggregated: count by sum, first_seen by min, last_seen by max.
const (
	kindRollup   = 0 // edge, bucket, count, first_seen, last_seen
	kindBatch    = 1 // key is the batch's ID, first_seen the number of the attempt
	kindPosition = 2 // source, last_seen
	kindForget   = 3 // source, last_seen: earlier events are not delivered again
	kindSeen     = 4 // source; key is the number of the attempt, payload the events, last_seen the newest of them
	kindLoss     = 5 // source is the cluster, key the node and reason, bucket the minute of its end
	kindWatch    = 6 // source; key is the beginning
	kindMinute   = 7 // source is the cluster, key the decision and verdict, bucket, count: the sum of the summed roll-ups
)

// summed is the source of roll-ups that were written together with sums by minute. Roll-ups of an older program have no source
// and no sums. Both programs may use one database.
const summed = "+"

// leasesTable is created before any version of the schema, because migrations run under a lease.
const leasesTable = `CREATE TABLE IF NOT EXISTS leases{on} (
    source   String,
    claim    String,
    holder   SimpleAggregateFunction(any, String),
    since    SimpleAggregateFunction(min, Int64),
    until    SimpleAggregateFunction(max, Int64),
    released SimpleAggregateFunction(max, UInt8),
    made     SimpleAggregateFunction(max, DateTime) DEFAULT now()
) ENGINE = {engine:Aggregating} ORDER BY (source, claim) TTL made + INTERVAL 7 DAY`

const versionsTable = `CREATE TABLE IF NOT EXISTS schema_versions{on} (version UInt32, applied DateTime DEFAULT now()) ENGINE = {engine:} ORDER BY version`

// migrations holds the statements of each schema version, starting with 1. Each statement is idempotent.
var migrations = [][]string{{
	// An edge is written again on each day on which it occurs, so that "last" determines when it can be deleted.
	`CREATE TABLE IF NOT EXISTS edges{on} (
    id              FixedString(16),
    resource        LowCardinality(String),
    subject         LowCardinality(String),
    cluster         LowCardinality(String),
    source_cluster  LowCardinality(String),
    source          String CODEC(ZSTD(1)),
    destination     String CODEC(ZSTD(1)),
    action          LowCardinality(String),
    port            UInt16,
    protocol        LowCardinality(String),
    decision        LowCardinality(String),
    verdict         LowCardinality(String),
    policy          LowCardinality(String),
    sid             LowCardinality(String),
    other_subjects  String CODEC(ZSTD(1)),
    other_resources String CODEC(ZSTD(1)),
    last            SimpleAggregateFunction(max, Date)
) ENGINE = {engine:Aggregating} ORDER BY (resource, subject, id)`,
	// All rows of one batch are in one partition, that of its newest minute: "written" has the same value in all of them.
	`CREATE TABLE IF NOT EXISTS entries{on} (
    written    Date,
    kind       UInt8,
    source     String CODEC(ZSTD(1)),
    edge       FixedString(16) CODEC(ZSTD(1)),
    bucket     DateTime('UTC') CODEC(Delta, ZSTD(1)),
    key        String CODEC(ZSTD(1)),
    count      SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1)),
    first_seen SimpleAggregateFunction(min, Int64) CODEC(Delta, ZSTD(1)),
    last_seen  SimpleAggregateFunction(max, Int64) CODEC(Delta, ZSTD(1)),
    payload    SimpleAggregateFunction(any, String) CODEC(ZSTD(1)),
    INDEX by_bucket bucket TYPE minmax GRANULARITY 1
) ENGINE = {engine:Aggregating} PARTITION BY written ORDER BY (kind, source, edge, bucket, key) SETTINGS {dedup}`,
	// Within an hour the flows of an edge are adjacent, and among them those between two pods, so that they compress well. The
	// hour comes first in the order, so that the newest flows are found without reading everything.
	`CREATE TABLE IF NOT EXISTS flows{on} (
    slot                DateTime('UTC') CODEC(Delta, ZSTD(1)),
    edge                FixedString(16) CODEC(ZSTD(1)),
    destination_address IPv6 CODEC(ZSTD(1)),
    source_address      IPv6 CODEC(ZSTD(1)),
    micros              UInt32 CODEC(Delta, ZSTD(1)),
    node                String CODEC(ZSTD(1)),
    source_port         UInt16 CODEC(ZSTD(1)),
    count               Int64 CODEC(T64, ZSTD(1)),
    reason              String CODEC(ZSTD(1)),
    batch               UInt64 CODEC(Delta, ZSTD(1))
) ENGINE = {engine:} PARTITION BY toDate(slot) ORDER BY (slot, edge, destination_address, source_address, micros) SETTINGS {dedup}`,
}, {
	// A port has 15 random bits, and a time within the hour rarely fewer than 30. T64 stores no more bits than these and does not
	// search for repetitions. With T64('bit') the common bits of adjacent times are compressed by ZSTD. An hour has far fewer
	// distinct batches, nodes and reasons than flows.
	`ALTER TABLE flows{on}
    MODIFY COLUMN micros      UInt32 CODEC(T64('bit'), ZSTD(1)),
    MODIFY COLUMN source_port UInt16 CODEC(T64),
    MODIFY COLUMN batch       LowCardinality(String) CODEC(ZSTD(1)),
    MODIFY COLUMN node        LowCardinality(String) CODEC(ZSTD(1)),
    MODIFY COLUMN reason      LowCardinality(String) CODEC(ZSTD(1))`,
}}

// rememberedBlocks is the number of recent inserts with which the server compares a repeated one.
const rememberedBlocks = 10_000

// statement replaces the placeholders that depend on the options. The cluster's name was validated when the options were parsed.
func (o Options) statement(text string) string {
	on, replicated := "", ""
	if o.Cluster != "" {
		on, replicated = " ON CLUSTER `"+o.Cluster+"`", "Replicated"
	}
	dedup := fmt.Sprintf("non_replicated_deduplication_window = %d", rememberedBlocks)
	if o.Cluster != "" {
		dedup = fmt.Sprintf("replicated_deduplication_window = %d", rememberedBlocks)
	}
	return strings.NewReplacer("{on}", on, "{engine:Aggregating}", replicated+"AggregatingMergeTree", "{engine:}", replicated+"MergeTree", "{dedup}", dedup).
		Replace(text)
}

// ttls returns the statements that set the server-side retention of rows.
func (o Options) ttls() []string {
	ttl := func(table, expr string, days int) string {
		if days == 0 {
			return ""
		}
		return o.statement(fmt.Sprintf("ALTER TABLE %s{on} MODIFY TTL %s + INTERVAL %d DAY DELETE", table, expr, days))
	}
	var out []string
	for _, t := range []string{ttl("flows", "slot", o.FlowsTTL), ttl("entries", "bucket", o.RollupsTTL)} {
		if t != "" && strings.Contains(t, "entries") {
			t += fmt.Sprintf(" WHERE kind IN (%d, %d)", kindRollup, kindMinute)
		}
		if t != "" {
			out = append(out, t)
		}
	}
	return out
}

const (
	migrationLease = "schema"
	migrationTTL   = 10 * time.Minute
	migrationWait  = 500 * time.Millisecond
)

// migrate runs the missing migrations, in one program at a time.
func (s *Store) migrate(ctx context.Context) error {
	for _, table := range []string{leasesTable, versionsTable} {
		if err := s.conn.Exec(ctx, s.options.statement(table)); err != nil {
			return err
		}
	}
	have, err := s.version(ctx)
	if err != nil || have == len(migrations) && len(s.options.ttls()) == 0 {
		return err
	}
	holder := uuid.NewString()
	for {
		mine, err := s.Lease(ctx, migrationLease, holder, migrationTTL)
		if err != nil {
			return err
		}
		if mine {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(migrationWait):
		}
	}
	err = s.apply(ctx)
	if e := s.Release(context.WithoutCancel(ctx), migrationLease, holder); err == nil {
		err = e
	}
	return err
}

func (s *Store) apply(ctx context.Context) error {
	have, err := s.version(ctx)
	if err != nil {
		return err
	}
	for v := have; v < len(migrations); v++ {
		for _, text := range migrations[v] {
			if err := s.conn.Exec(ctx, s.options.statement(text)); err != nil {
				return fmt.Errorf("migrate schema to version %d: %w", v+1, err)
			}
		}
		if err := s.conn.Exec(ctx, "INSERT INTO schema_versions (version) SELECT {version:UInt32}", driver.Named("version", v+1)); err != nil {
			return fmt.Errorf("record schema version %d: %w", v+1, err)
		}
	}
	for _, text := range s.options.ttls() {
		if err := s.conn.Exec(ctx, text); err != nil {
			return fmt.Errorf("set the time to live: %w", err)
		}
	}
	return nil
}

func (s *Store) version(ctx context.Context) (int, error) {
	var have uint32
	if err := s.conn.QueryRow(ctx, "SELECT max(version) FROM schema_versions").Scan(&have); err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	if int(have) > len(migrations) {
		return 0, fmt.Errorf("the schema has version %d and this program supports up to %d: use the newer program, or another database", have, len(migrations))
	}
	return int(have), nil
}
