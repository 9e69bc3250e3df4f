package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

func (f *Fleet) specs() ([]supervisor.Spec, error) {
	var specs []supervisor.Spec
	etcds, clusters := []string{"etcd-host", "etcd-members"}, Clusters()
	if f.nodes != "" || f.hostOnly {
		etcds, clusters = etcds[:1], []string{Host}
	}
	if f.nodes != "" {
		s, err := f.realNodes()
		if err != nil {
			return nil, err
		}
		specs = append(specs, s)
	}
	for _, name := range etcds {
		s, err := f.etcd(name)
		if err != nil {
			return nil, err
		}
		specs = append(specs, s)
	}
	for _, c := range clusters {
		s, err := f.apiServer(c)
		if err != nil {
			return nil, err
		}
		specs = append(specs, s)
	}
	if f.hostOnly {
		return specs, nil
	}
	for _, m := range f.pull {
		specs = append(specs, f.workAgent(m))
	}
	return append(specs, f.kubeFed()), nil
}

func (f *Fleet) etcd(name string) (supervisor.Spec, error) {
	dir, err := f.ensureData(name)
	if err != nil {
		return supervisor.Spec{}, err
	}
	client, err := httpsClient(f.PKI.EtcdCA, &f.PKI.EtcdClient)
	if err != nil {
		return supervisor.Spec{}, err
	}
	url, peer := "https://"+f.Ports.Address(name), "https://"+f.Ports.Address(name+"-peer")
	return supervisor.Spec{
		Name: name, Layer: LayerStore, Path: f.Built.Path(parts.Kubernetes, parts.Etcd),
		Args: []string{
			"--name=" + name, "--data-dir=" + dir, "--log-level=warn",
			"--listen-client-urls=" + url, "--advertise-client-urls=" + url,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=" + name + "=" + peer,
			"--cert-file=" + f.PKI.Etcd.Cert, "--key-file=" + f.PKI.Etcd.Key,
			"--client-cert-auth", "--trusted-ca-file=" + f.PKI.EtcdCA,
			"--peer-cert-file=" + f.PKI.Etcd.Cert, "--peer-key-file=" + f.PKI.Etcd.Key,
			"--peer-client-cert-auth", "--peer-trusted-ca-file=" + f.PKI.EtcdCA,
			// The playground tolerates the loss of its processes, but not a power failure of the machine.
			"--unsafe-no-fsync",
			"--auto-compaction-mode=periodic", "--auto-compaction-retention=10m",
		},
		Ready: func(ctx context.Context) error { return GetOK(ctx, client, url+"/health", "") },
	}, nil
}

func (f *Fleet) apiServer(cluster string) (supervisor.Spec, error) {
	name := "apiserver-" + cluster
	dir, err := f.ensureData(name)
	if err != nil {
		return supervisor.Spec{}, err
	}
	client, err := httpsClient(f.PKI.ServerCA, nil)
	if err != nil {
		return supervisor.Spec{}, err
	}
	return supervisor.Spec{
		Name: name, Layer: LayerAPIServer, Path: f.Built.Path(parts.Kubernetes, parts.KubeAPIServer),
		Args: []string{
			"--etcd-servers=https://" + f.Ports.Address(sharedEtcd(cluster)), "--etcd-prefix=/" + cluster,
			"--etcd-cafile=" + f.PKI.EtcdCA, "--etcd-certfile=" + f.PKI.EtcdClient.Cert, "--etcd-keyfile=" + f.PKI.EtcdClient.Key,
			// Without an address to advertise, the server does not start on a machine without a network.
			"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + strconv.Itoa(f.Ports[name]),
			"--tls-cert-file=" + f.PKI.APIServer.Cert, "--tls-private-key-file=" + f.PKI.APIServer.Key, "--cert-dir=" + dir,
			"--token-auth-file=" + f.Layout.tokenFile(cluster), "--authorization-mode=RBAC", "--anonymous-auth=false",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + f.PKI.ServiceAccountKey, "--service-account-signing-key-file=" + f.PKI.ServiceAccountKey,
			"--service-cluster-ip-range=10.96.0.0/16",
			// No controller creates the default service accounts that this plugin would wait for.
			"--disable-admission-plugins=ServiceAccount",
			// No component routes to the address of the service "kubernetes".
			"--endpoint-reconciler-type=none",
			"--profiling=false",
			"--shutdown-delay-duration=0",
		},
		Ready: func(ctx context.Context) error {
			return GetOK(ctx, client, f.url(cluster)+"/readyz", f.Tokens[cluster][Admin])
		},
		StopTimeout: 4 * time.Second,
	}, nil
}

func (f *Fleet) kubeFed() supervisor.Spec {
	health := f.Ports.Address("kubefed-health")
	return supervisor.Spec{
		Name: "kubefed", Layer: LayerFederation, Path: f.Built.Path(parts.KubeFed, parts.Hyperfed),
		Args: []string{
			"controller-manager", "--kubeconfig=" + f.Layout.Kubeconfig(KubeFed), "--kubefed-namespace=" + KubeFedNamespace,
			"--healthz-addr=" + health, "--metrics-addr=" + f.Ports.Address("kubefed-metrics"),
		},
		BeforeStart: f.dropKubeFedLock,
		Ready: func(ctx context.Context) error {
			return GetOK(ctx, http.DefaultClient, "http://"+health+"/healthz", "")
		},
		StopTimeout: 2 * time.Second,
	}
}

// httpsClient returns a client that trusts one authority and presents a certificate when own is not nil.
func httpsClient(caFile string, own *Pair) (*http.Client, error) {
	pool, err := Pool(caFile)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	if own != nil {
		cert, err := tls.LoadX509KeyPair(own.Cert, own.Key)
		if err != nil {
			return nil, fmt.Errorf("load a client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{cert}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config}}, nil
}

// Pool reads the authorities in a file.
func Pool(caFile string) (*x509.CertPool, error) {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read an authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("no certificate in " + caFile)
	}
	return pool, nil
}

// GetOK returns an error unless a GET request is answered with status 200. An empty token is not sent.
func GetOK(ctx context.Context, client *http.Client, url, token string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, res.Status)
	}
	return nil
}
