package webhooksender

import (
	"context"
	"encoding/base64"
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

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func key(fill string) string {
	return keyPrefix + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(fill, 32)))
}

func keyFile(t *testing.T, keys ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(strings.Join(keys, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func target(t *testing.T, h http.HandlerFunc, keys ...string) *Target {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	u, err := ParseURL(server.URL + "/hook?a=b")
	if err != nil {
		t.Fatal(err)
	}
	client := NewClient(Timeout)
	t.Cleanup(client.CloseIdleConnections)
	return &Target{URL: u, KeyFile: keyFile(t, keys...), Client: client, Now: time.Now}
}

func TestSignatureIsThatOfTheSpecification(t *testing.T) {
	// This is the example of the Standard Webhooks specification.
	got, err := sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
		t.Errorf("want %s, got %s, %v", want, got, err)
	}
}

func TestReceiverVerifies(t *testing.T) {
	var header http.Header
	var body []byte
	x := target(t, func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
	}, key("n"), key("o"))
	if err := x.Post(t.Context(), "T-1", []byte(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{key("n"), key("o")} {
		w, err := standardwebhooks.NewWebhook(k)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Verify(body, header); err != nil {
			t.Errorf("both keys verify while they change over: %v", err)
		}
		if err := w.Verify([]byte(`{"a":2}`), header); err == nil {
			t.Error("another body does not verify")
		}
		replay := header.Clone()
		replay.Set(standardwebhooks.HeaderWebhookTimestamp, "1614265330")
		if err := w.Verify(body, replay); err == nil {
			t.Error("an old timestamp does not verify")
		}
	}
}

func TestAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		answer    http.HandlerFunc
		code      int // 0 for no response
		permanent bool
		after     time.Duration
	}{
		"refused": {"the receiver is broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, 500, false, 0},
		"throttled": {"the receiver says when", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		}, 429, false, 7 * time.Second},
		"greedy": {"not for ever", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "999999999")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, 503, false, 24 * time.Hour},
		"wrong": {"the post itself is wrong", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnprocessableEntity) }, 422, true, 0},
		"moved": {"a redirect is not followed", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, 302, false, 0},
		"dropped": {"the connection ends", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			x := target(t, tc.answer, key("k"))
			err := x.Post(t.Context(), "T-1", []byte("{}"))
			var status *StatusError
			if err == nil || errors.As(err, &status) != (tc.code != 0) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if status != nil && (status.Code != tc.code || status.RetryAfter != tc.after || status.Permanent() != tc.permanent) {
				t.Errorf("%s: %+v", tc.reason, status)
			}
			if strings.Contains(err.Error(), "/hook") {
				t.Errorf("the error holds the path, which may be a secret: %v", err)
			}
		})
	}
}

func TestPostTimesOut(t *testing.T) {
	left := make(chan struct{})
	x := target(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		close(left)
	}, key("k"))
	x.Client = NewClient(50 * time.Millisecond)
	if err := x.Post(t.Context(), "T-1", []byte("{}")); err == nil {
		t.Fatal("a receiver that hangs is an error")
	}
	<-left
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.Post(ctx, "T-1", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a shutdown ends a post: %v", err)
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	for raw, fine := range map[string]bool{
		"https://hooks.example.com/x": true, "http://127.0.0.1:9/x": true, "http://localhost/x": true, "http://[::1]/x": true,
		"http://hooks.example.com": false, "http://169.254.169.254/latest": false, "https://u:secret@hooks.example.com": false,
		"file:///etc/passwd": false, "hooks.example.com": false, "": false, "http://localhost.evil.com/": false,
	} {
		_, err := ParseURL(raw)
		if (err == nil) != fine {
			t.Errorf("%q: fine is %v, got %v", raw, fine, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error contains the password: %v", err)
		}
	}
	for name, text := range map[string]string{
		"empty": "", "no prefix": "c2VjcmV0", "short": "whsec_c2VjcmV0", "no base64": "whsec_" + strings.Repeat("!", 40),
	} {
		x := &Target{URL: &url.URL{Scheme: "http", Host: "127.0.0.1:1"}, KeyFile: keyFile(t, text), Client: http.DefaultClient, Now: time.Now}
		if err := x.Post(t.Context(), "x", nil); err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%s: refused without telling the key, got %v", name, err)
		}
	}
}
