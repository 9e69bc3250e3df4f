package auditlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Stream writes to something that is open, such as the standard output.
type Stream struct{ W io.Writer }

// Write implements Output.
func (s Stream) Write(_ context.Context, lines []byte) error {
	_, err := s.W.Write(lines)
	return err
}

// Close implements Output; the stream stays open.
func (Stream) Close() error { return nil }

// File writes to a file, which only its owner may read, and starts a new one when it has the size. The full ones are PATH.1,
// the newest, and so on.
type File struct {
	path    string
	maxSize int64
	keep    int
	file    *os.File
	size    int64
}

// NewFile opens the file, to append.
func NewFile(path string, maxSize int64, keep int) (*File, error) {
	f := &File{path: path, maxSize: maxSize, keep: keep}
	return f, f.open()
}

func (f *File) open() error {
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the tap's file: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("look at the tap's file: %w", err), file.Close())
	}
	f.file, f.size = file, info.Size()
	return nil
}

// Write implements Output.
func (f *File) Write(_ context.Context, lines []byte) error {
	if f.file == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	if f.size > 0 && f.size+int64(len(lines)) > f.maxSize {
		if err := f.rotate(); err != nil {
			return err
		}
	}
	n, err := f.file.Write(lines)
	if err != nil && n > 0 {
		// Half a line would make two unreadable.
		err = errors.Join(err, f.file.Truncate(f.size))
		n = 0
	}
	f.size += int64(n)
	if err != nil {
		return fmt.Errorf("write the tap's file: %w", err)
	}
	return nil
}

func (f *File) rotate() error {
	if err := f.Close(); err != nil {
		return fmt.Errorf("rotate the tap's file: %w", err)
	}
	for i := f.keep; i > 0; i-- {
		from := fmt.Sprintf("%s.%d", f.path, i-1)
		if i == 1 {
			from = f.path
		}
		if err := os.Rename(from, fmt.Sprintf("%s.%d", f.path, i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rotate the tap's file: %w", err)
		}
	}
	return f.open()
}

// Close implements Output.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}

// Webhook posts lines as application/x-ndjson and expects a 2xx. What fails is tried again for a short while, in which lines
// gather in the queue.
type Webhook struct {
	url    string
	token  func() (string, error)
	client *http.Client
	wait   time.Duration
}

// attempts is how often lines are posted, with growing pauses in between.
const attempts = 4

// NewWebhook checks the address: https, or http on this machine. The token, when there is one, is sent as a bearer; it is asked for
// at each post, so it can be replaced.
func NewWebhook(address string, token func() (string, error), client *http.Client) (*Webhook, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the tap's webhook is no URL")
	}
	local := u.Hostname() == "127.0.0.1" || u.Hostname() == "::1" || u.Hostname() == "localhost"
	if u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return nil, errors.New("the tap's webhook needs https://HOST/...: the audit log is not sent in the clear")
	}
	c := *client
	c.Timeout = 10 * time.Second
	// A redirect could lead the log and the token elsewhere.
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Webhook{url: address, token: token, client: &c, wait: time.Second}, nil
}

// Write implements Output.
func (w *Webhook) Write(ctx context.Context, lines []byte) error {
	var last error
	for i := range attempts {
		if i > 0 {
			t := time.NewTimer(w.wait << (i - 1))
			select {
			case <-ctx.Done():
				t.Stop()
				return errors.Join(ctx.Err(), last)
			case <-t.C:
			}
		}
		var again bool
		if again, last = w.post(ctx, lines); last == nil || !again {
			return last
		}
	}
	return last
}

func (w *Webhook) post(ctx context.Context, lines []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(lines))
	if err != nil {
		return false, fmt.Errorf("post to the tap's webhook: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	if w.token != nil {
		token, err := w.token()
		if err != nil {
			return true, err // it may just be being replaced
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		var ue *url.Error // its text has the address, which may hold a secret
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return true, fmt.Errorf("post to the tap's webhook: %w", err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // only so that the connection can be used again
	if resp.StatusCode/100 == 2 {
		return false, nil
	}
	// A token that is refused may just be being replaced.
	again = resp.StatusCode/100 == 5 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusUnauthorized
	return again, fmt.Errorf("the tap's webhook answered %s", strings.TrimSpace(resp.Status))
}

// Close implements Output.
func (w *Webhook) Close() error {
	w.client.CloseIdleConnections()
	return nil
}
