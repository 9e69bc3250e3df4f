package clickhouse

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/acp-io/acp/internal/audit"
)

// Append implements audit.Writer.
func (s *Store) Append(ctx context.Context, b *audit.Batch) error {
	if b.ID == "" {
		return fmt.Errorf("append to flow store: the batch has no id")
	}
	if err := s.append(ctx, b); err != nil {
		return fmt.Errorf("append to flow store: %w", writeError(ctx, err))
	}
	return nil
}

func (s *Store) append(ctx context.Context, b *audit.Batch) error {
	stored, err := s.stored(ctx, b.ID)
	if err != nil || stored {
		return err
	}
	if err := s.checkHolder(ctx, b); err != nil {
		return err
	}
	needed := map[edgeID]datedEdge{}
	entries, spans := s.entriesOf(b, needed)
	for i := range b.Flows {
		entries.at(b.Flows[i].Time) // the batch's own row must be kept as long as its flows
	}
	number, err := newAttempt(s.now())
	if err != nil {
		return err
	}
	ofFlows, err := s.writeFlows(ctx, b.Flows, number)
	if err != nil {
		return err
	}
	for _, m := range ofFlows {
		for _, d := range m {
			need(needed, d)
		}
	}
	if err := s.writeEdges(ctx, needed); err != nil {
		return fmt.Errorf("edges: %w", err)
	}
	entries.batch(b, number)
	// The token makes the server discard the block if an earlier attempt with the same batch is still being processed.
	if err := s.insert(ctx, entriesInsert, "acp-"+b.ID, entries.columns()...); err != nil {
		return fmt.Errorf("entries: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range spans {
		s.spans[w.Source] = w
	}
	return nil
}

func (s *Store) stored(ctx context.Context, id string) (bool, error) {
	var n uint64
	query := fmt.Sprintf("SELECT count() FROM entries WHERE kind = %d AND source = '' AND key = {id:String}", kindBatch)
	if err := s.conn.QueryRow(ctx, query, driver.Named("id", id)).Scan(&n); err != nil {
		return false, fmt.Errorf("look for the batch: %w", err)
	}
	return n > 0, nil
}

// newAttempt returns a number for an attempt to store a batch. Numbers grow with time, which makes them compress well, and
// contain random bits, so that they are unique.
func newAttempt(now time.Time) (uint64, error) {
	var b [2]byte
	if _, err := rand.Read(b[:]); err != nil {
		return 0, fmt.Errorf("number the attempt: %w", err)
	}
	return uint64(now.UnixMicro())<<11 | uint64(binary.BigEndian.Uint16(b[:]))&0x7ff, nil
}

// insert inserts one block. A non-empty token identifies the block for deduplication.
func (s *Store) insert(ctx context.Context, text, token string, columns ...any) error {
	settings := driver.Settings{"async_insert": 0}
	if token != "" {
		settings["insert_deduplicate"] = 1
		settings["insert_deduplication_token"] = token
	}
	if s.options.Cluster != "" {
		settings["insert_quorum"] = "auto"
	}
	batch, err := s.conn.PrepareBatch(driver.Context(ctx, driver.WithSettings(settings)), text)
	if err != nil {
		return err
	}
	defer func() { _ = batch.Close() }() // has no effect after Send
	for i, c := range columns {
		if err := batch.Column(i).Append(c); err != nil {
			return err
		}
	}
	return batch.Send()
}

const secondsOfDay = int64(24 * time.Hour / time.Second)

// dayNumber is a number of UTC days since 1970.
type dayNumber int32

// dayOf returns the day of a time, or the nearest day that the type Date has.
func dayOf(t time.Time) dayNumber {
	return dayNumber(min(max(t.Unix()/secondsOfDay, 0), math.MaxUint16))
}

// dateTime returns the Unix second, or the nearest one that the type DateTime has. The driver would store another time, far away.
func dateTime(second int64) int64 { return min(max(second, 0), math.MaxUint32) }

func (d dayNumber) time() time.Time { return time.Unix(int64(d)*secondsOfDay, 0).UTC() }

func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }
