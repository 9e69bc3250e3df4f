package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"
)

// validity is longer than any run of a node, each of which creates new keys.
const validity = 30 * 24 * time.Hour

// authority signs the certificates of one cluster.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// writePKI writes the keys, certificates and kubeconfigs of a cluster into dir. Programs on the machine use machine.kubeconfig;
// programs in the node use the others.
func writePKI(dir string, c Config) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ca, err := newAuthority(dir, c.Authority)
	if err != nil {
		return fmt.Errorf("make the certificate authority: %w", err)
	}
	server := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	apiNames := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	for _, p := range []struct {
		name, user string
		groups     []string
		usage      []x509.ExtKeyUsage
		dns        []string
		ips        []string
	}{
		{name: "apiserver", user: "kube-apiserver", usage: server, dns: apiNames, ips: []string{c.NodeIP(), c.APIService(), "127.0.0.1"}},
		{
			name: "kubelet", user: "system:node:" + c.Name, groups: []string{"system:nodes"},
			usage: server, dns: []string{c.Name}, ips: []string{c.NodeIP(), "127.0.0.1"},
		},
		{name: "admin", user: "admin", groups: []string{"system:masters"}, usage: client},
		{name: "controller-manager", user: "system:kube-controller-manager", usage: client},
		{name: "scheduler", user: "system:kube-scheduler", usage: client},
		{name: "cilium", user: "cilium", groups: []string{"system:masters"}, usage: client},
	} {
		cert, key, err := ca.issue(p.name, p.user, p.groups, p.usage, p.dns, p.ips)
		if err != nil {
			return fmt.Errorf("issue a certificate for %s: %w", p.name, err)
		}
		if p.name == "apiserver" {
			continue
		}
		if err := writeKubeconfig(filepath.Join(dir, p.name+".kubeconfig"), c.Name, "https://"+c.ServerIP()+":6443", ca.pem, cert, key); err != nil {
			return err
		}
		if p.name == "admin" {
			if err := writeKubeconfig(filepath.Join(dir, "machine.kubeconfig"), c.Name, c.Server, ca.pem, cert, key); err != nil {
				return err
			}
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	_, err = writeKey(filepath.Join(dir, "service-account.key"), key)
	return err
}

// newAuthority creates an authority in dir, or copies the given one.
func newAuthority(dir string, given *Pair) (*authority, error) {
	if given != nil {
		return takeAuthority(dir, *given)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "acp node"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	a := &authority{dir: dir, cert: cert, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), a.pem, 0o600); err != nil {
		return nil, err
	}
	// kube-controller-manager signs certificate requests with this key.
	_, err = writeKey(filepath.Join(dir, "ca.key"), key)
	return a, err
}

func takeAuthority(dir string, given Pair) (*authority, error) {
	pair, err := tls.LoadX509KeyPair(given.Cert, given.Key)
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the key in %s is not one of an elliptic curve", given.Key)
	}
	a := &authority{dir: dir, cert: pair.Leaf, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Leaf.Raw})}
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), a.pem, 0o600); err != nil {
		return nil, err
	}
	_, err = writeKey(filepath.Join(dir, "ca.key"), key)
	return a, err
}

func (a *authority) issue(name, user string, groups []string, usage []x509.ExtKeyUsage, dns, ips []string) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: user, Organization: groups},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: usage, DNSNames: dns,
	}
	for _, ip := range ips {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(ip))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	if err != nil {
		return nil, nil, err
	}
	cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(filepath.Join(a.dir, name+".crt"), cert, 0o600); err != nil {
		return nil, nil, err
	}
	key, err = writeKey(filepath.Join(a.dir, name+".key"), private)
	return cert, key, err
}

func writeKey(path string, key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key) // the form that kube-apiserver reads for service accounts
	if err != nil {
		return nil, err
	}
	data := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	return data, os.WriteFile(path, data, 0o600)
}

func writeKubeconfig(path, name, server string, ca, cert, key []byte) error {
	config := api.NewConfig()
	config.Clusters[name] = &api.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode a kubeconfig: %w", err)
	}
	return os.WriteFile(path, data, 0o600)
}
