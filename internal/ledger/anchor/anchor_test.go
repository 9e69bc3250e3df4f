package anchor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/webhooksender"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// memoryLedger is a ledger.Reader in memory.
type memoryLedger struct {
	lines []ledger.Line
	err   error
}

func (b *memoryLedger) write(t *testing.T, actor string, n int) {
	t.Helper()
	for range n {
		last := ledger.Line{Hash: ledger.Genesis}
		if len(b.lines) > 0 {
			last = b.lines[len(b.lines)-1]
		}
		l, err := ledger.Append(last.Seq, last.Hash, ledger.Entry{At: start, Actor: actor})
		if err != nil {
			t.Fatal(err)
		}
		b.lines = append(b.lines, l)
	}
}

func (b *memoryLedger) List(context.Context, ledger.Filter) ([]ledger.Line, int64, error) {
	return nil, 0, errors.New("List is not used")
}

func (b *memoryLedger) Lines(_ context.Context, from int64) iter.Seq2[ledger.Line, error] {
	return func(yield func(ledger.Line, error) bool) {
		for _, l := range b.lines[from-1:] {
			if !yield(l, nil) {
				return
			}
		}
	}
}

func (b *memoryLedger) Line(_ context.Context, seq int64) (ledger.Line, bool, error) {
	if seq > int64(len(b.lines)) {
		return ledger.Line{}, false, b.err
	}
	return b.lines[seq-1], true, b.err
}

func (b *memoryLedger) Last(context.Context) (ledger.Line, bool, error) {
	if len(b.lines) == 0 {
		return ledger.Line{}, false, b.err
	}
	return b.lines[len(b.lines)-1], true, b.err
}

func keeper(b *memoryLedger, log io.Writer, anchors ...Anchor) *Keeper {
	at := start
	return &Keeper{Ledger: b, Anchors: anchors, Every: time.Hour, Log: slog.New(slog.NewTextHandler(log, nil)),
		Now: func() time.Time { at = at.Add(time.Minute); return at }}
}

// check verifies the ledger against the heads of the anchors.
func check(t *testing.T, b *memoryLedger, anchors ...Anchor) (ledger.Report, error) {
	t.Helper()
	w, err := Witnesses(t.Context(), anchors)
	if err != nil {
		t.Fatal(err)
	}
	return ledger.Check(b.Lines(t.Context(), 1), 1, w)
}

func seqs(heads []ledger.Head) (out []int64) {
	for _, h := range heads {
		out = append(out, h.Seq)
	}
	return out
}

