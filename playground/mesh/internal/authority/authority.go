// Package authority issues certificates with SPIFFE identities, in place of Istio's certificate authority.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// These are the names of the files that WriteFiles writes.
const (
	CertificateFile = "cert.pem"
	KeyFile         = "key.pem"
	CAFile          = "ca.pem"
)

// validity is longer than any run of the playground.
const validity = 30 * 24 * time.Hour

// Authority issues certificates. Its own key exists in memory only.
type Authority struct {
	// Pool contains the certificate of the authority.
	Pool *x509.CertPool

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// New returns an authority with a new key.
func New() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the authority: %w", err)
	}
	t, err := template(nil)
	if err != nil {
		return nil, err
	}
	t.IsCA, t.BasicConstraintsValid, t.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the authority: %w", err)
	}
	a := &Authority{Pool: x509.NewCertPool(), key: key}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("read the certificate of the authority: %w", err)
	}
	a.Pool.AddCert(a.certificate)
	return a, nil
}

func template(identity *url.URL) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	now := time.Now()
	t := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{Organization: []string{"acp-mesh"}}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if identity != nil {
		t.URIs = []*url.URL{identity}
	}
	return t, nil
}

// Identity returns the SPIFFE identity of a service account, as Istio makes it.
func Identity(namespace, account string) *url.URL {
	return &url.URL{Scheme: "spiffe", Host: "cluster.local", Path: "/ns/" + namespace + "/sa/" + account}
}

// Issue returns a certificate for an identity.
func (a *Authority) Issue(identity *url.URL) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a key: %w", err)
	}
	t, err := template(identity)
	if err != nil {
		return tls.Certificate{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.certificate, key.Public(), a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// WriteFiles issues a certificate and writes it, its key and the certificate of the authority to a new folder.
func (a *Authority) WriteFiles(dir string, identity *url.URL) error {
	c, err := a.Issue(identity)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return fmt.Errorf("encode a key: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of a certificate: %w", err)
	}
	write := func(name, kind string, der []byte) error {
		return os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
	}
	if err := errors.Join(write(CertificateFile, "CERTIFICATE", c.Certificate[0]), write(KeyFile, "PRIVATE KEY", key),
		write(CAFile, "CERTIFICATE", a.certificate.Raw)); err != nil {
		return fmt.Errorf("write a certificate: %w", err)
	}
	return nil
}
