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
	"github.com/acp-io/acp/internal/message"
)

// Actions in the ledger.
const (
	actionSynced    = "catalog.synced"    // one line for each sync that changed something
	actionCreated   = "catalog.created"   // one line for many entities
	actionGone      = "catalog.gone"      // one line for many entities
	actionRemoved   = "catalog.removed"   // one line for many entities
	actionAuthority = "catalog.authority" // one line for each entity
)

// entitiesPerLine is the largest number of entities in one ledger line.
const entitiesPerLine = 50

// lines returns the ledger lines of a sync. They contain all authority fields before and after, so that the ledger
// alone shows who could decide what at any time.
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
	for chunk := range slices.Chunk(d.Created, entitiesPerLine) {
		details := map[string]string{}
		for _, c := range chunk {
			details[c.Ref.String()] = authorityText(put[c.Ref].Record)
		}
		out = append(out, entry(actionCreated, d.Source, details))
	}
	for chunk := range slices.Chunk(d.Gone, entitiesPerLine) {
		details := map[string]string{}
		for _, c := range chunk {
			details[c.Ref.String()] = authorityText(put[c.Ref].Record)
		}
		out = append(out, entry(actionGone, d.Source, details))
	}
	for _, c := range slices.Concat(d.Updated, d.Returned) {
		if c.Authority || !s.stored[c.Ref].Gone.IsZero() {
			before, after := s.stored[c.Ref].Record, put[c.Ref].Record
			details := map[string]string{"source": d.Source, "before": authorityText(before), "after": authorityText(after)}
			if before.Email != after.Email {
				details[fieldEmail] = "changed"
			}
			out = append(out, entry(actionAuthority, c.Ref.String(), details))
		}
	}
	return out
}

// removed returns the ledger lines for entities that are deleted.
func (s *state) removed(actor string, refs []Ref, at time.Time) (out []ledger.Entry, err error) {
	for chunk := range slices.Chunk(refs, entitiesPerLine) {
		details := map[string]string{}
		for _, ref := range chunk {
			x, known := s.stored[ref]
			if !known {
				return nil, unknown(ref)
			}
			if x.Gone.IsZero() {
				return nil, refusal(ErrConflict, message.CatalogEntityNotGone(ref.String()))
			}
			details[ref.String()] = authorityText(x.Record)
		}
		out = append(out, ledger.Entry{At: at, Actor: actor, Action: actionRemoved, Object: "catalog", Details: details})
	}
	return out, nil
}

// digest returns a hash of what is written, which proves the content of a sync.
func digest(put []Stored) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, x := range put {
		if err := enc.Encode(x.Record); err != nil { // This cannot fail: a record has only strings and lists of strings.
			return fmt.Sprintf("not known: %v", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
