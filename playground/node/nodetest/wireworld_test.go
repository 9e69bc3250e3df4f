package nodetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/ciliumtest"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/playground/internal/parts"
)

var (
	ciliumGroups     = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumcidrgroups"}
	ciliumIdentities = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumidentities"}
	ciliumEndpoints  = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumendpoints"}
	ciliumNodes      = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumnodes"}
)

// wirePorts are the ports of random worlds that the wire can have: SCTP is UDP there, and nothing has IPv6 addresses.
func wirePorts() []ciliumtest.Port {
	var out []ciliumtest.Port
	for _, p := range ciliumtest.Ports {
		if p.Protocol == v1alpha1.ProtocolSCTP {
			p.Protocol = v1alpha1.ProtocolUDP
		}
		if p.Protocol != ciliumtest.ICMPv6 && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// onWire changes a random world to what the node's agent takes: it has no proxy, and SCTP is off. Ranges of SCTP become ranges of UDP,
// and actions on requests become actions on their ports.
func onWire(in policy.Input) policy.Input {
	for _, class := range in.ResourceClasses {
		for i := range class.Spec.Actions {
			action := &class.Spec.Actions[i]
			action.HTTP = nil
			for j := range action.Ports {
				if action.Ports[j].Protocol == v1alpha1.ProtocolSCTP {
					action.Ports[j].Protocol = v1alpha1.ProtocolUDP
				}
			}
		}
	}
	return in
}

// wireSource is a source of connections on the wire.
type wireSource struct {
	ciliumtest.Source
	from  *namespace
	local netip.Addr
}

// wireServer is a pod that answers on all wirePorts.
type wireServer struct {
	labels  map[string]string
	address netip.Addr
}

// wireMember is a member with one node, the pods of random worlds, and addresses outside.
type wireMember struct {
	node *node
	// first is the first process of the node.
	first   int
	objects dynamic.Interface
	agent   *http.Client
	sources []wireSource
	servers []wireServer
	// remote are the objects of endpoints that are not on the node.
	remote map[schema.GroupVersionResource][]*unstructured.Unstructured
	nonces int
	// late is how long a connection may disagree after everything was realized.
	late time.Duration
}

// clientLabels are the labels of clients. The pods of another cluster have the same.
func clientLabels() []map[string]string {
	var out []map[string]string
	for _, app := range slices.Concat(ciliumtest.Apps, []string{"1"}) {
		out = append(out, map[string]string{ciliumtest.AppKey: app})
	}
	for _, svc := range ciliumtest.Svcs {
		out = append(out, map[string]string{ciliumtest.SvcKey: svc})
	}
	for i, app := range ciliumtest.Apps {
		out = append(out, map[string]string{ciliumtest.AppKey: app, ciliumtest.SvcKey: ciliumtest.Svcs[i%len(ciliumtest.Svcs)]})
	}
	return append(out, map[string]string{ciliumtest.AppKey: "", ciliumtest.SvcKey: ""}, map[string]string{"app": "other"})
}

// serverLabels are the labels of servers: of no, one and two classes, with known and unknown names.
func serverLabels() []map[string]string {
	redis, web, dns := ciliumtest.RedisKey, ciliumtest.WebKey, ciliumtest.DNSKey
	out := []map[string]string{
		{},
		{redis: "unknown"},
		{dns: "corp"},
		{redis: "bobs-cluster", web: "shop"},
		{redis: "orders", dns: "corp"},
		{web: "blog", dns: "corp"},
	}
	for _, name := range ciliumtest.Redis {
		out = append(out, map[string]string{redis: name})
	}
	for _, name := range ciliumtest.Sites {
		out = append(out, map[string]string{web: name})
	}
	for _, l := range out {
		l["app"] = "server"
	}
	return out
}

// startWireMember starts the node and everything that connects.
func startWireMember(t *testing.T) *wireMember {
	t.Helper()
	m := &wireMember{late: lateTimeout, remote: map[schema.GroupVersionResource][]*unstructured.Unstructured{}}
	m.node = up(t, filepath.Join(t.TempDir(), "nodes"), "--clusters", ciliumtest.Here)
	var err error
	if m.objects, err = dynamic.NewForConfig(m.node.config(t, ciliumtest.Here)); err != nil {
		t.Fatal(err)
	}
	m.first = firstProcess(t, m.node.state, ciliumtest.Here)
	socket := fmt.Sprintf("/proc/%d/root/run/cilium/cilium.sock", m.first)
	m.agent = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	m.startPods(t)
	m.addSource(ciliumtest.Source{Reserved: "host"}, enterNamespace(t, netnsOf(m.first)), netip.Addr{})
	m.addSource(ciliumtest.Source{Reserved: "health"}, enterNamespace(t, netnsOf(processOf(t, m.first, "cilium-health-r"))), netip.Addr{})
	m.addOutside(t)
	return m
}

func (m *wireMember) addSource(s ciliumtest.Source, from *namespace, local netip.Addr) {
	m.sources = append(m.sources, wireSource{Source: s, from: from, local: local})
}

// firstProcess returns the first process of a cluster's node, by the folder of the state of all nodes.
func firstProcess(t *testing.T, state, name string) int {
	t.Helper()
	var record struct{ PID int }
	data, err := os.ReadFile(filepath.Join(state, name, "node", "sandbox.json"))
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err != nil || record.PID == 0 {
		t.Fatalf("the record of the node %s: %v", name, err)
	}
	return record.PID
}

// processOf returns a process of the node with this first process. The name, of which the kernel keeps 15 bytes, begins with the prefix.
func processOf(t *testing.T, first int, prefix string) int {
	t.Helper()
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", first))
	if err != nil {
		t.Fatal(err)
	}
	var found int
	eventually(t, time.Minute, "the node runs "+prefix, func(context.Context) error {
		files, err := filepath.Glob("/proc/[0-9]*/comm")
		if err != nil {
			return err
		}
		for _, file := range files {
			name, err := os.ReadFile(file)
			if err != nil || !strings.HasPrefix(string(name), prefix) {
				continue
			}
			pid, err := strconv.Atoi(strings.Split(file, "/")[2])
			if err != nil {
				continue
			}
			if ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid)); err == nil && ns == own {
				found = pid
				return nil
			}
		}
		return errors.New("there is none")
	})
	return found
}

