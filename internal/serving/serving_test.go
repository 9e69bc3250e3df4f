package serving

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// issue writes a self-signed certificate with the name into the files.
func issue(t *testing.T, c Certificate, name string) {
	t.Helper()
	issueUntil(t, c, name, time.Now().Add(time.Hour))
}

// issueUntil writes a self-signed certificate with the name that ends at an instant.
func issueUntil(t *testing.T, c Certificate, name string, end time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(
		rand.Reader,
		&x509.Certificate{
			SerialNumber: big.NewInt(1),
			Subject:      pkix.Name{CommonName: name},
			DNSNames:     []string{name},
			NotBefore: time.Now().
				Add(-time.Hour),
			NotAfter: end,
		},
		&x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}},
		key.Public(),
		key,
	)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{c.CertFile: {Type: "CERTIFICATE", Bytes: der}, c.KeyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path+".new", pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
}

func certificate(t *testing.T) Certificate {
	dir := t.TempDir()
	return Certificate{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
}

func serve(t *testing.T, c Config) *Endpoint {
	t.Helper()
	c.Address = "127.0.0.1:0"
	e, err := Listen(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- e.Serve() }()
	t.Cleanup(func() {
		if err := errors.Join(e.Shutdown(context.WithoutCancel(t.Context())), <-served); err != nil {
			t.Error(err)
		}
	})
	return e
}

func ok() *http.Server {
	return &http.Server{
		ReadHeaderTimeout: time.Second,
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }),
	}
}

// shown is the name in the certificate that the endpoint shows.
func shown(t *testing.T, e *Endpoint) string {
	t.Helper()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // which certificate there is, is the question
	conn, err := d.DialContext(t.Context(), "tcp", e.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
}

func TestCertificateIsReadAgain(t *testing.T) {
	c := certificate(t)
	issue(t, c, "first")
	e := serve(t, Config{Setting: "listen", Certificate: c, Server: ok()})
	if got := shown(t, e); got != "first" {
		t.Fatalf("the certificate is %q", got)
	}
	issue(t, c, "second")
	for deadline := time.Now().Add(30 * time.Second); shown(t, e) != "second"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a new certificate is not taken")
		}
	}
	// Half of a new pair is worse than the old one.
	if err := os.WriteFile(c.KeyFile, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, e); got != "second" {
		t.Errorf("after the key was damaged, the certificate is %q", got)
	}
}

func TestHTTP2AndOldTLS(t *testing.T) {
	c := certificate(t)
	issue(t, c, "acp")
	e := serve(t, Config{Setting: "listen", Certificate: c, Server: ok()})
	client := &http.Client{
		Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	} //nolint:gosec // the protocol is the question
	defer client.CloseIdleConnections()
	res, err := client.Get("https://" + e.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "HTTP/2.0" {
		t.Errorf("browsers with many requests get %q, %v", body, err)
	}
	old := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}} //nolint:gosec // it has to be refused
	if conn, err := old.DialContext(t.Context(), "tcp", e.Address()); err == nil {
		conn.Close()
		t.Error("TLS 1.1 is spoken")
	}
}

