package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"

	"github.com/acp-io/acp/internal/audit"
)

// edgeHash is the truncated SHA-256 of all fields of an edge. Labels are chosen by workloads, so collisions must be infeasible to
// find.
type edgeHash [16]byte

const (
	sqlFindEdge = `SELECT id FROM edges WHERE hash = ?`
	sqlAddEdge  = `INSERT INTO edges (hash, resource, subject, cluster, source_cluster, source, destination, action, port, protocol, decision, ` +
		`verdict, policy, sid,` +
		` other_subjects, other_resources) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

// maxCached bounds the number of edge IDs in memory.
const maxCached = 1 << 20

// edgeCache holds the IDs of edges that are committed.
type edgeCache struct {
	ids map[edgeHash]int64
	buf []byte
}

func newEdgeCache() *edgeCache { return &edgeCache{ids: map[edgeHash]int64{}} }

func (c *edgeCache) clear() { clear(c.ids) }

func (c *edgeCache) hash(e *audit.Edge) edgeHash {
	b := c.buf[:0]
	for _, s := range [...]string{e.Resource, e.Subject, e.Cluster, e.SourceCluster, e.Source, e.Destination, e.Action, string(e.Protocol),
		string(e.Decision), string(e.Verdict), e.Statement.Policy, e.Statement.SID, e.OtherSubjects, e.OtherResources} {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	c.buf = binary.BigEndian.AppendUint16(b, e.Port)
	sum := sha256.Sum256(c.buf)
	return edgeHash(sum[:16])
}

// edgeIDs finds or inserts edges within a transaction.
type edgeIDs struct {
	cache *edgeCache
	tx    *sql.Tx
	find  *sql.Stmt
	found map[edgeHash]int64
}

func (c *edgeCache) in(tx *sql.Tx) *edgeIDs {
	return &edgeIDs{cache: c, tx: tx, found: map[edgeHash]int64{}}
}

func (x *edgeIDs) close() {
	if x.find != nil {
		_ = x.find.Close() // the statement was only used to read
	}
}

// commit adds the transaction's IDs to the cache. It is called after the commit.
func (x *edgeIDs) commit() {
	if len(x.cache.ids)+len(x.found) > maxCached {
		x.cache.clear()
	}
	for h, id := range x.found {
		x.cache.ids[h] = id
	}
}

func (x *edgeIDs) of(ctx context.Context, e *audit.Edge) (int64, error) {
	h := x.cache.hash(e)
	if id, ok := x.cache.ids[h]; ok {
		return id, nil
	}
	if id, ok := x.found[h]; ok {
		return id, nil
	}
	if x.find == nil {
		var err error
		if x.find, err = x.tx.PrepareContext(ctx, sqlFindEdge); err != nil {
			return 0, err
		}
	}
	var id int64
	err := x.find.QueryRowContext(ctx, h[:]).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		id, err = x.add(ctx, h, e)
	}
	if err != nil {
		return 0, err
	}
	x.found[h] = id
	return id, nil
}

func (x *edgeIDs) add(ctx context.Context, h edgeHash, e *audit.Edge) (int64, error) {
	res, err := x.tx.ExecContext(
		ctx,
		sqlAddEdge,
		h[:],
		e.Resource,
		e.Subject,
		e.Cluster,
		e.SourceCluster,
		e.Source,
		e.Destination,
		e.Action,
		int64(e.Port),
		string(e.Protocol),
		string(e.Decision),
		string(e.Verdict),
		e.Statement.Policy,
		e.Statement.SID,
		e.OtherSubjects,
		e.OtherResources,
	)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}
