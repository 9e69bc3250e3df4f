package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/acp-io/acp/internal/ledger"
)

// Actions in the ledger.
const (
	actionSynced    = "catalog.synced"    // one for each sync that changed something
	actionCreated   = "catalog.created"   // many entities in one line
	actionGone      = "catalog.gone"      // many entities in one line
	actionRemoved   = "catalog.removed"   // many entities in one line
	actionAuthority = "catalog.authority" // one for each entity
)

// linesOf is how many entities a line of the ledger tells of.
const linesOf = 50

// lines of the ledger for a sync: all of authority before and after, so that who could decide what at a time can be
// told from the ledger alone.
func (s *state) lines(actor string, d Diff, w Write, at time.Time) []ledger.Entry {
	entry := func(action, object string, details map[string]string) ledger.Entry {
		return ledger.Entry{At: at, Actor: actor, Action: action, Object: object, Details: details}
	}
	out := []ledger.Entry{entry(actionSynced, d.Source, map[string]string{
		"created": strconv.Itoa(len(d.Created)), "updated": strconv.Itoa(len(d.Updated)), "gone": strconv.Itoa(len(d.Gone)),
		"returned": strconv.Itoa(len(d.Returned)), "digest": digest(w.Put)})}
	put := map[Ref]Stored{}
	for _, x := range w.Put {
		put[x.Ref()] = x
	}
	for chunk := range slices.Chunk(d.Created, linesOf) {
		details := map[string]string{}
		for _, c := range chunk {
			details[c.Ref.String()] = said(put[c.Ref].Record)
		}
		out = append(out, entry(actionCreated, d.Source, details))
	}
	for chunk := range slices.Chunk(d.Gone, linesOf) {
		details := map[string]string{}
		for _, c := range chunk {
			details[c.Ref.String()] = said(put[c.Ref].Record)
		}
		out = append(out, entry(actionGone, d.Source, details))
	}
	for _, c := range slices.Concat(d.Updated, d.Returned) {
		if c.Authority || !s.stored[c.Ref].Gone.IsZero() {
			out = append(out, entry(actionAuthority, c.Ref.String(), map[string]string{"source": d.Source, "before": said(s.stored[c.Ref].Record), "after": said(put[c.Ref].Record)}))
		}
	}
	return out
}

// removed makes the lines for what is deleted for good.
func (s *state) removed(actor string, refs []Ref, at time.Time) (out []ledger.Entry, err error) {
	for chunk := range slices.Chunk(refs, linesOf) {
		details := map[string]string{}
		for _, ref := range chunk {
			x, known := s.stored[ref]
			if !known {
				return nil, unknown(ref)
			}
			if x.Gone.IsZero() {
				return nil, refusal(ErrConflict, "%s is not gone: only what is gone can be removed.", ref)
			}
			details[ref.String()] = said(x.Record)
		}
		out = append(out, ledger.Entry{At: at, Actor: actor, Action: actionRemoved, Object: "catalog", Details: details})
	}
	return out, nil
}

// digest of what is written, so that a sync's content can be proven.
func digest(put []Stored) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, x := range put {
		if err := enc.Encode(x.Record); err != nil { // strings and lists of strings only
			return fmt.Sprintf("not known: %v", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
