package portal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"time"
	"weak"

	"k8s.io/utils/lru"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/portal/openapi"
)

const (
	// keepShown is the number of cached pages, each of at most keepShownBytes: 64 MiB in total.
	keepShown      = 1024
	keepShownBytes = 64 << 10
	// keepShownFor is how long a page is cached at most, because states of members may change without a change of the counter.
	keepShownFor = 30 * time.Second
)

// shownLists caches pages of tickets as JSON. Building the rows of a page and encoding them costs more than everything else, and most
// lists do not change while people read them. Which tickets the caller may see is determined by the store for each request, before.
type shownLists struct{ pages *lru.Cache } // of [32]byte to *shownList

type shownList struct {
	body    []byte
	catalog weak.Pointer[catalog.Catalog] // unused pages must not keep an old catalog in memory
	live    bool                          // something is in force, so that the page shows states of members
	host    uint64
	till    time.Time
}

func newShownLists() shownLists { return shownLists{lru.New(keepShown)} }

// VisitListTicketsResponse implements openapi.ListTicketsResponseObject.
func (l *shownList) VisitListTicketsResponse(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(l.body)
	return err
}

// shown returns the page of some tickets in their versions, for a caller.
func (a *api) shown(c *catalog.Catalog, who approval.Actor, list []*approval.Ticket, next *string) (*shownList, error) {
	key, now, host, ready := shownKey(who, list, next), a.Now(), a.Host.Changes(), a.Host.Ready()
	if v, ok := a.lists.pages.Get(key); ok {
		if l := v.(*shownList); l.catalog == weak.Make(c) && now.Before(l.till) && (!l.live || l.host == host) {
			return l, nil
		}
	}
	out := openapi.ListTickets200JSONResponse{Items: make([]openapi.Ticket, 0, len(list)), NextCursor: next}
	l := &shownList{catalog: weak.Make(c), host: host, till: now.Add(keepShownFor)}
	for _, t := range list {
		out.Items = append(out.Items, a.ticketRow(c, who, t))
		for i := range t.Items {
			l.live = l.live || t.Items[i].State.Open()
		}
	}
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(out); err != nil {
		return nil, err
	}
	l.body = body.Bytes()
	if body.Len() <= keepShownBytes && (!l.live || ready) {
		a.lists.pages.Add(key, l)
	}
	return l, nil
}

// shownKey returns a key of everything that determines a page, except the catalog and the state of the host cluster.
func shownKey(who approval.Actor, list []*approval.Ticket, next *string) [32]byte {
	b := make([]byte, 0, 1024)
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	yes := func(y bool) { b = append(b, map[bool]byte{true: 1}[y]) }
	text(who.ID)
	yes(who.Security)
	yes(who.Auditor)
	b = binary.AppendUvarint(b, uint64(len(who.StandsFor)))
	for _, p := range who.StandsFor {
		text(p)
	}
	yes(next != nil)
	text(value(next))
	for _, t := range list {
		b = binary.AppendVarint(b, t.Number)
		b = binary.AppendVarint(b, t.Version)
		b = binary.AppendVarint(b, t.UpdatedAt.UnixMicro())
	}
	return sha256.Sum256(b)
}
