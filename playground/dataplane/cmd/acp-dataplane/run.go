package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"time"

	observerpb "github.com/cilium/cilium/api/v1/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/acp-io/acp/playground/dataplane/internal/engine"
	"github.com/acp-io/acp/playground/dataplane/internal/flow"
	"github.com/acp-io/acp/playground/dataplane/internal/hubble"
	"github.com/acp-io/acp/playground/dataplane/internal/mesh"
	"github.com/acp-io/acp/playground/dataplane/internal/traffic"
	"github.com/acp-io/acp/playground/dataplane/internal/watch"
)

// version is the version that the flow API reports. Collectors may evaluate the version of Cilium in it.
const version = "cilium v1.20.2 (acp playground)"

type options struct {
	cluster, kubeconfig, listen, traffic string
	ca, cert, key                        string
	rate                                 float64
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.StringVar(&o.cluster, "cluster", "", "name of the member, which is a context of the kubeconfig")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "file with one context per member of the mesh")
	flags.StringVar(&o.listen, "listen", "", "address of the flow API, 127.0.0.1:PORT")
	flags.StringVar(&o.ca, "tls-ca", "", "file with the authority of the flow API's clients")
	flags.StringVar(&o.cert, "tls-cert", "", "file with the flow API's certificate")
	flags.StringVar(&o.key, "tls-key", "", "file with the flow API's key")
	flags.StringVar(&o.traffic, "traffic", "", "file that describes the connections to make; none when empty")
	flags.Float64Var(&o.rate, "traffic-rate", 1, "factor for the rate of all connections; 0 is silence")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for name, value := range map[string]string{
		"cluster": o.cluster, "kubeconfig": o.kubeconfig, "listen": o.listen,
		"tls-ca": o.ca, "tls-cert": o.cert, "tls-key": o.key,
	} {
		if value == "" {
			return fmt.Errorf("run needs --%s", name)
		}
	}
	if host, _, err := net.SplitHostPort(o.listen); err != nil || host != "127.0.0.1" {
		return fmt.Errorf("--listen must be 127.0.0.1:PORT, not %q", o.listen)
	}
	var lines []traffic.Line
	if o.traffic != "" {
		var err error
		if lines, err = traffic.Load(o.traffic); err != nil {
			return err
		}
	}
	configs, err := members(o.kubeconfig)
	if err != nil {
		return err
	}
	if configs[o.cluster] == nil {
		return fmt.Errorf("the kubeconfig has no context %q", o.cluster)
	}
	creds, err := serverCredentials(o)
	if err != nil {
		return err
	}
	return serve(ctx, o, configs, lines, creds)
}

func serve(ctx context.Context, o options, configs map[string]*rest.Config, lines []traffic.Line, creds credentials.TransportCredentials) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	m, err := mesh.New(slices.Collect(maps.Keys(configs)))
	if err != nil {
		return err
	}
	e := engine.New(o.cluster)
	w := &watch.Watcher{Cluster: o.cluster, Configs: configs, Mesh: m, Engine: e, Log: log}
	if err := w.Start(ctx); err != nil {
		return err
	}
	ring := hubble.NewRing(hubble.Capacity)
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("open the flow API: %w", err)
	}
	server := grpc.NewServer(grpc.Creds(creds))
	observerpb.RegisterObserverServer(server, hubble.NewServer(hubble.Config{
		Ring: ring, Address: o.listen, Version: version, Now: time.Now,
		Nodes: func() []string { return nodes(m, o.cluster) },
	}))
	stop := context.AfterFunc(ctx, server.Stop) // followers end only with their connection
	defer stop()
	generator := &traffic.Generator{Cluster: o.cluster, Mesh: m, Lines: lines, Rate: o.rate, Try: func(a traffic.Attempt) {
		if err := try(e, ring, a, time.Now()); err != nil {
			log.Error("a connection was not decided", "line", a.Line.Name, "error", err)
		}
	}}
	go generator.Run(ctx)
	log.Info("serving", "cluster", o.cluster, "address", o.listen, "lines", len(lines))
	if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) && ctx.Err() == nil {
		return fmt.Errorf("serve the flow API: %w", err)
	}
	return nil
}

// try decides a connection and reports its flows.
func try(e *engine.Engine, ring *hubble.Ring, a traffic.Attempt, now time.Time) error {
	from := flow.Source{IP: a.Line.SourceAddress}
	if a.Source != nil {
		from = flow.Source{Pod: a.Source, Identity: a.Source.Identity, IP: a.Source.IP}
	} else {
		id, err := e.External(a.Line.SourceAddress)
		if err != nil {
			return err
		}
		from.Identity = id
	}
	d, err := e.Decide(engine.Connection{From: from.Identity, To: a.Destination.Identity, Protocol: a.Line.Protocol, Port: a.Line.Port})
	if err != nil {
		return err
	}
	c := flow.Connection{
		At: now, From: from, To: a.Destination, Protocol: a.Line.Protocol, SourcePort: a.SourcePort, Port: a.Line.Port,
		Established: a.Line.LongLived,
	}
	for _, f := range flow.Events(c, d) {
		ring.Add(f)
	}
	return nil
}

func nodes(m *mesh.Mesh, cluster string) []string {
	names := map[string]bool{}
	for _, ep := range m.Select(func(ep mesh.Endpoint) bool { return ep.Cluster == cluster }) {
		names[cluster+"/"+ep.Node] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// members returns one client configuration per context of the kubeconfig.
func members(kubeconfig string) (map[string]*rest.Config, error) {
	raw, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	out := map[string]*rest.Config{}
	for name := range raw.Contexts {
		config, err := clientcmd.NewNonInteractiveClientConfig(*raw, name, nil, nil).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("read context %s of the kubeconfig: %w", name, err)
		}
		config.UserAgent = "acp-dataplane"
		// This is the limit of Cilium's operator. With the default of client-go, five requests a second, writing the conditions of
		// thousands of policies would take an hour.
		config.QPS, config.Burst = 100, 200
		out[name] = config
	}
	return out, nil
}

// serverCredentials returns credentials that require a client certificate of the authority.
func serverCredentials(o options) (credentials.TransportCredentials, error) {
	cert, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return nil, fmt.Errorf("load the flow API's certificate: %w", err)
	}
	ca, err := os.ReadFile(o.ca)
	if err != nil {
		return nil, fmt.Errorf("read the authority of the flow API's clients: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s holds no certificate", o.ca)
	}
	return credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}), nil
}
