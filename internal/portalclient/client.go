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

// maxAnswer is the maximum size of a response in bytes.
const maxAnswer = 64 << 20

// Client is a client of one portal. If the token is empty, it sends requests without credentials.
type Client struct {
	base  *url.URL
	token string
	// language is the language of errors.
	language message.Language
	// userAgent is the name and version of the program.
	userAgent string
	http      *http.Client
}

// Options are the settings of a client that differ between programs. The zero value is that of kubectl acp.
type Options struct {
	// Language is the language of errors; empty means English.
	Language message.Language
	// UserAgent is the name and version of the program; empty means kubectl-acp with its version.
	UserAgent string
	// Transport sends the requests; nil means http.DefaultTransport.
	Transport http.RoundTripper
	// Timeout bounds a call with all that Transport does for it; 0 means two minutes.
	Timeout time.Duration
}

// Error is a problem (RFC 9457) in a response of the portal.
type Error struct {
	Problem
	// Language is the language of the text that Error returns.
	Language message.Language
	// RetryAfter is the delay that the portal requested; 0 if it did not.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	text := e.Message.Render(e.Language)
	if text == "" && e.Detail != nil { // the response is from a proxy or an older portal
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

// CodeOf returns the code of the problem in an error, or "" if there is none.
func CodeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// ParseServer parses a portal's address. It must use https, because a token is sent to it, or be an address of this machine.
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

// New returns a client of the portal at an address that ParseServer returned. Its errors are in the language.
func New(server *url.URL, token string, language message.Language) *Client {
	return NewWithOptions(server, token, Options{Language: language})
}

// NewWithOptions returns a client with the options of a program.
func NewWithOptions(server *url.URL, token string, o Options) *Client {
	agent := cmp.Or(o.UserAgent, "kubectl-acp/"+version.String())
	return &Client{base: server, token: token, language: o.Language, userAgent: agent, http: &http.Client{
		Transport: o.Transport,
		Timeout:   cmp.Or(o.Timeout, 2*time.Minute),
		// The API has no redirects, and one could send the token to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Get requests a path below /api/v1 and decodes the response into out.
func (c *Client) Get(ctx context.Context, path string, query url.Values, out any) error {
	return c.do(ctx, http.MethodGet, path, query, "", nil, out)
}

// Post sends a request that changes something. With an idempotency key it can be repeated safely. It sends no body if body is nil,
// and decodes no response if out is nil.
func (c *Client) Post(ctx context.Context, path, idempotencyKey string, body, out any) error {
	return c.do(ctx, http.MethodPost, path, nil, idempotencyKey, body, out)
}

// Stream copies a response that is not JSON to w.
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

// send returns a response with a successful status. The caller closes its body.
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
	req.Header.Set("User-Agent", c.userAgent)
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
			err = ue.Err // omits the address of the request
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

// Delete deletes the object that a path and a query name.
func (c *Client) Delete(ctx context.Context, path string, query url.Values) error {
	return c.do(ctx, http.MethodDelete, path, query, "", nil, nil)
}
