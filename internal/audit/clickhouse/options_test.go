package clickhouse

import (
	"io/fs"
	"strings"
	"testing"
)

func TestParseDSN(t *testing.T) {
	files := func(name string) ([]byte, error) {
		if name != "/run/password" {
			return nil, fs.ErrNotExist
		}
		return []byte("from file\n"), nil
	}
	for name, tc := range map[string]struct {
		reason, dsn string
		password    string
		cluster     string
		tls         bool
		problem     string
	}{
		"Native": {reason: "the native protocol", dsn: "clickhouse://acp:s3cret@db:9000/flows", password: "s3cret"},
		"TLS":    {reason: "with TLS", dsn: "clickhouse://acp:s3cret@db:9440/flows?secure=true", password: "s3cret", tls: true},
		"HTTPS":  {reason: "over https", dsn: "https://acp:s3cret@db:8443/flows", password: "s3cret", tls: true},
		"Cluster": {
			reason: "several servers",
			dsn:    "clickhouse://acp@db1:9000,db2:9000/flows?cluster=fleet&flows_ttl_days=7&rollups_ttl_days=90", cluster: "fleet",
		},
		"File":       {reason: "the password is in a file", dsn: "clickhouse://acp@db:9000/flows?password_file=/run/password", password: "from file"},
		"NoFile":     {reason: "a missing file is reported", dsn: "clickhouse://acp@db:9000/flows?password_file=/none", problem: "password_file"},
		"Scheme":     {reason: "another store", dsn: "postgres://acp:s3cret@db/flows", problem: "begins with"},
		"NoDatabase": {reason: "a database is needed", dsn: "clickhouse://acp:s3cret@db:9000", problem: "a database"},
		"BadCluster": {reason: "the cluster is not a single name", dsn: "clickhouse://acp:s3cret@db:9000/flows?cluster=a%60+b", problem: "not a name"},
		"BadDays":    {reason: "days are a number", dsn: "clickhouse://acp:s3cret@db:9000/flows?flows_ttl_days=0", problem: "number of days"},
		"Unreadable": {reason: "no part of an unreadable address is repeated", dsn: "clickhouse://acp:s3cret%zz@db:9000/flows", problem: "cannot be read"},
		"DriversOwn": {
			reason: "the driver rejects the option", dsn: "clickhouse://acp:s3cret@db:9000/flows?dial_timeout=soon",
			problem: "address of the flow store",
		},
		"PasswordHex": {reason: "special characters are percent-encoded", dsn: "clickhouse://acp:a%40b%2F@db:9000/flows", password: "a@b/"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := ParseDSN(tc.dsn, files)
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("%s: %v, want %q without the password", tc.reason, err, tc.problem)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if o.driver.Auth.Password != tc.password || o.Cluster != tc.cluster || (o.driver.TLS != nil) != tc.tls {
				t.Errorf("%s: got password %q, cluster %q, TLS %v", tc.reason, o.driver.Auth.Password, o.Cluster, o.driver.TLS != nil)
			}
			if tc.password != "" && strings.Contains(o.Redacted(), tc.password) {
				t.Errorf("%s: %s contains the password", tc.reason, o.Redacted())
			}
		})
	}
}

func FuzzParseDSN(f *testing.F) {
	f.Add("clickhouse://acp:s3cret@db:9000/flows?cluster=a&flows_ttl_days=1&secure=true")
	f.Add("http://[::1]:8123/x?compress=lz4")
	f.Add("https://acp@db/flows?password_file=/run/password")
	f.Fuzz(func(t *testing.T, dsn string) {
		const password = "1of-the-file"
		o, err := ParseDSN(dsn, func(string) ([]byte, error) { return []byte(password), nil })
		if err == nil && o.driver == nil {
			t.Errorf("ParseDSN(%q) returns neither options nor an error", dsn)
		}
		if !strings.Contains(dsn, password) && (strings.Contains(o.Redacted(), password) || err != nil && strings.Contains(err.Error(), password)) {
			t.Errorf("ParseDSN(%q) reveals the password: %q, %v", dsn, o.Redacted(), err)
		}
	})
}
