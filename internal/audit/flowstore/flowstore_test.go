package flowstore

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/audit"
)

// files returns the content of the files that addresses may name.
func files(name string) ([]byte, error) {
	switch name {
	case "/run/address":
		return []byte("clickhouse://acp:hush@127.0.0.1:1/flows?dial_timeout=1s\n"), nil
	case "/run/password":
		return []byte("hush\n"), nil
	case "/run/nonsense":
		return []byte("clickhouse://acp:hush@127.0.0.1:x/flows"), nil
	}
	return nil, fs.ErrNotExist
}

func TestAddress(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, address string
		problem         string // part of the error of Parse; "" means none
		away            bool   // opening for reading fails while it is missing
	}{
		"SQLite":     {reason: "a file that does not exist yet", address: "sqlite:" + filepath.Join(t.TempDir(), "flows.db")},
		"ClickHouse": {reason: "nothing listens at the port", address: "clickhouse://a:hush@127.0.0.1:1/d?dial_timeout=1s", away: true},
		"HTTP": {
			reason:  "the HTTP protocol, with the password in a file",
			address: "http://a@127.0.0.1:1/d?dial_timeout=1s&password_file=/run/password", away: true,
		},
		"File":       {reason: "the address is in a file", address: "@/run/address", away: true},
		"NoFile":     {reason: "there is no such file", address: "@/run/none", problem: "read it from the file"},
		"Nonsense":   {reason: "the content of the file is not an address", address: "@/run/nonsense", problem: "cannot be read"},
		"NoName":     {reason: "the name of the file is missing", address: "sqlite:", problem: "give it as"},
		"Other":      {reason: "no such backend", address: "mysql://a:hush@h/d", problem: "give it as"},
		"Empty":      {reason: "an empty address", problem: "give it as"},
		"NoDatabase": {reason: "the database is missing", address: "clickhouse://a:hush@h:9000", problem: "needs a host and a database"},
		"NoPort":     {reason: "the port is invalid", address: "clickhouse://a:hush@127.0.0.1:x/d", problem: "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := Parse(tc.address, files)
			if (err == nil) != (tc.problem == "") ||
				err != nil && (!errors.Is(err, ErrAddress) || !strings.Contains(err.Error(), tc.problem) || strings.Contains(err.Error(), "hush")) {
				t.Fatalf("%s: %v; want %q, without the password", tc.reason, err, tc.problem)
			}
			if err != nil {
				return
			}
			if a.Embedded() == tc.away {
				t.Errorf("%s: got Embedded = %v", tc.reason, a.Embedded())
			}
			r, err := a.OpenReader(t.Context())
			if tc.away {
				if r != nil || !errors.Is(err, audit.ErrUnavailable) || strings.Contains(err.Error(), "hush") {
					t.Errorf("%s: %v, %v; want ErrUnavailable, without the password", tc.reason, r, err)
				}
				w, err := a.Open(t.Context())
				if w != nil || !errors.Is(err, audit.ErrUnavailable) || strings.Contains(err.Error(), "hush") {
					t.Errorf("%s, for writing: %v, %v; want ErrUnavailable, without the password", tc.reason, w, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if _, err := r.LastFlow(t.Context()); !errors.Is(err, audit.ErrUnavailable) {
				t.Errorf("read of a missing file: got %v", err)
			}
			w, err := a.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if _, err := r.LastFlow(t.Context()); err != nil {
				t.Errorf("read of an existing file: got %v", err)
			}
		})
	}
}

// TestPasswordInTheFile verifies that the file of an address is read again for its password, as long as it names the same server
// and user.
func TestPasswordInTheFile(t *testing.T) {
	var sent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, sent, _ = r.BasicAuth()
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	at := func(password string) string {
		return strings.Replace(server.URL, "http://", "http://acp:"+password+"@", 1) + "/flows"
	}
	text := at("first")
	a, err := Parse("@/run/address", func(string) ([]byte, error) { return []byte(text), nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ text, want string }{
		{at("first"), "first"}, {at("second"), "second"}, {"nonsense", "second"}, {"sqlite:/flows.db", "second"},
		{strings.Replace(at("other"), "/flows", "/more", 1), "second"}, {strings.Replace(at("other"), "acp:", "eve:", 1), "second"}, {at("third"), "third"},
	} {
		text = step.text
		if _, err := a.OpenReader(t.Context()); err == nil || strings.Contains(err.Error(), step.want) {
			t.Errorf("a server that sends nothing: got %v", err)
		}
		if sent != step.want {
			t.Errorf("with the file content %q: got password %q, want %q", step.text, sent, step.want)
		}
	}
}
