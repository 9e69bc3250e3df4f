// Package workload runs the pods of a mesh as goroutines: gRPC servers that istiod configures, without a proxy, and their clients. The
// servers enforce the AuthorizationPolicies that istiod sends them, and write an access log.
package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	xdscreds "google.golang.org/grpc/credentials/xds"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/acp-io/acp/playground/mesh/internal/accesslog"
	"github.com/acp-io/acp/playground/mesh/internal/authority"
)

// Pod is a pod of the mesh.
type Pod struct {
	Namespace, Name, Account string
	Labels                   map[string]string
	Address                  netip.Addr
	// Ports are those on which the pod serves; empty for a client.
	Ports []uint16
}

// Config is the configuration that all servers share.
type Config struct {
	// Istiod is the address of istiod's xDS service, and IstioVersion the version that the servers report to it.
	Istiod, IstioVersion string
	// Dir is the folder of the certificates.
	Dir       string
	Network   *Network
	Authority *authority.Authority
	Log       *accesslog.Log
	Errors    *slog.Logger
}

// Server is the gRPC server of a pod.
type Server struct {
	pod    Pod
	config Config
	grpc   *xds.GRPCServer

	mu      sync.Mutex
	serving map[string]bool
	problem error
}

// Start starts a server, which waits for its configuration from istiod.
func Start(c Config, p Pod) (*Server, error) {
	dir := filepath.Join(c.Dir, p.Namespace+"_"+p.Name)
	if err := c.Authority.WriteFiles(dir, authority.Identity(p.Namespace, p.Account)); err != nil {
		return nil, err
	}
	bootstrap, err := json.Marshal(bootstrapOf(c, p, dir))
	if err != nil {
		return nil, fmt.Errorf("encode the configuration of %s: %w", p.Name, err)
	}
	creds, err := xdscreds.NewServerCredentials(xdscreds.ServerOptions{FallbackCreds: insecure.NewCredentials()})
	if err != nil {
		return nil, fmt.Errorf("make the credentials of %s: %w", p.Name, err)
	}
	s := &Server{pod: p, config: c, serving: map[string]bool{}}
	// The process runs several pods, so that the configuration cannot be that of its environment.
	if s.grpc, err = xds.NewGRPCServer(grpc.Creds(creds), xds.BootstrapContentsForTesting(bootstrap), grpc.UnknownServiceHandler(answer),
		grpc.StatsHandler(s), xds.ServingModeCallback(s.modeChanged)); err != nil {
		return nil, fmt.Errorf("make the server of %s: %w", p.Name, err)
	}
	for _, port := range p.Ports {
		l, err := c.Network.Listen(netip.AddrPortFrom(p.Address, port))
		if err != nil {
			s.grpc.Stop()
			return nil, err
		}
		go func() {
			if err := s.grpc.Serve(l); err != nil {
				c.Errors.Error("a server ended", "pod", p.Name, "error", err)
			}
		}()
	}
	return s, nil
}

// bootstrapOf returns the bootstrap configuration that Istio's agent writes for a gRPC server without a proxy.
func bootstrapOf(c Config, p Pod, dir string) map[string]any {
	return map[string]any{
		"xds_servers": []any{map[string]any{
			"server_uri": c.Istiod, "channel_creds": []any{map[string]any{"type": "insecure"}}, "server_features": []any{"xds_v3"},
		}},
		"node": map[string]any{
			"id": fmt.Sprintf("sidecar~%s~%s.%s~%s.svc.cluster.local", p.Address, p.Name, p.Namespace, p.Namespace),
			"metadata": map[string]any{
				"GENERATOR": "grpc", "NAMESPACE": p.Namespace, "CLUSTER_ID": "Kubernetes", "ISTIO_VERSION": c.IstioVersion,
				"INSTANCE_IPS": p.Address.String(), "LABELS": p.Labels, "SERVICE_ACCOUNT": p.Account,
			},
		},
		"certificate_providers": map[string]any{"default": map[string]any{"plugin_name": "file_watcher", "config": map[string]any{
			"certificate_file": filepath.Join(dir, authority.CertificateFile), "private_key_file": filepath.Join(dir, authority.KeyFile),
			"ca_certificate_file": filepath.Join(dir, authority.CAFile), "refresh_interval": "3600s",
		}}},
		"server_listener_resource_name_template": "xds.istio.io/grpc/lds/inbound/%s",
	}
}

