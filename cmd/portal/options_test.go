package main

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestWrongCallsAreExplained(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"unknown flag":    {"a typing mistake", []string{"--catalogue=x"}, "unknown flag: --catalogue"},
		"argument":        {"nothing is taken without a flag", []string{"--catalog=x", "now"}, `unexpected argument "now"`},
		"no catalog":      {"who owns what", nil, "--catalog or --catalog-backstage is required"},
		"often":           {"a company's Backstage is no file", []string{"--catalog-backstage=https://backstage.example.com", "--catalog-backstage-every=1s"}, "at least 10s"},
		"other interface": {"only a proxy with TLS is reached from elsewhere", []string{"--catalog=x", "--listen=0.0.0.0:8080"}, "use 127.0.0.1:PORT"},
		"other store":     {"a backend that is not there", []string{"--catalog=x", "--database=mysql:x"}, "use sqlite:FILE"},
		"half a URL":      {"a database has a name", []string{"--catalog=x", "--database=postgres://acp@127.0.0.1:port/acp"}, "cannot be read"},
		"password":        {"other users see the command line", []string{"--catalog=x", "--database=postgres://acp:hush@127.0.0.1/acp"}, "--database-url-file"},
		"two databases":   {"one of them would be ignored", []string{"--catalog=x", "--database=sqlite:x", "--database-url-file=y"}, "give one of them"},
		"anchors":         {"not without a pause", []string{"--catalog=x", "--ledger-anchor-every=0s"}, "at least 1s"},
		"addresses":       {"nobody could register", []string{"--catalog=x", "--workload-addresses=0"}, "131072"},
		"window":          {"more than a month is too much to read", []string{"--catalog=x", "--evidence-window=1000h"}, "744h"},
		"threshold":       {"a score has an end", []string{"--catalog=x", "--evidence-threshold=101"}, "between 0 and 100"},
		"metrics":         {"they are for this machine's Prometheus", []string{"--catalog=x", "--metrics-address=:9090"}, "use 127.0.0.1:PORT"},
		"proxy":           {"not an address", []string{"--catalog=x", "--trusted-proxy=proxy.example.com"}, "use an address such as 10.0.0.5"},
		"format":          {"two are known", []string{"--catalog=x", "--log-format=xml"}, "use text or json"},
		"level":           {"four are known", []string{"--catalog=x", "--log-level=loud"}, "--log-level"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if _, err := parse(tc.args, &out); err == nil || !strings.Contains(err.Error(), tc.want) || out.Len() > 0 {
				t.Errorf("%s: want %q, got %v and %q", tc.reason, tc.want, err, out.String())
			}
		})
	}
}

func TestDatabaseFromAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "url")
	for name, tc := range map[string]struct{ reason, content, want, err string }{
		"URL":     {"the line's end is not part of it", "postgres://acp:hush@127.0.0.1/acp\n", "postgres://acp:hush@127.0.0.1/acp", ""},
		"no URL":  {"the file is named, its content is not", "acp:hush", "", "use sqlite:FILE or postgres://"},
		"nothing": {"an empty file is no database", "", "", "use sqlite:FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			o, err := parse([]string{"--catalog=x", "--database-url-file", file}, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			got, err := o.dsn()
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && (!strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "hush")) {
				t.Errorf("%s: got %q, %v", tc.reason, got, err)
			}
		})
	}
}

func TestHelpIsTheOnlyThingWritten(t *testing.T) {
	var out bytes.Buffer
	if _, err := parse([]string{"--help"}, &out); !errors.Is(err, pflag.ErrHelp) || !strings.Contains(out.String(), "--oidc-issuer") {
		t.Errorf("%v, %q", err, out.String())
	}
}

func TestDefaults(t *testing.T) {
	o, err := parse([]string{"--catalog=x", "--listen=127.0.0.1:9"}, t.Output())
	if err != nil || o.publicURL != "http://127.0.0.1:9" || o.logLevel != slog.LevelInfo {
		t.Errorf("%+v, %v", o, err)
	}
}
