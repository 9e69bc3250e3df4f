package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/playground/internal/memberapi"
)

// writes records the changes of policies in the members.
type writes struct {
	// first and last are the times of the first and the last change since reset, in nanoseconds, and made is their number.
	first, last, made atomic.Int64
	awaited           atomic.Pointer[expectation]
}

// expectation is the content that an object will have in members.
type expectation struct {
	key string
	is  func(object []byte) bool

	mu sync.Mutex
	// at contains when each member had it, by index.
	at map[int]time.Time
	// without are the members that are not waited for.
	without map[int]bool
	members int
	// revision is the revision that the object has then.
	revision string
	done     chan struct{}
}

func (w *writes) record(c memberapi.Change) {
	if c.Resource != memberapi.Policies {
		return
	}
	now := time.Now()
	w.first.CompareAndSwap(0, now.UnixNano())
	w.last.Store(now.UnixNano())
	w.made.Add(1)
	if e := w.awaited.Load(); e != nil && e.key == c.Key && c.Object != nil {
		e.observe(c.Member, c.Object(), now)
	}
}

// reset begins to count anew.
func (w *writes) reset() {
	w.made.Store(0)
	w.last.Store(0)
	w.first.Store(0)
}

// span returns the time between the first and the last change.
func (w *writes) span() time.Duration { return time.Duration(w.last.Load() - w.first.Load()) }

// expect begins to wait for the content of an object in all members but some.
func (w *writes) expect(key string, members int, without map[int]bool, is func([]byte) bool) *expectation {
	e := &expectation{key: key, is: is, at: map[int]time.Time{}, without: without, members: members - len(without), done: make(chan struct{})}
	w.awaited.Store(e)
	return e
}

func (e *expectation) observe(member int, object []byte, now time.Time) {
	if e.without[member] || !e.is(object) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, had := e.at[member]; had {
		return
	}
	e.at[member] = now
	e.revision = revisionOf(object)
	if len(e.at) == e.members {
		close(e.done)
	}
}

// wait waits until all members have the content, and returns when the last one had it, and the revision.
func (e *expectation) wait(ctx context.Context) (time.Time, string, error) {
	select {
	case <-e.done:
	case <-ctx.Done():
		e.mu.Lock()
		defer e.mu.Unlock()
		return time.Time{}, "", fmt.Errorf("%d of %d members have %s: %w", len(e.at), e.members, e.key, ctx.Err())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var last time.Time
	for _, at := range e.at {
		if at.After(last) {
			last = at
		}
	}
	return last, e.revision, nil
}

func revisionOf(object []byte) string {
	var o struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if json.Unmarshal(object, &o) != nil {
		return ""
	}
	return o.Metadata.Labels[v1alpha1.LabelRevision]
}

// admits returns a condition: whether the spec of a policy contains a client.
func admits(app string, wanted bool) func([]byte) bool {
	text := []byte(`"` + app + `"`)
	return func(object []byte) bool {
		_, spec, _ := strings.Cut(string(object), `"spec":`)
		return bytes.Contains([]byte(spec), text) == wanted
	}
}