// answer serves every request.
func answer(_ any, stream grpc.ServerStream) error {
	if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
		return err
	}
	return stream.SendMsg(&emptypb.Empty{})
}

func (s *Server) modeChanged(a net.Addr, m xds.ServingModeChangeArgs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving[a.String()], s.problem = m.Mode == connectivity.ServingModeServing, m.Err
}

// Ready returns nil if istiod has configured all ports.
func (s *Server) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, serving := range s.serving {
		if serving {
			n++
		}
	}
	if n == len(s.pod.Ports) {
		return nil
	}
	return fmt.Errorf("istiod has configured %d of %d ports of %s: %w", n, len(s.pod.Ports), s.pod.Name, s.problem)
}

// Stop ends the server and its connections.
func (s *Server) Stop() { s.grpc.Stop() }

type requestKey struct{}

// request is a request that is being served.
type request struct {
	path, principal string
	local, remote   net.Addr
}

// TagRPC implements stats.Handler, which sees also the requests that are refused before any interceptor.
func (s *Server) TagRPC(ctx context.Context, i *stats.RPCTagInfo) context.Context {
	r := &request{path: i.FullMethodName}
	if p, ok := peer.FromContext(ctx); ok {
		if t, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(t.State.PeerCertificates) > 0 {
			var names []string
			for _, u := range t.State.PeerCertificates[0].URIs {
				names = append(names, u.String())
			}
			r.principal = strings.Join(names, ",")
		}
	}
	return context.WithValue(ctx, requestKey{}, r)
}

// HandleRPC implements stats.Handler.
func (s *Server) HandleRPC(ctx context.Context, rs stats.RPCStats) {
	r, ok := ctx.Value(requestKey{}).(*request)
	if !ok {
		return
	}
	switch x := rs.(type) {
	case *stats.InHeader:
		r.local, r.remote = x.LocalAddr, x.RemoteAddr
	case *stats.End:
		if err := s.config.Log.Write(s.entry(r, x)); err != nil {
			s.config.Errors.Error("an entry of the access log is lost", "error", err)
		}
	}
}

// TagConn implements stats.Handler.
func (s *Server) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (s *Server) HandleConn(context.Context, stats.ConnStats) {}

// entry returns the entry of a request that has ended.
func (s *Server) entry(r *request, end *stats.End) *accesslog.Entry {
	port := ""
	if a, ok := r.local.(*net.TCPAddr); ok {
		port = fmt.Sprint(a.Port)
	}
	return &accesslog.Entry{
		StartTime: end.BeginTime.UTC().Truncate(time.Millisecond), Duration: end.EndTime.Sub(end.BeginTime).Milliseconds(),
		Method: "POST", Path: r.path, Protocol: "HTTP/2", ResponseCode: 200, ResponseCodeDetails: details(end.Error),
		UpstreamCluster: "inbound|" + port + "||", DownstreamLocalAddress: r.local.String(), DownstreamRemoteAddress: r.remote.String(),
		SourcePrincipal: r.principal, DestinationPod: s.pod.Name, DestinationNamespace: s.pod.Namespace, DestinationLabels: s.pod.Labels,
	}
}

// details returns the details of a response in the words of Istio's proxies. Only policies refuse requests with this code here. The
// message of a deny contains the name of the policy between quotes.
func details(err error) string {
	if status.Code(err) != codes.PermissionDenied {
		return "via_upstream"
	}
	name := "none"
	if _, rest, ok := strings.Cut(status.Convert(err).Message(), `"`); ok {
		name = strings.TrimSuffix(rest, `"`)
	}
	return "rbac_access_denied_matched_policy[" + name + "]"
}
