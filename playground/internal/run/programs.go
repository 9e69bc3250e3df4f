package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/acp-io/acp/playground/internal/fleet"
	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

// These are the programs of ACP, which are built from the root module.
const (
	programAdapter   = "acp-adapter"
	programCollector = "flow-collector"
	programPortal    = "portal"
)

func acpPrograms() []string { return []string{programAdapter, programCollector, programPortal} }

const oidcClientID = "acp-portal"

// extraPorts returns the names of the ports that are needed in addition to those of the fleet. The portal's is not one of them, because
// the user chooses it.
func (r *runner) extraPorts() []string {
	p := []string{"oidc", "flow-collector-health"}
	for _, a := range r.adapters() {
		p = append(p, a+"-health", a+"-metrics")
	}
	for _, m := range fleet.Members() {
		p = append(p, "dataplane-"+m)
		if r.Istio {
			p = append(p, istiodPorts(m)...)
			p = append(p, meshProcess(m))
		}
	}
	return p
}

// addPrograms registers all programs other than those of the fleet with the supervisor.
func (r *runner) addPrograms() error {
	secret, err := r.clientSecret()
	if err != nil {
		return err
	}
	specs := []supervisor.Spec{r.oidc(secret)}
	for _, m := range fleet.Members() {
		if r.Nodes == "" {
			specs = append(specs, r.dataplane(m))
		}
		if r.Istio {
			more, err := r.istio(m)
			if err != nil {
				return err
			}
			specs = append(specs, more...)
		}
	}
	if !r.WithoutACP {
		for _, name := range r.adapters() {
			specs = append(specs, r.adapter(name))
		}
		specs = append(specs, r.collector(), r.portal(secret))
	}
	if r.Clocks != "" {
		for i := range specs {
			specs[i].Env = append(specs[i].Env, "ACP_DRILL_CLOCK="+filepath.Join(r.Clocks, specs[i].Name))
		}
	}
	for _, s := range specs {
		if err := r.supervisor.Add(s); err != nil {
			return err
		}
	}
	return nil
}

// clientSecret returns the secret with which the portal authenticates to the OIDC provider. It is kept between runs.
func (r *runner) clientSecret() (string, error) {
	path := r.layout.File("oidc-client-secret")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read the OIDC client secret: %w", err)
	}
	if err := os.WriteFile(path, []byte(rand.Text()), 0o600); err != nil {
		return "", fmt.Errorf("write the OIDC client secret: %w", err)
	}
	return path, nil
}

func (r *runner) oidc(secretFile string) supervisor.Spec {
	return supervisor.Spec{
		Name: "oidc", Layer: fleet.LayerControlPlane, Path: r.Self,
		Args: []string{
			"oidc", "--listen=" + r.fleet.Ports.Address("oidc"), "--client-id=" + oidcClientID,
			"--client-secret-file=" + secretFile, "--portal-url=" + r.portalURL(),
			"--key-file=" + filepath.Join(r.layout.PKI(), "oidc-signing.key"),
			"--people=" + filepath.Join(r.Repo, "playground/demo/catalog/company/people.csv"),
			"--guests=" + r.Guests, "--remembered=" + r.Remembered,
		},
		Ready: func(ctx context.Context) error {
			return fleet.GetOK(ctx, http.DefaultClient, r.issuer()+"/.well-known/openid-configuration", "")
		},
		StopTimeout: 2 * time.Second,
	}
}

func (r *runner) dataplane(member string) supervisor.Spec {
	pair := r.fleet.PKI.HubbleServer[member]
	address := r.fleet.Ports.Address("dataplane-" + member)
	return supervisor.Spec{
		Name: "dataplane-" + member, Layer: fleet.LayerFederation,
		Path: r.fleet.Built.Path(parts.Dataplane, parts.ACPDataplane),
		Args: []string{
			"run", "--cluster=" + member, "--kubeconfig=" + r.layout.Kubeconfig(fleet.Dataplane),
			"--listen=" + address, "--tls-ca=" + r.fleet.PKI.HubbleCA, "--tls-cert=" + pair.Cert, "--tls-key=" + pair.Key,
			"--traffic=" + r.Traffic, "--traffic-rate=" + strconv.FormatFloat(r.TrafficRate, 'g', -1, 64),
		},
		Ready:       func(ctx context.Context) error { return r.dialTLS(ctx, address) },
		StopTimeout: 2 * time.Second,
	}
}

