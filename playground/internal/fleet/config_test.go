package fleet

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/csv"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPortsAreRememberedAndAvoided(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ports.json")
	first, err := ChoosePorts(file, []string{"a", "b"})
	if err != nil || first["a"] == 0 || first["a"] == first["b"] {
		t.Fatalf("%v, %v", first, err)
	}
	second, err := ChoosePorts(file, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("free ports must be taken again: -first +second\n%s", diff)
	}
	l, err := net.Listen("tcp", first.Address("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	third, err := ChoosePorts(file, []string{"a", "b", "c"})
	if err != nil || third["a"] == first["a"] || third["b"] != first["b"] || third["c"] == 0 {
		t.Errorf("a taken port must be replaced, the others kept: %v after %v, %v", third, first, err)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ChoosePorts(file, []string{"a"}); err != nil {
		t.Errorf("a torn file must not stop the playground: %v", err)
	}
}

func TestPortalPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	var refused *PortTakenError
	if _, err := PortalPort(taken, true); !errors.As(err, &refused) || refused.Port != taken || !strings.Contains(err.Error(), "--port") {
		t.Errorf("a port that was asked for must not be replaced: %v", err)
	}
	if taken < 65000 {
		if got, err := PortalPort(taken, false); err != nil || got <= taken {
			t.Errorf("a default port moves up: %d after %d, %v", got, taken, err)
		}
	}
}

func TestTokens(t *testing.T) {
	l, err := NewLayout(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first, err := EnsureTokens(l)
	if err != nil {
		t.Fatal(err)
	}
	second, err := EnsureTokens(l)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("tokens must be kept:\n%s", diff)
	}
	seen := map[string]string{}
	for _, cluster := range Clusters() {
		f, err := os.Open(l.tokenFile(cluster))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(f).ReadAll()
		f.Close()
		if err != nil || len(rows) != len(users(cluster)) {
			t.Fatalf("token file of %s: %d rows, %v", cluster, len(rows), err)
		}
		for _, row := range rows {
			if other := seen[row[0]]; other != "" {
				t.Errorf("%s of %s shares a token with %s", row[1], cluster, other)
			}
			seen[row[0]] = row[1] + " of " + cluster
			if masters := strings.Contains(row[3], "system:masters"); masters != (row[2] == Admin) {
				t.Errorf("%s of %s: only the administrator is a master, groups %q", row[1], cluster, row[3])
			}
		}
		if st, err := os.Stat(l.tokenFile(cluster)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("the token file of %s must be the user's only", cluster)
		}
	}
}

func TestPKI(t *testing.T) {
	dir := t.TempDir()
	first, err := EnsurePKI(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := EnsurePKI(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("paths must be stable:\n%s", diff)
	}
	verify := func(caFile string, pair Pair, usage x509.ExtKeyUsage, name string) error {
		t.Helper()
		pool, err := Pool(caFile)
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		_, err = loaded.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage}})
		return err
	}
	for name, err := range map[string]error{
		"API server":    verify(first.ServerCA, first.APIServer, x509.ExtKeyUsageServerAuth, "127.0.0.1"),
		"etcd":          verify(first.EtcdCA, first.Etcd, x509.ExtKeyUsageServerAuth, "127.0.0.1"),
		"etcd client":   verify(first.EtcdCA, first.EtcdClient, x509.ExtKeyUsageClientAuth, ""),
		"flow API":      verify(first.HubbleCA, first.HubbleServer["m1"], x509.ExtKeyUsageServerAuth, "localhost"),
		"flow consumer": verify(first.HubbleCA, first.HubbleClient, x509.ExtKeyUsageClientAuth, ""),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := verify(first.EtcdCA, first.HubbleClient, x509.ExtKeyUsageClientAuth, ""); err == nil {
		t.Error("a flow consumer must not be able to log in to etcd")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.key"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no keys: %v", err)
	}
	for _, f := range files {
		if st, err := os.Stat(f); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s must be the user's only", f)
		}
	}
}

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason, yaml string
		want         int
		wantError    bool
	}{
		"Two":       {"documents are separated", "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\napiVersion: v1\nkind: B\nmetadata: {name: b}\n", 2, false},
		"Empty":     {"comments alone are no object", "# nothing\n---\n# here\n", 0, false},
		"NoName":    {"an object without name cannot be applied", "apiVersion: v1\nkind: A\n", 0, true},
		"Malformed": {"YAML that cannot be read is an error that names the file", "a: [\n", 0, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Parse("some.yaml", []byte(tc.yaml))
			if (err != nil) != tc.wantError || len(got) != tc.want {
				t.Errorf("%s: %d objects, %v", tc.reason, len(got), err)
			}
			if err != nil && !strings.Contains(err.Error(), "some.yaml") {
				t.Errorf("the error does not name the file: %v", err)
			}
		})
	}
}

func TestMembersAreSetUpAsClustersOfOneMesh(t *testing.T) {
	seen := map[string]string{}
	for _, m := range Members() {
		data := ciliumConfig(m).Object["data"].(map[string]any)
		for _, key := range []string{"cluster-name", "cluster-id"} {
			value := key + " " + data[key].(string)
			if other := seen[value]; other != "" || strings.HasSuffix(value, " 0") {
				t.Errorf("%s: %s is taken for %q", m, value, other)
			}
			seen[value] = m
		}
		if data["policy-audit-mode"] != "false" || data["enable-policy"] == "never" {
			t.Errorf("%s refuses nothing: %v", m, data)
		}
	}
}
