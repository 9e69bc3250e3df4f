package metrics

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/acp-io/acp/internal/federation"
)

// authority returns a certificate authority that ends at an instant, as PEM.
func authority(t *testing.T, end time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotBefore: end.AddDate(-1, 0, 0), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestAuthorities checks that the end of a member's authority is exported, the last one while two are in use, and none where none can be read.
func TestAuthorities(t *testing.T) {
	first, second := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2035, 1, 1, 0, 0, 0, 0, time.UTC)
	broken := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("no certificate")})
	clusters := []federation.Cluster{
		{Name: "one", CABundle: authority(t, first)},
		{Name: "two", CABundle: bytes.Join([][]byte{broken, authority(t, second), authority(t, first)}, nil)},
		{Name: "system"},
		{Name: "broken", CABundle: broken},
	}
	reg := prometheus.NewRegistry()
	if err := (Authorities{Clusters: func() []federation.Cluster { return clusters }}).Register(reg); err != nil {
		t.Fatal(err)
	}
	const name = "acp_member_authority_end_timestamp_seconds"
	want := fmt.Sprintf("# HELP %s When the last certificate authority ends by which the API server of a member is verified; "+
		"absent if the registration contains none.\n", name)
	want += fmt.Sprintf(`# TYPE %[1]s gauge
%[1]s{cluster="one"} %[2]d
%[1]s{cluster="two"} %[3]d
`, name, first.Unix(), second.Unix())
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), name); err != nil {
		t.Error(err)
	}
	if err := (Authorities{}).Register(nil); err != nil {
		t.Errorf("without a registry: %v", err)
	}
}
