package ticketapi

import (
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/policy"
)

const (
	// replayLifetime is how long the result of a replay is returned again. Flows arrive all the time.
	replayLifetime = 30 * time.Second
	// maxReplays is the number of results that are kept.
	maxReplays = 200
)

// replayKey identifies the change that is replayed, independently of the caller.
type replayKey [sha256.Size]byte

// replayDigest returns the key of the items of a ticket or of a preview: of what change.Snapshots reads of them. The end of access is
// rounded to the minute, because that of a preview is computed from the time of the request. A window that the caller chose is rounded,
// too; the evidence window moves with the time, and is no part of the key.
func replayDigest(kind approval.Kind, items []approval.Item, w window) (replayKey, error) {
	type essence struct {
		Application, Resource, SID string
		Actions                    []string
		Target                     *approval.Target
		Change                     *approval.Change
		Ends                       time.Time
		Hours                      *v1alpha1.WeeklyHours
		Scope                      *approval.StatementScope
	}
	list := []any{kind}
	if w.chosen {
		list = append(list, w.since.Truncate(time.Minute), w.until.Truncate(time.Minute))
	}
	for _, it := range items {
		ends := it.ExpiresAt.Truncate(time.Minute)
		list = append(list, essence{it.ApplicationName, it.ResourceName, it.SID, it.Actions, it.Target, it.Change, ends, it.Hours, it.Scope})
	}
	text, err := json.Marshal(list)
	return sha256.Sum256(text), err
}

// replayCache keeps recent results, because approvers often open a ticket shortly after the requester did. All of them are of the
// newest snapshot: those of earlier ones are never asked for again, and would keep whole snapshots in memory. The zero value is empty.
type replayCache struct {
	mu      sync.Mutex
	base    *policy.Snapshot
	results *lru.Cache[replayKey, replayResult]
}

type replayResult struct {
	at    time.Time
	found insight.Impact
}

// get returns the result of an equal replay on the same snapshot that is not older than replayLifetime, or else calls replay. Errors
// are not kept.
func (r *replayCache) get(base *policy.Snapshot, key replayKey, now time.Time, replay func() (insight.Impact, error)) (insight.Impact, error) {
	results := r.of(base)
	if x, ok := results.Get(key); ok {
		if age := now.Sub(x.at); age >= 0 && age < replayLifetime {
			return x.found, nil
		}
	}
	found, err := replay()
	if err == nil {
		results.Add(key, replayResult{now, found})
	}
	return found, err
}

// of returns the results of a snapshot, and drops those of another one.
func (r *replayCache) of(base *policy.Snapshot) *lru.Cache[replayKey, replayResult] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.results == nil || r.base != base {
		results, err := lru.New[replayKey, replayResult](maxReplays)
		if err != nil {
			panic(err) // only a size below one is an error
		}
		r.base, r.results = base, results
	}
	return r.results
}
