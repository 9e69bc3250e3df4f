// Command acp-mesh runs the pods of one member of the playground that are in a mesh without proxies: gRPC servers that enforce what istiod
// sends them, and the requests of their clients.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/acp-io/acp/playground/mesh/internal/accesslog"
	"github.com/acp-io/acp/playground/mesh/internal/authority"
	"github.com/acp-io/acp/playground/mesh/internal/traffic"
	"github.com/acp-io/acp/playground/mesh/internal/workload"
)

// istioVersion is the version that the servers report to istiod.
const istioVersion = "1.31.0"

// maxLog is the size at which the access log is rotated, in bytes.
const maxLog = 8 << 20

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "acp-mesh:", err)
		os.Exit(1)
	}
}

type options struct {
	cluster, kubeconfig, istiod, listen, traffic, accessLog, dir string
	rate                                                         float64
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("acp-mesh", flag.ContinueOnError)
	flags.StringVar(&o.cluster, "cluster", "", "name of the member, which is a context of the kubeconfig")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file with that context")
	flags.StringVar(&o.istiod, "istiod", "", "address of istiod's xDS service without TLS, HOST:PORT")
	flags.StringVar(&o.listen, "listen", "", "address of /readyz, 127.0.0.1:PORT")
	flags.StringVar(&o.traffic, "traffic", "", "file that describes the requests to make; none when empty")
	flags.Float64Var(&o.rate, "traffic-rate", 1, "factor for the rate of all requests; 0 is silence")
	flags.StringVar(&o.accessLog, "access-log", "", "file to which the access log is appended")
	flags.StringVar(&o.dir, "dir", "", "folder for the certificates of the pods")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for name, value := range map[string]string{
		"cluster": o.cluster, "kubeconfig": o.kubeconfig, "istiod": o.istiod, "listen": o.listen, "access-log": o.accessLog, "dir": o.dir,
	} {
		if value == "" {
			return o, fmt.Errorf("--%s is missing", name)
		}
	}
	if host, _, err := net.SplitHostPort(o.listen); err != nil || host != "127.0.0.1" {
		return o, fmt.Errorf("--listen must be 127.0.0.1:PORT, not %q", o.listen)
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: o.kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: o.cluster}).ClientConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.UserAgent = "acp-mesh"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of %s: %w", o.cluster, err)
	}
	var lines []traffic.Line
	if o.traffic != "" {
		if lines, err = traffic.Load(o.traffic); err != nil {
			return err
		}
	}
	ca, err := authority.New()
	if err != nil {
		return err
	}
	log, err := accesslog.Open(o.accessLog, maxLog)
	if err != nil {
		return err
	}
	network := workload.NewNetwork()
	m := &workload.Mesh{
		Cluster: o.cluster, Client: client, Lines: lines, Rate: o.rate, Clients: &workload.Clients{Network: network, Authority: ca},
		Config: workload.Config{Istiod: o.istiod, IstioVersion: istioVersion, Dir: o.dir, Network: network, Authority: ca, Log: log,
			Errors: slog.New(slog.NewTextHandler(os.Stderr, nil))},
	}
	probes, err := serveProbes(ctx, o.listen, m)
	if err != nil {
		return err
	}
	m.Run(ctx)
	return errors.Join(probes.Close(), log.Close())
}

// serveProbes serves /readyz.
func serveProbes(ctx context.Context, address string, m *workload.Mesh) (*http.Server, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for probes: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := m.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = s.Serve(l) }() // It ends with Close.
	return s, nil
}
