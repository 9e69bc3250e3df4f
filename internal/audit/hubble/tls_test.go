package hubble

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
)

type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	return authority{}.sign(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
}

// sign issues a certificate. An authority without a certificate signs its own.
func (a authority) sign(t *testing.T, template *x509.Certificate) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "test"}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert, key}
}

func (a authority) pem(t *testing.T) (cert, key []byte) {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// files writes a client's certificate of the authority over the existing files.
func (a authority) files(t *testing.T, dir string) TLSFiles {
	t.Helper()
	f := TLSFiles{CA: filepath.Join(dir, "ca.crt"), Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), ServerName: "relay.test"}
	ca, _ := a.pem(t)
	cert, key := a.sign(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}).pem(t)
	for path, data := range map[string][]byte{f.CA: ca, f.Cert: cert, f.Key: key} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// server returns credentials that accept clients of the authority only.
func (a authority) server(t *testing.T, name string) credentials.TransportCredentials {
	t.Helper()
	cert, key := a.sign(t, &x509.Certificate{DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}).pem(t)
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return credentials.NewTLS(
		&tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13},
	)
}

func TestRenewedCertificatesNeedNoRestart(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	files := ca.files(t, dir)
	o, l := newObserver(), newMemorySink()
	cfg := config(serve(t, o, ca.server(t, "relay.test")), l)
	cfg.Credentials, cfg.Version, cfg.VersionEvery = files.Credentials, files.Version, time.Millisecond
	o.emit(verdicts(0, 5)...)
	start(t, cfg)
	l.until(t, "flows with the first certificate", func(l *memorySink) bool { return l.takenIn == 5 })
	before := files.Version()
	for files.Version() == before { // until the clock of the file system has advanced
		ca.files(t, dir)
	}
	sessions := func() int {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.sessions)
	}
	for sessions() < 2 {
		select {
		case <-t.Context().Done():
			t.Fatal("ended while waiting for a connection with the new certificate")
		case <-time.After(time.Millisecond):
		}
	}
	o.emit(verdicts(5, 8)...)
	l.until(t, "flows with the second certificate", func(l *memorySink) bool { return l.takenIn == 8 })
	if got := l.total(); got != 8 {
		t.Errorf("got %d connections, want 8", got)
	}
}

func TestUntrustedPeersAreRejected(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	for name, tc := range map[string]struct {
		reason  string
		server  credentials.TransportCredentials
		files   TLSFiles
		problem string
	}{
		"Server": {"a server of another authority", theirs.server(t, "relay.test"), ours.files(t, t.TempDir()), "certificate"},
		"Name":   {"a server with another name", ours.server(t, "other.test"), ours.files(t, t.TempDir()), "relay.test"},
		"Client": {"a client that the server rejects", ours.server(t, "relay.test"), func() TLSFiles {
			f := theirs.files(t, t.TempDir())
			f.CA = ours.files(t, t.TempDir()).CA
			return f
		}(), "certificate"},
		"NoFile": {"a missing file", ours.server(t, "relay.test"), TLSFiles{CA: "missing.crt"}, "missing.crt"},
	} {
		t.Run(name, func(t *testing.T) {
			o, l := newObserver(), newMemorySink()
			cfg := config(serve(t, o, tc.server), l)
			cfg.Credentials = tc.files.Credentials
			o.emit(verdicts(0, 1)...)
			f, _ := start(t, cfg)
			for !strings.Contains(f.State().Problem, tc.problem) {
				select {
				case <-t.Context().Done():
					t.Fatal("ended while waiting for the problem")
				case <-time.After(time.Millisecond):
				}
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.takenIn != 0 {
				t.Errorf("got flows from %s", tc.reason)
			}
		})
	}
}