// startPods starts clients and servers. Their containers do nothing: this process makes and serves the connections in their network
// namespaces.
func (m *wireMember) startPods(t *testing.T) {
	t.Helper()
	client := m.node.client(t, ciliumtest.Here)
	create := func(name string, labels map[string]string) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "idle", Image: parts.NodeProbeImage, ImagePullPolicy: corev1.PullNever, Args: []string{"--listen=127.0.0.1:40000"},
		}}}}
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i, labels := range clientLabels() {
		create(fmt.Sprintf("client-%d", i), labels)
	}
	for i, labels := range serverLabels() {
		create(fmt.Sprintf("server-%d", i), labels)
	}
	pods := map[string]*corev1.Pod{}
	eventually(t, 5*time.Minute, "the pods of the worlds run", func(ctx context.Context) error {
		list, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if !podReady(&list.Items[i]) {
				return fmt.Errorf("%s is %s", list.Items[i].Name, list.Items[i].Status.Phase)
			}
			pods[list.Items[i].Name] = &list.Items[i]
		}
		return nil
	})
	running, err := podProcesses()
	if err != nil {
		t.Fatal(err)
	}
	enter := func(name string) *namespace {
		pid := running[string(pods[name].UID)]
		if pid == 0 {
			t.Fatalf("the pod %s has no process", name)
		}
		return enterNamespace(t, netnsOf(pid))
	}
	for i, labels := range clientLabels() {
		m.addSource(ciliumtest.Source{Cluster: ciliumtest.Here, Labels: labels}, enter(fmt.Sprintf("client-%d", i)), netip.Addr{})
	}
	for i, labels := range serverLabels() {
		name := fmt.Sprintf("server-%d", i)
		enter(name).serve(t, wirePorts())
		m.servers = append(m.servers, wireServer{labels: labels, address: netip.MustParseAddr(pods[name].Status.PodIP)})
	}
}

const (
	// otherNode is the address of another node of the member, which has no programs.
	otherNode = "172.29.0.77"
	// identityBits is the position of the number of the cluster in the number of an identity.
	identityBits = 16
)

// addOutside adds sources at addresses behind the node's default route: addresses outside of the fleet, another node, and pods of other
// nodes and of another cluster. The agent learns the identities of nodes and pods from objects of Cilium, as in a cluster mesh, and
// enforces on the packets that come from their addresses.
func (m *wireMember) addOutside(t *testing.T) {
	t.Helper()
	outside := enterOutside(t, m.node.state)
	outside.routeTo(t, m.node.client(t, ciliumtest.Here))
	add := func(s ciliumtest.Source, address string) {
		m.addSource(s, outside.namespace, outside.add(t, address))
	}
	for _, address := range []string{"10.5.0.7", "10.5.0.8", "10.5.1.1", "10.6.0.1", "10.9.9.9", "203.0.113.1"} {
		add(ciliumtest.Source{Address: address}, address)
	}
	add(ciliumtest.Source{Reserved: "remote-node"}, otherNode)
	m.remote[ciliumNodes] = append(m.remote[ciliumNodes], ciliumObject("CiliumNode", "", "elsewhere", map[string]any{
		"spec": map[string]any{"addresses": []any{map[string]any{"type": "InternalIP", "ip": otherNode}}},
	}))
	for i, s := range remoteSources() {
		address := fmt.Sprintf("10.90.0.%d", i+1)
		add(s, address)
		m.remote[ciliumIdentities] = append(m.remote[ciliumIdentities], remoteIdentity(i, s))
		m.remote[ciliumEndpoints] = append(m.remote[ciliumEndpoints], remoteEndpoint(i, s, address))
	}
}

