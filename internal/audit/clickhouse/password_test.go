package clickhouse

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/testenv"
)

// TestPasswordIsReplaced verifies that an open store continues to work when the password is replaced in the server and then in
// the file. In between it is unavailable.
func TestPasswordIsReplaced(t *testing.T) {
	engine, err := url.Parse(testenv.ClickHouse(t))
	if err != nil {
		t.Fatal(err)
	}
	database := strings.Trim(engine.Path, "/")
	own, _ := engine.User.Password()
	var wanted atomic.Pointer[string]
	want := func(s string) { wanted.Store(&s) }
	want("first")
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: engine.Scheme, Host: engine.Host})
		r.Out.SetBasicAuth(engine.User.Username(), own)
		r.Out.Header.Del(passwordHeader)
	}}
	check := func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		if key := r.Header.Get(passwordHeader); key != "" {
			password = key
		}
		if password != *wanted.Load() {
			w.Header().Set("X-ClickHouse-Exception-Code", "516")
			http.Error(w, "Code: 516. DB::Exception: Authentication failed", http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	}
	for name, tc := range map[string]struct {
		server func(http.Handler) *httptest.Server
		more   string
	}{"HTTP": {httptest.NewServer, ""}, "HTTPS": {httptest.NewTLSServer, "&skip_verify=true"}} {
		t.Run(name, func(t *testing.T) {
			want("first")
			server := tc.server(http.HandlerFunc(check))
			defer server.Close()
			u, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			file := "first"
			o, err := ParseDSN(u.Scheme+"://acp@"+u.Host+"/"+database+"?password_file=/run/password"+tc.more, func(string) ([]byte, error) {
				if file == "" {
					return nil, fs.ErrNotExist
				}
				return []byte(file + "\n"), nil
			})
			if err != nil {
				t.Fatal(err)
			}
			r, err := OpenReader(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			ask := func() error { return r.conn.Exec(t.Context(), "SELECT 1") }
			if err := ask(); err != nil {
				t.Fatal(err)
			}
			want("second")
			if err := writeError(t.Context(), ask()); !errors.Is(err, audit.ErrUnavailable) || strings.Contains(err.Error(), "first") {
				t.Errorf("with the old password: %v", err)
			}
			file = "" // in the middle of a replacement
			if err := ask(); err == nil {
				t.Error("the old password is accepted")
			}
			file = "second"
			if err := ask(); err != nil {
				t.Errorf("with the new password: %v", err)
			}
			file = ""
			if err := ask(); err != nil {
				t.Errorf("the password that was read last: %v", err)
			}
		})
	}
}

// TestPasswordOfNewConnections verifies that each connection over the native protocol authenticates with the current password.
func TestPasswordOfNewConnections(t *testing.T) {
	file := "first"
	o, err := ParseDSN("clickhouse://acp@db:9000/flows?password_file=/run/password", func(string) ([]byte, error) { return []byte(file), nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, file = range []string{"first", "second"} {
		got := ""
		_, err := o.driver.DialStrategy(t.Context(), 1, o.driver, func(_ context.Context, _ string, now *driver.Options) (driver.DialResult, error) {
			got = now.Auth.Password
			return driver.DialResult{}, nil
		})
		if err != nil || got != file {
			t.Errorf("dialed with %q, want %q: %v", got, file, err)
		}
	}
	if o.driver.Auth.Password != "first" {
		t.Error("the options that connections share were changed")
	}
}