// adapters returns the names of the adapter processes.
func (r *runner) adapters() []string {
	names := []string{"adapter"}
	for i := 2; i <= r.AdapterReplicas; i++ {
		names = append(names, "adapter-"+strconv.Itoa(i))
	}
	return names
}

func (r *runner) adapter(name string) supervisor.Spec {
	health := r.fleet.Ports.Address(name + "-health")
	return supervisor.Spec{
		Name: name, Layer: fleet.LayerControlPlane, Path: filepath.Join(r.BinDir, programAdapter),
		Args: []string{
			"--kubeconfig=" + r.layout.Kubeconfig(fleet.Adapter),
			"--kubefed-namespace=" + fleet.KubeFedNamespace, "--namespace=" + fleet.ACPNamespace,
			"--health-address=" + health, "--metrics-address=" + r.fleet.Ports.Address(name+"-metrics"),
			"--leader-elect=" + strconv.FormatBool(r.AdapterReplicas > 1),
		},
		Ready: func(ctx context.Context) error {
			return fleet.GetOK(ctx, http.DefaultClient, "http://"+health+"/readyz", "")
		},
	}
}

func (r *runner) collector() supervisor.Spec {
	health := r.fleet.Ports.Address("flow-collector-health")
	client := r.fleet.PKI.HubbleClient
	args := []string{
		"--kubeconfig=" + r.layout.Kubeconfig(fleet.FlowCollector), "--store=" + r.flowStore(),
		"--hubble-tls-ca=" + r.fleet.PKI.HubbleCA, "--hubble-tls-cert=" + client.Cert, "--hubble-tls-key=" + client.Key,
		"--hubble-tls-server-name=localhost", "--health-address=" + health,
	}
	for _, m := range fleet.Members() {
		args = append(args, "--hubble="+m+"="+r.fleet.Ports.Address("dataplane-"+m))
		if r.Istio {
			args = append(args, "--istio-access-log="+m+"="+r.accessLog(m))
		}
	}
	return supervisor.Spec{
		Name: "flow-collector", Layer: fleet.LayerControlPlane, Path: filepath.Join(r.BinDir, programCollector), Args: args,
		Ready: func(ctx context.Context) error {
			return fleet.GetOK(ctx, http.DefaultClient, "http://"+health+"/healthz", "")
		},
	}
}

func (r *runner) portal(secretFile string) supervisor.Spec {
	return supervisor.Spec{
		Name: "portal", Layer: fleet.LayerControlPlane, Path: filepath.Join(r.BinDir, programPortal),
		Args: []string{
			"--listen=" + net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Port)), "--public-url=" + r.portalURL(),
			"--kubeconfig=" + r.layout.Kubeconfig(fleet.Portal),
			"--database=sqlite:" + filepath.Join(r.layout.Data("portal"), "portal.db"), "--flow-store=" + r.flowStore(),
			"--catalog=" + cmp.Or(r.Catalog, filepath.Join(r.Repo, "playground/demo/catalog")),
			"--oidc-issuer=" + r.issuer(), "--oidc-client-id=" + oidcClientID, "--oidc-client-secret-file=" + secretFile,
			// The sessions of the demo and of its tests decide for as long as they last.
			"--session-idle=8h", "--sensitive-login-max-age=8h", "--demo", "--access-requests",
		},
		Ready: func(ctx context.Context) error {
			return fleet.GetOK(ctx, http.DefaultClient, r.portalURL()+"/readyz", "")
		},
	}
}

func (r *runner) flowStore() string { return "sqlite:" + r.flowFile() }

func (r *runner) flowFile() string { return filepath.Join(r.layout.Data("flows"), "flows.db") }

func (r *runner) portalURL() string { return "http://127.0.0.1:" + strconv.Itoa(r.Port) }

func (r *runner) issuer() string { return "http://" + r.fleet.Ports.Address("oidc") }

// dialTLS is the readiness check of a dataplane, which listens once its caches are filled and requires a client certificate.
func (r *runner) dialTLS(ctx context.Context, address string) error {
	cert, err := tls.LoadX509KeyPair(r.fleet.PKI.HubbleClient.Cert, r.fleet.PKI.HubbleClient.Key)
	if err != nil {
		return err
	}
	pool, err := fleet.Pool(r.fleet.PKI.HubbleCA)
	if err != nil {
		return err
	}
	d := tls.Dialer{Config: &tls.Config{
		RootCAs: pool, Certificates: []tls.Certificate{cert}, ServerName: "localhost",
		NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13,
	}}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}
