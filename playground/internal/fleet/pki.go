package fleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// The validity is longer than a playground is reasonably kept.
const validity = 5 * 365 * 24 * time.Hour

// Pair contains the paths of a certificate and its key.
type Pair struct{ Cert, Key string }

// authority is a certificate authority for one purpose. Certificates of one authority are not trusted for another purpose.
type authority struct {
	dir  string
	pair Pair
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority loads the authority with this name from dir, and creates it when it is absent.
func newAuthority(dir, name string) (*authority, error) {
	a := &authority{dir: dir, pair: Pair{Cert: filepath.Join(dir, name+"-ca.crt"), Key: filepath.Join(dir, name+"-ca.key")}}
	if !a.pair.exist() {
		template := &x509.Certificate{
			Subject:               pkix.Name{CommonName: "acp playground " + name},
			IsCA:                  true,
			BasicConstraintsValid: true,
			KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		}
		if err := issue(template, nil, nil, a.pair); err != nil {
			return nil, fmt.Errorf("make the %s authority: %w", name, err)
		}
	}
	var err error
	if a.cert, a.key, err = load(a.pair); err != nil {
		return nil, fmt.Errorf("load the %s authority (remove the state folder with `clean` if it is damaged): %w", name, err)
	}
	return a, nil
}

// issue returns a certificate for programs on this machine, and creates it when it is absent. It is valid for localhost and the
// additional DNS names.
func (a *authority) issue(name string, usage []x509.ExtKeyUsage, dns ...string) (Pair, error) {
	p := Pair{Cert: filepath.Join(a.dir, name+".crt"), Key: filepath.Join(a.dir, name+".key")}
	if p.exist() {
		return p, nil
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: usage,
		DNSNames:    append([]string{"localhost"}, dns...),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if err := issue(template, a.cert, a.key, p); err != nil {
		return Pair{}, fmt.Errorf("issue a certificate for %s: %w", name, err)
	}
	return p, nil
}

// issue signs the template with parent (itself when nil) and writes both files; the key is written last, so that a
// pair that exists is complete.
func issue(template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey, out Pair) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return err
	}
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(validity)
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return err
	}
	if err := writePEM(out.Cert, "CERTIFICATE", der); err != nil {
		return err
	}
	return writeKey(out.Key, key)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key) // the form that kube-apiserver reads for service accounts
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return writeAtomically(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// writeAtomically writes a file of mode 0600 that is there completely or not at all.
func writeAtomically(path string, data []byte) error {
	temp := path + ".new"
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// exist reports whether both files exist.
func (p Pair) exist() bool {
	for _, f := range []string{p.Cert, p.Key} {
		if _, err := os.Stat(f); err != nil {
			return false
		}
	}
	return true
}

// load reads a certificate and its key.
func load(p Pair) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	certPEM, err := os.ReadFile(p.Cert)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err := os.ReadFile(p.Key)
	if err != nil {
		return nil, nil, err
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, nil, errors.New("not PEM")
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, nil, err
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	return cert, key, err
}

// PKI contains all keys and certificates of a fleet.
type PKI struct {
	// ServerCA is the authority of the serving certificates of the API servers.
	ServerCA string
	// APIServer is the serving certificate of all API servers.
	APIServer Pair
	// EtcdCA is the authority of the etcd servers and clients only, because a client with a key that it signed can read every Secret.
	EtcdCA string
	Etcd   Pair
	// ServiceAccountKey signs service account tokens; EtcdClient authenticates the API servers to the etcds.
	ServiceAccountKey string
	EtcdClient        Pair
	// HubbleCA is the authority of the servers and clients of the dataplanes' flow API.
	HubbleCA     string
	HubbleServer map[string]Pair
	HubbleClient Pair
}

// EnsurePKI loads the keys of a state folder and creates those that are absent.
func EnsurePKI(dir string) (*PKI, error) {
	server, err := newAuthority(dir, "server")
	if err != nil {
		return nil, err
	}
	etcd, err := newAuthority(dir, "etcd")
	if err != nil {
		return nil, err
	}
	hubble, err := newAuthority(dir, "hubble")
	if err != nil {
		return nil, err
	}
	serve := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	call := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	p := &PKI{ServerCA: server.pair.Cert, EtcdCA: etcd.pair.Cert, HubbleCA: hubble.pair.Cert, HubbleServer: map[string]Pair{}}
	if p.APIServer, err = server.issue("apiserver", serve, "kubernetes", "kubernetes.default", "kubernetes.default.svc"); err != nil {
		return nil, err
	}
	// etcd uses its serving certificate also as a client of itself.
	if p.Etcd, err = etcd.issue("etcd", append(serve, call...)); err != nil {
		return nil, err
	}
	if p.EtcdClient, err = etcd.issue("etcd-client", call); err != nil {
		return nil, err
	}
	for _, m := range Members() {
		if p.HubbleServer[m], err = hubble.issue("hubble-"+m, serve, m+".hubble-relay.cilium.io"); err != nil {
			return nil, err
		}
	}
	if p.HubbleClient, err = hubble.issue("hubble-client", call); err != nil {
		return nil, err
	}
	p.ServiceAccountKey = filepath.Join(dir, "service-account.key")
	if _, err := os.Stat(p.ServiceAccountKey); errors.Is(err, os.ErrNotExist) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		if err := writeKey(p.ServiceAccountKey, key); err != nil {
			return nil, fmt.Errorf("write the service account key: %w", err)
		}
	}
	return p, nil
}
