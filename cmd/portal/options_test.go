package main

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/configuration"
)

func TestWrongCallsAreExplained(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"unknown flag": {"a typing mistake", []string{"--catalogue=x"}, "unknown flag: --catalogue"},
		"argument":     {"nothing is taken without a flag", []string{"--catalog=x", "now"}, `unexpected argument "now"`},
		"no catalog":   {"who owns what", nil, "--catalog or --catalog-backstage is required"},
		"often": {
			"a company's Backstage is no file",
			[]string{"--catalog-backstage=https://backstage.example.com", "--catalog-backstage-every=1s"}, "at least 10s",
		},
		"plain": {
			"passwords would cross the network in the clear",
			[]string{"--catalog=x", "--listen=0.0.0.0:8080", "--public-url=https://acp.example.com"},
			"give --tls-cert-file and --tls-key-file, or name the proxies",
		},
		"plain, any": {
			"all interfaces are more than this machine",
			[]string{"--catalog=x", "--listen=:8080", "--public-url=https://acp.example.com"}, "without TLS",
		},
		"half a pair": {"a certificate has a key", []string{"--catalog=x", "--tls-cert-file=x"}, "--tls-cert-file and --tls-key-file are needed together"},
		"no public URL": {
			"the login provider sends people somewhere",
			[]string{"--catalog=x", "--listen=:8080", "--trusted-proxies=10.0.0.1"}, "--public-url is required",
		},
		"public http": {
			"cookies would be sent in the clear",
			[]string{"--catalog=x", "--listen=:8080", "--trusted-proxies=10.0.0.1", "--public-url=http://127.0.0.1:8080"},
			"has to be https",
		},
		"TLS, http": {
			"nobody would get in",
			[]string{"--catalog=x", "--tls-cert-file=x", "--tls-key-file=y", "--public-url=http://127.0.0.1:8080"}, "has to be https",
		},
		"everyone":      {"then nobody is a proxy", []string{"--catalog=x", "--trusted-proxies=0.0.0.0/0"}, "stands for everyone"},
		"no address":    {"a port is missing", []string{"--catalog=x", "--listen=localhost"}, "is not HOST:PORT"},
		"health":        {"a port is missing", []string{"--catalog=x", "--health-address=8081"}, "--health-address"},
		"delay":         {"nothing would be left to end in", []string{"--catalog=x", "--shutdown-delay=20s"}, "more than --shutdown-delay"},
		"action":        {"a timeout never approves", []string{"--catalog=x", "--approval-timeout-action=Approve"}, "use Escalate, Deny or Remind"},
		"reminders":     {"they would fill the inbox", []string{"--catalog=x", "--approval-remind-every=1s"}, "at least 1m0s"},
		"namespace":     {"it has to be somewhere", []string{"--catalog=x", "--namespace="}, "--namespace must not be empty"},
		"secret":        {"other users see the command line", []string{"--catalog=x", "--oidc-client-secret=hush"}, "oidc-client-secret-file"},
		"other store":   {"a backend that is not there", []string{"--catalog=x", "--database=mysql:x"}, "use sqlite:FILE"},
		"half a URL":    {"a database has a name", []string{"--catalog=x", "--database=postgres://acp@127.0.0.1:port/acp"}, "cannot be read"},
		"password":      {"other users see the command line", []string{"--catalog=x", "--database=postgres://acp:hush@127.0.0.1/acp"}, "--database-url-file"},
		"two databases": {"one of them would be ignored", []string{"--catalog=x", "--database=sqlite:x", "--database-url-file=y"}, "give one of them"},
		"anchors":       {"not without a pause", []string{"--catalog=x", "--ledger-anchor-every=0s"}, "at least 1s"},
		"login age":     {"nobody could decide in time", []string{"--catalog=x", "--sensitive-login-max-age=30s"}, "at least 1m"},
		"addresses":     {"nobody could register", []string{"--catalog=x", "--workload-addresses=0"}, "131072"},
		"window":        {"more than a month is too much to read", []string{"--catalog=x", "--evidence-window=1000h"}, "744h"},
		"threshold":     {"a score has an end", []string{"--catalog=x", "--evidence-threshold=101"}, "between 0 and 100"},
		"metrics":       {"a port is missing", []string{"--catalog=x", "--metrics-address=9090"}, "--metrics-address"},
		"proxy":         {"not an address", []string{"--catalog=x", "--trusted-proxies=proxy.example.com"}, "use an address such as 10.0.0.5"},
		"frames":        {"everybody could frame pages", []string{"--catalog=x", "--embed-origins=*"}, "--embed-origins"},
		"issuer":        {"the first login would fail", []string{"--catalog=x", "--oidc-issuer=login.example.com"}, "is not a URL"},
		"format":        {"two are known", []string{"--catalog=x", "--log-format=xml"}, "use text or json"},
		"level":         {"four are known", []string{"--catalog=x", "--log-level=loud"}, "--log-level"},
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
			if got != tc.want || (err == nil) != (tc.err == "") ||
				err != nil && (!strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "hush")) {
				t.Errorf("%s: got %q, %v", tc.reason, got, err)
			}
		})
	}
}

func TestHelpIsTheOnlyThingWritten(t *testing.T) {
	var out bytes.Buffer
	if _, err := parse([]string{"--help"}, &out); !errors.Is(err, configuration.ErrAnswered) || !strings.Contains(out.String(), "--oidc-issuer") {
		t.Errorf("%v, %q", err, out.String())
	}
}

func TestDefaults(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"this machine":           {[]string{"--listen=127.0.0.1:9"}, "http://127.0.0.1:9"},
		"this machine, with TLS": {[]string{"--listen=127.0.0.1:9", "--tls-cert-file=c", "--tls-key-file=k"}, "https://127.0.0.1:9"},
		"TLS of its own":         {[]string{"--listen=:9", "--tls-cert-file=c", "--tls-key-file=k", "--public-url=https://a.example"}, "https://a.example"},
		"behind a proxy":         {[]string{"--listen=10.0.0.1:9", "--trusted-proxies=10.0.0.0/24", "--public-url=https://a.example"}, "https://a.example"},
	} {
		o, err := parse(append([]string{"--catalog=x", "--data-dir=/data"}, tc.args...), t.Output())
		if err != nil || o.publicURL != tc.want || o.logLevel != slog.LevelInfo || o.database != "sqlite:/data/portal.db" ||
			o.flowStore != "sqlite:/data/flows.db" {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
}

// TestErrorsNameWhereASettingComesFrom checks the texts of errors, because the command line is not visible in a pod.
func TestErrorsNameWhereASettingComesFrom(t *testing.T) {
	t.Setenv("ACP_PORTAL_LISTEN", ":8080")
	_, err := parse([]string{"--catalog=x"}, t.Output())
	if err == nil || !strings.Contains(err.Error(), "listen is set by environment variable ACP_PORTAL_LISTEN") {
		t.Error(err)
	}
}