// story tests what every readable anchor must do.
func story(t *testing.T, a Anchor) {
	b := &memoryLedger{}
	k := keeper(b, io.Discard, a)
	round := func() {
		t.Helper()
		if err := k.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	round()
	if heads, err := a.Heads(t.Context()); err != nil || len(heads) != 0 {
		t.Fatalf("heads of an empty ledger: got %v %v, want none", heads, err)
	}
	b.write(t, "bob", 3)
	round()
	round() // nothing has changed
	b.write(t, "bob", 2)
	// Another replica, without state in memory, continues.
	k = keeper(b, io.Discard, a)
	round()
	heads, err := a.Heads(t.Context())
	if d := cmp.Diff([]int64{3, 5}, seqs(heads)); err != nil || d != "" {
		t.Fatalf("heads after each change: got error %v, diff %s", err, d)
	}
	r, err := check(t, b, a)
	if err != nil || r.Covered == nil || r.Covered.Line != 5 || !r.Covered.Since.Equal(heads[0].At) {
		t.Errorf("coverage since the first head: got %+v %v", r.Covered, err)
	}
	// An attacker who controls the database writes another consistent chain.
	whole := b.lines
	b.lines = slices.Clone(whole[:1])
	b.write(t, "mallory", 9)
	if _, _, err := ledger.Verify(b.Lines(t.Context(), 1)); err != nil {
		t.Fatalf("Verify of the forged chain: got %v, want no error", err)
	}
	var broken *ledger.BrokenError
	if _, err := check(t, b, a); !errors.As(err, &broken) || broken.Seq != 3 {
		t.Errorf("Check of the forged chain against the anchor: got %v", err)
	}
	if err := k.Round(t.Context()); !errors.Is(err, ErrMismatch) {
		t.Errorf("Round with the forged chain: got %v", err)
	}
	b.lines = whole[:4]
	if err := k.Round(t.Context()); !errors.Is(err, ErrMismatch) {
		t.Errorf("Round with missing lines: got %v", err)
	}
	if after, err := a.Heads(t.Context()); err != nil || cmp.Diff(heads, after) != "" {
		t.Errorf("the anchor was changed after a mismatch: got %v %v", after, err)
	}
}

func TestFile(t *testing.T) {
	file := &File{Path: filepath.Join(t.TempDir(), "heads.jsonl")}
	story(t, file)
	if st, err := os.Stat(file.Path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v %v, want access for the owner only", st.Mode(), err)
	}
	f, err := os.OpenFile(file.Path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"seq":6,"ha`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Keep(t.Context(), ledger.Head{Seq: 6}); err == nil || !strings.Contains(err.Error(), "not whole") {
		t.Errorf("Keep after an incomplete line: got %v", err)
	}
	var form *ledger.FormatError
	if _, err := file.Heads(t.Context()); !errors.As(err, &form) || form.Line != 3 {
		t.Errorf("Heads with an incomplete line: got %v", err)
	}
	lost := &File{Path: filepath.Join(t.TempDir(), "no", "heads.jsonl")}
	if err := lost.Keep(t.Context(), ledger.Head{Seq: 1}); err == nil {
		t.Error("Keep in a missing directory succeeded")
	}
}

func TestWebhook(t *testing.T) {
	const key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="
	type post struct {
		id   string
		body []byte
	}
	posts := make(chan post, 9)
	answer := http.StatusNoContent
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		v, err := standardwebhooks.NewWebhook(key)
		if err == nil {
			err = v.Verify(body, r.Header)
		}
		if err != nil {
			t.Error(err)
		}
		posts <- post{r.Header.Get(standardwebhooks.HeaderWebhookID), body}
		w.WriteHeader(answer)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := webhooksender.ParseURL(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	a := &Webhook{Target: &webhooksender.Target{URL: u, KeyFile: file, Client: webhooksender.NewClient(webhooksender.Timeout), Now: time.Now}}
	b := &memoryLedger{}
	b.write(t, "bob", 2)
	var log bytes.Buffer
	k := keeper(b, &log, a)

	answer = http.StatusInternalServerError
	if err := k.Round(t.Context()); err == nil {
		t.Error("Round succeeded although the receiver rejected the head")
	}
	answer = http.StatusNoContent
	for range 2 { // the second round has nothing new
		if err := k.Round(t.Context()); err != nil {
			t.Error(err)
		}
	}
	first, again := <-posts, <-posts
	if first.id != again.id || len(posts) != 0 {
		t.Errorf("a retried head must have the same ID: got %s and %s, and %d further posts", first.id, again.id, len(posts))
	}
	var got struct {
		Type string
		Head ledger.Head
	}
	if err := json.Unmarshal(again.body, &got); err != nil || got.Type != "ledger.head" || got.Head.Seq != 2 || got.Head.Hash != b.lines[1].Hash {
		t.Errorf("posted head: got %s %v", again.body, err)
	}
	b.lines = b.lines[:1]
	if err := k.Round(t.Context()); !errors.Is(err, ErrMismatch) || !strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("Round must detect a change of the posted line: got %v, log %s", err, log.String())
	}
}

func TestFailingAnchorDoesNotDelayOthers(t *testing.T) {
	b := &memoryLedger{}
	b.write(t, "bob", 1)
	good := &File{Path: filepath.Join(t.TempDir(), "heads.jsonl")}
	bad := &File{Path: filepath.Join(t.TempDir(), "no", "heads.jsonl")}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the round at shutdown has a timeout of its own
	keeper(b, io.Discard, bad, good).Run(ctx)
	if heads, err := good.Heads(t.Context()); err != nil || len(heads) != 1 {
		t.Errorf("heads after shutdown: got %v %v", heads, err)
	}
	if _, err := Witnesses(t.Context(), []Anchor{&File{Path: t.TempDir()}, good}); err == nil {
		t.Error("Witnesses returned no error for an unreadable anchor")
	}
}

func TestThinnedKeepsTheEndsAndTheOrder(t *testing.T) {
	var kept []ledger.Head
	for i := range 20 * maxHeads {
		kept = thinned(append(kept, ledger.Head{Seq: int64(i + 1), Hash: fmt.Sprint(i)}))
		if len(kept) > maxHeads || kept[0].Seq != 1 || kept[len(kept)-1].Seq != int64(i+1) {
			t.Fatalf("after %d heads: got %d heads from %d to %d", i+1, len(kept), kept[0].Seq, kept[len(kept)-1].Seq)
		}
	}
	if !slices.IsSortedFunc(kept, func(a, b ledger.Head) int { return int(a.Seq - b.Seq) }) {
		t.Error("thinned changed the order")
	}
}

func TestParse(t *testing.T) {
	good := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(good, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Parse([]string{"configmap", "none", "file:/a:b", "webhook:https://hooks.example.com/x?a=b,c," + good}, nil, "")
	if err != nil || len(got) != 3 || got[1].Name() != "file /a:b" || got[2].Name() != "webhook hooks.example.com" {
		t.Errorf("Parse: got %v %v", got, err)
	}
	for _, bad := range []string{
		"", "file:", "file", "webhook:https://hooks.example.com",
		"webhook:http://hooks.example.com," + good, "webhook:https://h.example.com,missing", "etcd",
	} {
		if _, err := Parse([]string{bad}, nil, ""); err == nil {
			t.Errorf("Parse(%q) succeeded, want an error", bad)
		}
	}
}
