// Package webhooksender posts requests to an address that the operator configured: signed by the Standard Webhooks specification, in
// bounded time, and without following redirects. It does not interpret what is posted.
package webhooksender

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/acp-io/acp/internal/loopback"
)

const (
	// Timeout bounds one post, including the response.
	Timeout  = 10 * time.Second
	maxReply = 64 << 10
	// The specification requires keys of at least 24 bytes, because shorter ones can be guessed.
	minKey, maxKey = 24, 64
	keyPrefix      = "whsec_"
	// maxID is the maximum length of the id of a received post, which is stored for some minutes.
	maxID = 256
)

// StatusError is a response whose status is not 2xx.
type StatusError struct {
	Code       int
	RetryAfter time.Duration // 0 if the response has none
}

func (e *StatusError) Error() string {
	if e.Code >= 300 && e.Code < 400 {
		return fmt.Sprintf("the receiver answers %d; redirects are not followed: configure the address that it moved to", e.Code)
	}
	return fmt.Sprintf("the receiver answers %d", e.Code)
}

// Permanent reports whether the receiver would refuse the same post again, because the post itself is wrong.
func (e *StatusError) Permanent() bool {
	switch e.Code {
	case http.StatusBadRequest, http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// ParseURL checks a configured address: it must be https, or http to this machine, and must not contain a password.
func ParseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return nil, errors.New("not a URL such as https://hooks.example.com/acp") // The URL is not shown, because some URLs are secrets.
	}
	if u.User != nil {
		return nil, errors.New("the URL holds a password: the receiver identifies the portal by its signature")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback.Is(u.Hostname())) {
		return nil, errors.New("the URL is not https: only this machine is reached by http")
	}
	return u, nil
}

// NewClient returns an HTTP client that follows no redirects, so that a receiver cannot direct the portal elsewhere,
// and that waits for nothing longer than the timeout.
func NewClient(timeout time.Duration) *http.Client {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 2, MaxConnsPerHost: 8,
		MaxResponseHeaderBytes: 32 << 10,
	}
	return &http.Client{Transport: t, Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Target is a receiver. The key file is read for each post, so that keys can be rotated without a restart. It holds one
// key per line, and each key signs, so that the receiver can change over.
type Target struct {
	URL     *url.URL
	KeyFile string
	Client  *http.Client
	Now     func() time.Time
}

// Post sends a body with an id by which the receiver recognises a repeated delivery. The error is a *StatusError or
// says why there was no response.
func (t *Target) Post(ctx context.Context, id string, body []byte) error {
	keys, err := ReadKeys(t.KeyFile)
	if err != nil {
		return err
	}
	now := t.Now()
	signatures := make([]string, 0, len(keys))
	for _, k := range keys {
		s, err := sign(k, id, now, body)
		if err != nil {
			return err
		}
		signatures = append(signatures, s)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(standardwebhooks.HeaderWebhookID, id)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	_, err = Do(t.Client, req, now)
	return err
}

// Do sends a request and returns the body of a successful response, at most 64 KiB.
func Do(client *http.Client, req *http.Request, now time.Time) ([]byte, error) {
	req.Header.Set("User-Agent", "acp-portal")
	resp, err := client.Do(req) //nolint:gosec // only the operator's configuration names the receiver
	if err != nil {
		var where *url.Error
		if errors.As(err, &where) {
			err = where.Err // Errors are shown, and the URL of some receivers is a secret.
		}
		return nil, fmt.Errorf("the receiver %s does not answer: %w", req.URL.Host, err)
	}
	defer func() { _ = resp.Body.Close() }() // Everything that is needed was read.
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, &StatusError{Code: resp.StatusCode, RetryAfter: retryAfter(resp.Header.Get("Retry-After"), now)}
	}
	if err != nil {
		return nil, fmt.Errorf("the receiver %s does not end its answer: %w", req.URL.Host, err)
	}
	return body, nil
}

// retryAfter parses seconds or a date, and returns 0 for anything else. A receiver cannot ask for more than a day.
func retryAfter(v string, now time.Time) time.Duration {
	d := time.Duration(0)
	if s, err := strconv.ParseInt(v, 10, 32); err == nil {
		d = time.Duration(s) * time.Second
	} else if at, err := http.ParseTime(v); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), 24*time.Hour)
}

func sign(key, id string, at time.Time, body []byte) (string, error) {
	w, err := standardwebhooks.NewWebhook(key)
	if err != nil {
		return "", errors.New("the webhook key cannot be used") // The library's error would contain the key.
	}
	s, err := w.Sign(id, at, body)
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return s, nil
}

// MaxAge is how far the time of a signed post may be from the receiver's clock.
const MaxAge = 5 * time.Minute

// ErrUnsigned means that a post was not signed with one of the keys, or not at about this time.
var ErrUnsigned = errors.New("the post has no valid signature of this time")

// Verify checks a post that a receiver signed with one of its keys, by the same specification as Post, and returns its id. The error is
// ErrUnsigned, or says why the keys cannot be read.
func Verify(keyFile string, header http.Header, body []byte, now time.Time) (id string, err error) {
	keys, err := ReadKeys(keyFile)
	if err != nil {
		return "", err
	}
	id = header.Get(standardwebhooks.HeaderWebhookID)
	at, err := strconv.ParseInt(header.Get(standardwebhooks.HeaderWebhookTimestamp), 10, 64)
	if err != nil || id == "" || len(id) > maxID || now.Sub(time.Unix(at, 0)).Abs() > MaxAge {
		return "", ErrUnsigned
	}
	for _, k := range keys {
		w, err := standardwebhooks.NewWebhook(k)
		if err != nil {
			return "", errors.New("the webhook key cannot be used") // The library's error would contain the key.
		}
		if w.VerifyIgnoringTimestamp(body, header) == nil {
			return id, nil
		}
	}
	return "", ErrUnsigned
}

// MAC returns an HMAC-SHA256 of a text by each key of a file, the newest first, in hexadecimal.
func MAC(keyFile, text string) ([]string, error) {
	keys, err := ReadKeys(keyFile)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(keys))
	for _, k := range keys {
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(k, keyPrefix))
		if err != nil {
			return nil, errors.New("the webhook key cannot be used")
		}
		h := hmac.New(sha256.New, raw)
		h.Write([]byte(text))
		out = append(out, hex.EncodeToString(h.Sum(nil)))
	}
	return out, nil
}

// ReadKeys reads a key file with one key per line, the newest first. A key has the form whsec_<base64 of 24 to 64
// bytes>. Errors name the file and never its content.
func ReadKeys(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the webhook key: %w", err)
	}
	keys := strings.Fields(string(data))
	for _, k := range keys {
		rest, ok := strings.CutPrefix(k, keyPrefix)
		raw, err := base64.StdEncoding.DecodeString(rest)
		if !ok || err != nil || len(raw) < minKey || len(raw) > maxKey {
			return nil, fmt.Errorf(`%s does not hold a webhook key: make one with echo "whsec_$(head -c 32 /dev/urandom | base64)"`, file)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf(`%s is empty: make a key with echo "whsec_$(head -c 32 /dev/urandom | base64)"`, file)
	}
	return keys, nil
}
