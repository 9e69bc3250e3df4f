package workload

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/acp-io/acp/playground/mesh/internal/traffic"
)

// Mesh runs the pods of one member: a server for each pod that is declared as a gRPC server of the mesh, and the requests to them.
type Mesh struct {
	Cluster string
	Client  kubernetes.Interface
	Config  Config
	Clients *Clients
	Lines   []traffic.Line
	// Rate multiplies the rate of all lines; 0 disables them.
	Rate float64

	mu      sync.Mutex
	pods    []Pod
	servers map[string]*Server
	listed  bool
}

// These annotations of a pod say that the pod is a gRPC server that istiod configures; see docs/enforcers.md.
const (
	templatesAnnotation = "inject.istio.io/templates"
	agentTemplate       = "grpc-agent"
	serversAnnotation   = "acp.io/grpc-servers"
	serversXDS          = "xds"
)

// listInterval is the interval between two lists of the pods. The playground has few of them.
const listInterval = time.Second

// idle is how long a line without pods waits before it checks again.
const idle = 500 * time.Millisecond

// requestPath is the path of all requests.
const requestPath = "/playground.Demo/Call"

// Run runs the pods until the context ends.
func (m *Mesh) Run(ctx context.Context) {
	var lines sync.WaitGroup
	defer lines.Wait()
	if m.Rate > 0 {
		for i := range m.Lines {
			lines.Go(func() { m.runLine(ctx, &m.Lines[i]) })
		}
	}
	for ctx.Err() == nil {
		if err := m.list(ctx); err != nil && ctx.Err() == nil {
			m.Config.Errors.Error("the pods are not up to date", "error", err)
		}
		sleep(ctx, listInterval)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.servers {
		s.Stop()
	}
}

// list lists the pods, starts the servers of new ones and stops those of pods that no longer exist.
func (m *Mesh) list(ctx context.Context) error {
	list, err := m.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the pods of %s: %w", m.Cluster, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.servers == nil {
		m.servers = map[string]*Server{}
	}
	m.pods = m.pods[:0:0]
	present, problems := map[string]bool{}, []error{}
	for i := range list.Items {
		p, err := podOf(&list.Items[i])
		if err != nil {
			continue // It has no address yet.
		}
		m.pods = append(m.pods, p)
		// A pod that was created again has another address or is not the same server.
		key := fmt.Sprintf("%s/%s/%s/%s", p.Namespace, p.Name, p.Address, list.Items[i].UID)
		if len(p.Ports) == 0 {
			continue
		}
		present[key] = true
		if m.servers[key] != nil {
			continue
		}
		s, err := Start(m.Config, p)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		m.servers[key] = s
		m.Config.Errors.Info("started a server", "pod", p.Name, "address", p.Address, "ports", p.Ports)
	}
	for key, s := range m.servers {
		if !present[key] {
			s.Stop()
			delete(m.servers, key)
		}
	}
	m.listed = len(problems) == 0
	return errors.Join(problems...)
}

// podOf reads a pod. Its ports are those of its containers, if it is declared as a gRPC server of the mesh.
func podOf(o *corev1.Pod) (Pod, error) {
	a, err := netip.ParseAddr(o.Status.PodIP)
	if err != nil {
		return Pod{}, fmt.Errorf("address of %s: %w", o.Name, err)
	}
	p := Pod{Namespace: o.Namespace, Name: o.Name, Account: o.Spec.ServiceAccountName, Labels: o.Labels, Address: a}
	if p.Account == "" {
		p.Account = "default"
	}
	if o.Annotations[serversAnnotation] != serversXDS || !slices.Contains(strings.Split(o.Annotations[templatesAnnotation], ","), agentTemplate) {
		return p, nil
	}
	for _, c := range o.Spec.Containers {
		for _, port := range c.Ports {
			p.Ports = append(p.Ports, uint16(port.ContainerPort)) //nolint:gosec // the API server accepts ports only
		}
	}
	return p, nil
}

// Ready returns nil if istiod has configured the servers of all pods.
func (m *Mesh) Ready() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.listed {
		return errors.New("the pods have not been listed")
	}
	for _, s := range m.servers {
		if err := s.Ready(); err != nil {
			return err
		}
	}
	return nil
}

func (m *Mesh) runLine(ctx context.Context, line *traffic.Line) {
	sleep(ctx, line.Pause(m.Rate, 1)) // not all lines at once
	for turn := 0; ctx.Err() == nil; turn++ {
		sources, destinations := m.ends(line)
		// Servers refuse connections until istiod has configured them.
		if m.Ready() != nil || len(sources) == 0 || len(destinations) == 0 {
			sleep(ctx, idle)
			continue
		}
		from, to := sources[turn%len(sources)], destinations[turn/len(sources)%len(destinations)]
		if _, err := m.Clients.Call(ctx, from, netip.AddrPortFrom(to.Address, line.Port), requestPath); err != nil && ctx.Err() == nil {
			m.Config.Errors.Error("a request failed", "line", line.Name, "error", err)
		}
		sleep(ctx, line.Pause(m.Rate, len(sources)))
	}
}

// ends returns the pods of this member that are sources and destinations of a line.
func (m *Mesh) ends(line *traffic.Line) (sources, destinations []Pod) {
	if len(line.Clusters) > 0 && !slices.Contains(line.Clusters, m.Cluster) {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pods {
		if line.Source.Matches(labels.Set(p.Labels)) {
			sources = append(sources, p)
		}
		if slices.Contains(p.Ports, line.Port) && line.Destination.Matches(labels.Set(p.Labels)) {
			destinations = append(destinations, p)
		}
	}
	return sources, destinations
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
