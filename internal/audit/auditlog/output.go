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

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/internal/backoff"
)

// Stream is an Output that writes to an open writer, such as the standard output.
type Stream struct{ W io.Writer }

// Write implements Output.
func (s Stream) Write(_ context.Context, lines []byte) error {
	_, err := s.W.Write(lines)
	return err
}

// Close implements Output. It leaves the stream open.
func (Stream) Close() error { return nil }

// File is an Output that appends to a file that only its owner may read, and rotates it when it would exceed the maximum size.
// Rotated files are named PATH.1 (the newest), PATH.2, and so on.
type File struct {
	path    string
	maxSize int64
	keep    int
	file    *os.File
	size    int64
}

// NewFile opens or creates the file for appending. maxSize is in bytes; keep is the number of rotated files to keep.
func NewFile(path string, maxSize int64, keep int) (*File, error) {
	f := &File{path: path, maxSize: maxSize, keep: keep}
	return f, f.open()
}

func (f *File) open() error {
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the audit log file: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("stat the audit log file: %w", err), file.Close())
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
		// A partial line would make two lines unreadable.
		err = errors.Join(err, f.file.Truncate(f.size))
		n = 0
	}
	f.size += int64(n)
	if err != nil {
		return fmt.Errorf("write the audit log file: %w", err)
	}
	return nil
}

func (f *File) rotate() error {
	if err := f.Close(); err != nil {
		return fmt.Errorf("rotate the audit log file: %w", err)
	}
	for i := f.keep; i > 0; i-- {
		from := fmt.Sprintf("%s.%d", f.path, i-1)
		if i == 1 {
			from = f.path
		}
		if err := os.Rename(from, fmt.Sprintf("%s.%d", f.path, i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rotate the audit log file: %w", err)
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

// Webhook is an Output that posts lines as application/x-ndjson and expects a 2xx status. It retries temporary failures for a few
// seconds; meanwhile lines gather in the Writer's queue.
type Webhook struct {
	url    string
	token  func() (string, error)
	client *http.Client
	wait   time.Duration
}

// attempts is how often a batch is posted before it is dropped. The pauses between attempts double.
const attempts = 4

// NewWebhook returns a Webhook for the address, which must be https, or http on this machine. If token is not nil, its result is
// sent as a bearer token; it is called for each post, so that the token can be replaced.
func NewWebhook(address string, token func() (string, error), client *http.Client) (*Webhook, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the audit log's webhook address is not a URL")
	}
	local := u.Hostname() == "127.0.0.1" || u.Hostname() == "::1" || u.Hostname() == "localhost"
	if u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return nil, errors.New("the audit log's webhook needs https://HOST/...: the audit log is not sent in the clear")
	}
	c := *client
	c.Timeout = 10 * time.Second
	// A redirect could send the log and the token to another server.
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Webhook{url: address, token: token, client: &c, wait: time.Second}, nil
}

// Write implements Output.
func (w *Webhook) Write(ctx context.Context, lines []byte) error {
	delays := wait.Backoff{Duration: w.wait, Factor: 2, Steps: attempts}
	var last error
	for i := range attempts {
		if i > 0 {
			if !backoff.Pause(ctx, clock.RealClock{}, delays.Step()) {
				return errors.Join(ctx.Err(), last)
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
		return false, fmt.Errorf("post to the audit log's webhook: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	if w.token != nil {
		token, err := w.token()
		if err != nil {
			return true, err // the token file may be in the middle of a replacement
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		var ue *url.Error // its text contains the address, which may contain a secret
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return true, fmt.Errorf("post to the audit log's webhook: %w", err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // reading the body lets the connection be reused
	if resp.StatusCode/100 == 2 {
		return false, nil
	}
	// A rejected token may be in the middle of a replacement.
	again = resp.StatusCode/100 == 5 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusUnauthorized
	return again, fmt.Errorf("the audit log's webhook answered %s", strings.TrimSpace(resp.Status))
}

// Close implements Output.
func (w *Webhook) Close() error {
	w.client.CloseIdleConnections()
	return nil
}