// objectsOf returns what a translation gives the member, groups first.
func objectsOf(translated ciliumtest.Objects) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for name, g := range translated.Groups {
		list := make([]any, len(g.Prefixes))
		for i, p := range g.Prefixes {
			list[i] = p.String()
		}
		o := ciliumObject("CiliumCIDRGroup", "", name, map[string]any{"spec": map[string]any{"externalCIDRs": list}})
		o.SetLabels(g.Labels)
		out = append(out, o)
	}
	for name, spec := range translated.Policies {
		out = append(out, ciliumObject("CiliumClusterwideNetworkPolicy", "", name, map[string]any{"spec": spec}))
	}
	slices.SortStableFunc(out, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetKind()+" "+a.GetName(), b.GetKind()+" "+b.GetName())
	})
	return out
}

// give makes the member have these objects of ACP and no others, and waits until they are enforced.
func (m *wireMember) give(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	m.write(t, objects)
	m.waitRealized(t, wireTimeout)
}

// write makes the member's API server have these objects of ACP and no others, in the adapter's order: groups, policies, and then the
// removals.
func (m *wireMember) write(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	resources := map[string]schema.GroupVersionResource{"CiliumCIDRGroup": ciliumGroups, "CiliumClusterwideNetworkPolicy": ccnp}
	force, wanted := true, map[string]bool{lastPolicy: true}
	for _, o := range objects {
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		wanted[o.GetName()] = true
		if _, err := m.objects.Resource(resources[o.GetKind()]).
			Patch(t.Context(), o.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "test", Force: &force}); err != nil {
			t.Fatalf("write %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	for _, resource := range []schema.GroupVersionResource{ccnp, ciliumGroups} {
		have, err := m.objects.Resource(resource).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range have.Items {
			if wanted[o.GetName()] {
				continue
			}
			if err := m.objects.Resource(resource).Delete(t.Context(), o.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// lastPolicy is the name of a policy that selects nothing, and is written after all others.
const lastPolicy = "test-last"

// waitRealized returns when every endpoint enforces what was written before. The agent reads policies in the order in which they were
// written, so it has read all others when it has the last one.
func (m *wireMember) waitRealized(t *testing.T, within time.Duration) {
	t.Helper()
	m.nonces++
	nonce := fmt.Sprintf("written-%d-times", m.nonces)
	last := ciliumObject("CiliumClusterwideNetworkPolicy", "", lastPolicy, map[string]any{"spec": map[string]any{
		"description": nonce, "endpointSelector": map[string]any{"matchLabels": map[string]any{"selects": "nothing"}},
		"enableDefaultDeny": map[string]any{"ingress": false}, "ingress": []any{map[string]any{}}, "log": map[string]any{"value": nonce},
	}})
	data, err := json.Marshal(last)
	if err != nil {
		t.Fatal(err)
	}
	force := true
	if _, err := m.objects.Resource(ccnp).
		Patch(t.Context(), lastPolicy, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "test", Force: &force}); err != nil {
		t.Fatal(err)
	}
	var revision int64
	eventually(t, within, "the agent has read every policy", func(ctx context.Context) error {
		var got struct {
			Policy   string
			Revision int64
		}
		if err := m.ask(ctx, "/v1/policy", &got); err != nil {
			return err
		}
		if !strings.Contains(got.Policy, nonce) {
			return fmt.Errorf("revision %d is without the last one", got.Revision)
		}
		revision = got.Revision
		return nil
	})
	eventually(t, within, "every endpoint enforces every policy", func(ctx context.Context) error {
		var endpoints []struct {
			ID     int64
			Status struct {
				State  string
				Policy struct {
					Realized struct {
						Revision int64 `json:"policy-revision"`
					}
				}
			}
		}
		if err := m.ask(ctx, "/v1/endpoint", &endpoints); err != nil {
			return err
		}
		if len(endpoints) < len(clientLabels())+len(m.servers) {
			return fmt.Errorf("the agent has %d endpoints", len(endpoints))
		}
		for _, e := range endpoints {
			if e.Status.State != "ready" || e.Status.Policy.Realized.Revision < revision {
				return fmt.Errorf("endpoint %d is %s at revision %d, want %d", e.ID, e.Status.State, e.Status.Policy.Realized.Revision, revision)
			}
		}
		return nil
	})
}

// ask reads from the API of the agent.
func (m *wireMember) ask(ctx context.Context, path string, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent"+path, nil)
	if err != nil {
		return err
	}
	res, err := m.agent.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the agent answers %s with %s", path, res.Status)
	}
	return json.NewDecoder(res.Body).Decode(out)
}
