package flowstore

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/audit"
)

func TestOpenReader(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, address string
		opens           bool
		want            error
	}{
		"SQLite":     {reason: "a file that comes later", address: "sqlite:" + filepath.Join(t.TempDir(), "flows.db"), opens: true},
		"NoFile":     {reason: "the file has no name", address: "sqlite:", want: ErrAddress},
		"Other":      {reason: "no such backend", address: "mysql://a:secret@h/d", want: ErrAddress},
		"Empty":      {reason: "nothing", want: ErrAddress},
		"ClickHouse": {reason: "nobody listens there", address: "clickhouse://a:secret@127.0.0.1:1/d?dial_timeout=1s", want: audit.ErrUnavailable},
		"NoDSN":      {reason: "not readable", address: "clickhouse://a:secret@127.0.0.1:x/d", want: ErrAddress},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := OpenReader(t.Context(), tc.address)
			if (err == nil) != tc.opens || !errors.Is(err, tc.want) || (r != nil) != tc.opens {
				t.Fatalf("%s: %v, %v; want %v", tc.reason, r, err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error tells the password: %v", err)
			}
			if r == nil {
				return
			}
			defer r.Close()
			if _, err := r.LastFlow(t.Context()); !errors.Is(err, audit.ErrUnavailable) {
				t.Errorf("reading what is not there: %v", err)
			}
		})
	}
}
