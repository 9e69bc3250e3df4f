package portalclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/version"
)

// maxAnswer bounds what is read of one answer, in bytes.
const maxAnswer = 64 << 20

// Client of one portal. The zero Token calls without a login.
type Client struct {
	base  *url.URL
	token string
	// language is the language of errors.
	language message.Language
	http     *http.Client
}

// Error is a problem (RFC 9457) that the portal answered with.
type Error struct {
	Problem
	// Language is the language in which Error tells the problem.
	Language message.Language
	// RetryAfter is how long the portal asks to wait; zero: it does not say.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	text := e.Message.Render(e.Language)
	if text == "" && e.Detail != nil { // a proxy, or a portal that is older
		text = *e.Detail
	}
	text = cmp.Or(text, e.Title)
	if e.Fields != nil {
		for _, f := range *e.Fields {
			if m := f.Message.Render(e.Language); m != text {
				text += "\n  " + f.Field + ": " + m
			}
		}
	}
	if e.Status >= http.StatusInternalServerError && e.RequestId != nil {
		text += " (request " + *e.RequestId + ")"
	}
	return text
}

// CodeOf an error; empty: the portal did not answer with a problem.
func CodeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// ParseServer checks a portal's address. A token is sent to it, so it has to be https, or this machine.
func ParseServer(address string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(address, "/"))
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not an address such as https://acp.example.com", address)
	}
	switch host := u.Hostname(); {
	case u.Scheme == "https":
	case u.Scheme == "http" && (host == "localhost" || host == "127.0.0.1" || host == "::1"):
	case u.Scheme == "http":
		return nil, fmt.Errorf("%s: a login is sent only over https", address)
	default:
		return nil, fmt.Errorf("%q is not an address such as https://acp.example.com", address)
	}
	return u, nil
}

// New client of the portal at an address that ParseServer made. Its errors are in the language.
func New(server *url.URL, token string, language message.Language) *Client {
	return &Client{base: server, token: token, language: language, http: &http.Client{
		Timeout: 2 * time.Minute,
		// A redirect could carry the token to another host; the API has none.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Get reads a path below /api/v1 into out.
func (c *Client) Get(ctx context.Context, path string, query url.Values, out any) error {
	return c.do(ctx, http.MethodGet, path, query, "", nil, out)
}

// Post writes; a key makes repeating it harmless. A nil body sends none, a nil out reads none.
func (c *Client) Post(ctx context.Context, path, idempotencyKey string, body, out any) error {
	return c.do(ctx, http.MethodPost, path, nil, idempotencyKey, body, out)
}

// Stream copies an answer that is not JSON.
func (c *Client) Stream(ctx context.Context, path string, query url.Values, w io.Writer) error {
	resp, err := c.send(ctx, http.MethodGet, path, query, "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

func (c *Client) do(ctx context.Context, method, path string, query url.Values, key string, body, out any) error {
	resp, err := c.send(ctx, method, path, query, key, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(out); err != nil {
		return fmt.Errorf("read the answer of %s: %w", path, err)
	}
	return nil
}

// send gives back an answer whose status is fine; the caller closes it.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, key string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request of %s: %w", path, err)
		}
		content = bytes.NewReader(text)
	}
	u := c.base.JoinPath("/api/v1", path)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), content)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", path, err)
	}
	req.Header.Set("User-Agent", "kubectl-acp/"+version.String())
	req.Header.Set("X-ACP-Request", "1")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // without the whole address
		}
		return nil, fmt.Errorf("the portal at %s cannot be reached: %w", c.base, err)
	}
	if resp.StatusCode >= http.StatusOK && resp.StatusCode < http.StatusMultipleChoices {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.problem(resp)
}

func (c *Client) problem(resp *http.Response) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	e := &Error{Language: c.language}
	if kind != "application/problem+json" || json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&e.Problem) != nil {
		return fmt.Errorf("%s answers %s, which is not what an ACP portal says: check the address", c.base, resp.Status)
	}
	if s, err := time.ParseDuration(resp.Header.Get("Retry-After") + "s"); err == nil {
		e.RetryAfter = s
	}
	return e
}

// Delete removes what a path names.
func (c *Client) Delete(ctx context.Context, path string) error {
	return c.do(ctx, http.MethodDelete, path, nil, "", nil, nil)
}
