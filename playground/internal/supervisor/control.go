package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

const socketName = "control.sock"

// The path of a Unix socket is limited to 107 bytes, and state folders of tests are often longer. The path through the descriptor
// of the folder is always short.
func shortSocketPath(runDir string) (path string, release func(), err error) {
	dir, err := os.Open(runDir)
	if err != nil {
		return "", nil, err
	}
	return filepath.Join(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), socketName), func() { _ = dir.Close() }, nil
}

// ServeControl serves the control socket for `ctl` until the context ends. Only the same user can connect: the socket has mode 0600
// in a folder of mode 0700.
func (s *Supervisor) ServeControl(ctx context.Context, runDir string) error {
	path, release, err := shortSocketPath(runDir)
	if err != nil {
		return fmt.Errorf("open the control socket: %w", err)
	}
	defer release()
	// The lock is held, so an existing socket belongs to a dead run.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the control socket of an earlier run: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("open the control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close() // the first error is reported
		return fmt.Errorf("protect the control socket: %w", err)
	}
	srv := &http.Server{Handler: s.controlHandler(), ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the control socket: %w", err)
	}
	return nil
}

func (s *Supervisor) controlHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, s.Status())
	})
	for verb, do := range map[string]func(string) error{"stop": s.Stop, "kill": s.Kill, "start": s.Start, "restart": s.Restart} {
		mux.HandleFunc("POST /"+verb+"/{name}", func(w http.ResponseWriter, r *http.Request) {
			err := do(r.PathValue("name"))
			switch {
			case errors.Is(err, ErrUnknown):
				writeJSON(w, http.StatusNotFound, controlError{err.Error()})
			case err != nil:
				writeJSON(w, http.StatusConflict, controlError{err.Error()})
			default:
				w.WriteHeader(http.StatusNoContent)
			}
		})
	}
	return mux
}

type controlError struct {
	Error string `json:"error"`
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the client has disconnected
}

// Client sends requests to the supervisor of a run.
type Client struct{ http *http.Client }

// NewClient returns a client for the run whose pid files are in runDir.
func NewClient(runDir string) *Client {
	return &Client{http: &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			path, release, err := shortSocketPath(runDir)
			if err != nil {
				return nil, err
			}
			defer release()
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
	}}}
}

// Status of all processes.
func (c *Client) Status(ctx context.Context) ([]Status, error) {
	var out []Status
	err := c.do(ctx, http.MethodGet, "/status", &out)
	return out, err
}

// Do requests stop, kill, start or restart of one process and waits until it is done.
func (c *Client) Do(ctx context.Context, verb, name string) error {
	return c.do(ctx, http.MethodPost, "/"+verb+"/"+url.PathEscape(name), nil)
}

func (c *Client) do(ctx context.Context, method, path string, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://playground"+path, nil)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("no playground answers (is it running with this --state-dir?): %w", errors.Unwrap(err))
	}
	defer res.Body.Close()
	if res.StatusCode >= 400 {
		var e controlError
		if err := json.NewDecoder(res.Body).Decode(&e); err != nil || e.Error == "" {
			return fmt.Errorf("the playground answered %s", res.Status)
		}
		return errors.New(e.Error)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(out)
}