func TestShutdownWaitsForRequests(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	e, err := Listen(t.Context(), Config{Setting: "listen", Address: "127.0.0.1:0", Server: &http.Server{ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(began)
			<-release
			_, _ = io.WriteString(w, "done")
		})}})
	if err != nil {
		t.Fatal(err)
	}
	served, answered, down := make(chan error, 1), make(chan string, 1), make(chan error, 1)
	go func() { served <- e.Serve() }()
	go func() {
		res, err := http.Get("http://" + e.Address())
		if err != nil {
			answered <- err.Error()
			return
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		answered <- string(body) + errorText(err)
	}()
	<-began
	go func() { down <- e.Shutdown(context.WithoutCancel(t.Context())) }()
	if err := <-served; err != nil { // new connections are refused from here on
		t.Fatal(err)
	}
	select {
	case err := <-down:
		t.Fatalf("the shutdown ended before the request: %v", err)
	default:
	}
	close(release)
	if got := <-answered; got != "done" {
		t.Errorf("the request that was begun got %q", got)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

func errorText(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestListenErrors(t *testing.T) {
	taken := serve(t, Config{Setting: "listen", Server: ok()})
	c := certificate(t)
	for name, tc := range map[string]struct {
		config Config
		want   string
	}{
		"taken": {
			Config{Setting: "health-address", Address: taken.Address()},
			"is in use by another program: stop it or choose another --health-address",
		},
		"no address":  {Config{Setting: "listen", Address: "256.0.0.1:1"}, "listen on --listen 256.0.0.1:1"},
		"certificate": {Config{Setting: "listen", Address: "127.0.0.1:0", Certificate: c}, "read the certificate for --listen"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.config.Server = ok()
			if _, err := Listen(t.Context(), tc.config); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want %q, got %v", tc.want, err)
			}
		})
	}
	if err := (Certificate{CertFile: "x"}).Validate("tls-cert-file", "tls-key-file"); err == nil || !strings.Contains(err.Error(), "needed together") {
		t.Errorf("half a certificate: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]struct{ valid, loopback bool }{
		"127.0.0.1:8080": {true, true}, "[::1]:8080": {true, true}, "localhost:1": {true, true},
		":8080": {true, false}, "0.0.0.0:8080": {true, false}, "[::]:1": {true, false},
		"10.0.0.1:1": {true, false}, "localhost.example.com:1": {true, false}, "8080": {}, "127.0.0.1": {}, "127.0.0.1:": {false, true},
	} {
		if err := CheckAddress("listen", address); (err == nil) != want.valid {
			t.Errorf("%s: %v", address, err)
		}
		if got := Loopback(address); got != want.loopback {
			t.Errorf("%s: loopback %v", address, got)
		}
	}
}

func TestPrefixes(t *testing.T) {
	got, err := Prefixes("trusted-proxies", []string{"10.0.0.5", "10.1.2.3/16", "2001:db8::1/64"})
	if err != nil || len(got) != 3 || got[0].String() != "10.0.0.5/32" || got[1].String() != "10.1.0.0/16" || got[2].String() != "2001:db8::/64" {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"proxy.example.com", "0.0.0.0/0", "::/0", "10.0.0.0/33"} {
		if _, err := Prefixes("trusted-proxies", []string{bad}); err == nil || !strings.Contains(err.Error(), "--trusted-proxies") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestCertificateEnds checks that the end of each certificate that is presented is exported, and that of the new one after a renewal.
func TestCertificateEnds(t *testing.T) {
	c, ends := certificate(t), &CertificateEnds{}
	issue(t, c, "first")
	e := serve(t, Config{Setting: "listen", Certificate: c, Ends: ends, Server: &http.Server{ReadHeaderTimeout: time.Second}})
	serve(t, Config{Setting: "health-address", Ends: ends, Server: &http.Server{ReadHeaderTimeout: time.Second}}) // it has no certificate
	end := func() int64 {
		t.Helper()
		served, err := e.certs.GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return served.Leaf.NotAfter.Unix()
	}
	check := func(reason string) {
		t.Helper()
		want := fmt.Sprintf(
			`# HELP acp_certificate_end_timestamp_seconds When the certificate that the program presents at an address ends, by the setting of the address.
# TYPE acp_certificate_end_timestamp_seconds gauge
acp_certificate_end_timestamp_seconds{setting="listen"} %d
`,
			end(),
		)
		if err := testutil.CollectAndCompare(ends, strings.NewReader(want)); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
	}
	check("the first certificate")
	before := end()
	issueUntil(t, c, "second", time.Now().Add(48*time.Hour))
	if err := e.certs.ReadCertificate(); err != nil {
		t.Fatal(err)
	}
	if end() == before {
		t.Error("the renewed certificate is not presented")
	}
	check("the renewed certificate")
}
