package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/acp-io/acp/playground/internal/demo"
)

// person is a user with a session in the portal.
type person struct {
	name   string
	portal string
	http   *http.Client
}

var loginRequest = regexp.MustCompile(`name="request" value="([^"]+)"`)

// login logs a user in as a browser does: through the portal, the form of the provider, and back to the portal.
func login(ctx context.Context, portal, name string) (*person, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	p := &person{name: name, portal: portal, http: &http.Client{Jar: jar}}
	page, at, err := p.page(ctx, http.MethodGet, portal+"/auth/login", nil)
	if err != nil {
		return nil, fmt.Errorf("log in as %s: %w", name, err)
	}
	found := loginRequest.FindStringSubmatch(page)
	if found == nil {
		return nil, fmt.Errorf("log in as %s: the provider showed no login form", name)
	}
	form := url.Values{"request": {found[1]}, "username": {name}, "password": {demo.Password}}
	if _, _, err := p.page(ctx, http.MethodPost, at.ResolveReference(&url.URL{Path: "/login"}).String(), form); err != nil {
		return nil, fmt.Errorf("log in as %s: %w", name, err)
	}
	if err := p.call(ctx, http.MethodGet, "/me", nil, nil); err != nil {
		return nil, fmt.Errorf("log in as %s: %w", name, err)
	}
	return p, nil
}

func (p *person) page(ctx context.Context, method, target string, form url.Values) (string, *url.URL, error) {
	req, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(form.Encode()))
	if err != nil {
		return "", nil, err
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := p.http.Do(req)
	if err != nil {
		return "", nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "", nil, err
	}
	if res.StatusCode >= 400 {
		return "", nil, fmt.Errorf("%s %s: %s", method, res.Request.URL.Path, res.Status)
	}
	return string(body), res.Request.URL, nil
}

// call sends one request to the API. in and out may be nil.
func (p *person) call(ctx context.Context, method, path string, in, out any) error {
	var content io.Reader
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return err
		}
		content = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.portal+"/api/v1"+path, content)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("X-ACP-Request", "1")
	res, err := p.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 400 {
		return fmt.Errorf("%s %s as %s: %s: %s", method, path, p.name, res.Status, data)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

// ticketEvent is an event of the stream about a ticket.
type ticketEvent struct {
	ID    string `json:"id"`
	State string `json:"state"`
	at    time.Time
}

// events reads the event stream of the user until the context ends. It closes the channel when the stream ends.
func (p *person) events(ctx context.Context) (<-chan ticketEvent, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.portal+"/api/v1/events", nil)
	if err != nil {
		return nil, err
	}
	res, err := p.http.Do(req) //nolint:bodyclose // the reading goroutine closes it
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		_ = res.Body.Close()
		return nil, fmt.Errorf("open the event stream: %s", res.Status)
	}
	out := make(chan ticketEvent, 1024)
	go func() {
		defer close(out)
		defer res.Body.Close()
		kind := ""
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			field, value, _ := strings.Cut(lines.Text(), ":")
			value = strings.TrimSpace(value)
			switch field {
			case "event":
				kind = value
			case "data":
				e := ticketEvent{at: time.Now()}
				if kind == "ticket" && json.Unmarshal([]byte(value), &e) == nil {
					out <- e
				}
			}
		}
	}()
	return out, nil
}

// await waits for an event with the state of a ticket and returns the time at which it arrived.
func await(ctx context.Context, events <-chan ticketEvent, id, state string) (time.Time, error) {
	return awaitWithin(ctx, events, id, state, 30*time.Second)
}

// awaitWithin does what await does, with a time limit.
func awaitWithin(ctx context.Context, events <-chan ticketEvent, id, state string, limit time.Duration) (time.Time, error) {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for {
		select {
		case e, ok := <-events:
			switch {
			case !ok:
				return time.Time{}, errors.New("the event stream ended")
			case e.ID == id && e.State == state:
				return e.at, nil
			case e.ID == id && e.State == "failed":
				return time.Time{}, fmt.Errorf("ticket %s failed", id)
			}
		case <-timeout.C:
			return time.Time{}, fmt.Errorf("ticket %s was not %s after %s", id, state, limit)
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
}
