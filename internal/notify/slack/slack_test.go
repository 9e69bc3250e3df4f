package slack

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/webhooksender"
)

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func parcel() notify.Notification {
	return notify.Notification{
		ID:   "1",
		To:   notify.Recipient{Person: "bob", Email: "bob+acp@example.com"},
		Open: "Open",
		Text: notify.Text{
			Title: "T-7: <!channel> & <@U1> ask",
			Body:  "Reason: <https://evil.example.com|click> " + strings.Repeat("x", 4000),
			Link:  "https://acp.example.com/tickets/T-7",
		},
	}
}

// workspace imitates Slack's API.
type workspace struct {
	lookup, post string // response bodies
	status       int
	asked        []string
	posted       post
}

func (w *workspace) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer xoxb-1" {
		_, _ = io.WriteString(rw, `{"ok":false,"error":"invalid_auth"}`)
		return
	}
	w.asked = append(w.asked, r.URL.String())
	if w.status != 0 {
		rw.Header().Set("Retry-After", "3")
		rw.WriteHeader(w.status)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/users.lookupByEmail") {
		_, _ = io.WriteString(rw, w.lookup)
		return
	}
	_ = json.NewDecoder(r.Body).Decode(&w.posted)
	_, _ = io.WriteString(rw, w.post)
}

func bot(t *testing.T, h http.Handler) *Bot {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL + "/api")
	if err != nil {
		t.Fatal(err)
	}
	client := webhooksender.NewClient(webhooksender.Timeout)
	t.Cleanup(client.CloseIdleConnections)
	return &Bot{API: u, TokenFile: file(t, "xoxb-1"), Client: client, Now: time.Now}
}

func TestDirectMessage(t *testing.T) {
	w := &workspace{lookup: `{"ok":true,"user":{"id":"U42"}}`, post: `{"ok":true}`}
	if err := bot(t, w).Send(t.Context(), parcel()); err != nil {
		t.Fatal(err)
	}
	if len(w.asked) != 2 || w.asked[0] != "/api/users.lookupByEmail?email=bob%2Bacp%40example.com" || w.posted.Channel != "U42" {
		t.Errorf("got requests %v and posts %+v, want the person with that address", w.asked, w.posted)
	}
	if w.posted.Text != "T-7: &lt;!channel&gt; &amp; &lt;@U1&gt; ask" || w.posted.UnfurlLinks {
		t.Errorf("got %+v, want no mention", w.posted)
	}
	if len(w.posted.Blocks) != 3 || w.posted.Blocks[2].Elements[0].URL != "https://acp.example.com/tickets/T-7" {
		t.Fatalf("got blocks %+v", w.posted.Blocks)
	}
	for i, most := range []int{maxHeader, maxSection} {
		b := w.posted.Blocks[i].Text
		if b.Type != "plain_text" || utf8.RuneCountInString(b.Text) > most {
			t.Errorf("block %d: got type %s and %d characters, want plain_text within the limit", i, b.Type, len(b.Text))
		}
	}
}

func TestAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		w         *workspace
		permanent bool
		after     time.Duration
	}{
		"nobody":    {"Slack does not know the address", &workspace{lookup: `{"ok":false,"error":"users_not_found"}`}, true, 0},
		"revoked":   {"the token is replaced by an operator", &workspace{lookup: `{"ok":false,"error":"token_revoked"}`}, false, 0},
		"no blocks": {"the message is wrong", &workspace{lookup: `{"ok":true}`, post: `{"ok":false,"error":"invalid_blocks"}`}, true, 0},
		"throttled": {"Slack says when", &workspace{status: http.StatusTooManyRequests}, false, 3 * time.Second},
		"broken":    {"a proxy answers", &workspace{lookup: `<html>`}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			err := bot(t, tc.w).Send(t.Context(), parcel())
			var p *notify.Problem
			if err == nil || (errors.As(err, &p) && p.Permanent) != tc.permanent || p != nil && p.RetryAfter != tc.after {
				t.Errorf("%s: %+v", tc.reason, err)
			}
		})
	}
	b := bot(t, &workspace{})
	b.TokenFile = file(t, "xoxb-wrong")
	if err := b.Send(t.Context(), parcel()); err == nil || strings.Contains(err.Error(), "xoxb") {
		t.Errorf("got %v, want an error without the token", err)
	}
}

func TestIncoming(t *testing.T) {
	var got post
	answer := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&got)
		w.WriteHeader(answer)
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(server.Close)
	s := &IncomingWebhook{URLFile: file(t, server.URL+"/services/T0/B0/s3cret"), Client: webhooksender.NewClient(webhooksender.Timeout), Now: time.Now}
	if err := s.Send(t.Context(), parcel()); err != nil || got.Channel != "" || len(got.Blocks) != 3 {
		t.Errorf("got post %+v %v", got, err)
	}
	answer = http.StatusForbidden
	if err := s.Send(t.Context(), parcel()); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("rejected: got %v, want an error without the address", err)
	}
	server.Close()
	if err := s.Send(t.Context(), parcel()); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("unreachable: got %v, want an error without the address", err)
	}
	for _, bad := range []string{"http://169.254.169.254/s3cret", "s3cret", ""} {
		s.URLFile = file(t, bad)
		if err := s.Send(t.Context(), parcel()); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("ReadURL(%q): got %v, want an error", bad, err)
		}
	}
}
