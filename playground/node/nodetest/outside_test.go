package nodetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/acp-io/acp/internal/enforcer/ciliumtest"
)

// outside is the network behind the default route of the nodes: the namespace of the switch. Addresses that are added to it are outside of
// the fleet.
type outside struct {
	*namespace
	handle *netlink.Handle
	bridge netlink.Link
}

// enterOutside finds the switch by the folder of the state of the nodes. The namespace has no name: only acp-nodes has it open.
func enterOutside(t *testing.T, state string) *outside {
	t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		if text, err := os.ReadFile(command); err != nil || !strings.Contains(string(text), state) {
			continue
		}
		files, err := filepath.Glob(filepath.Join(filepath.Dir(command), "fd", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if target, err := os.Readlink(file); err != nil || !strings.HasPrefix(target, "net:[") {
				continue
			}
			if o := switchAt(file); o != nil {
				t.Cleanup(func() { _ = o.handle.Close() }) // the namespace ends with the nodes
				o.namespace = enterNamespace(t, file)
				return o
			}
		}
	}
	t.Fatal("no process has a network namespace with a switch open")
	return nil
}

// switchAt returns nil if the namespace of a file has no switch.
func switchAt(file string) *outside {
	ns, err := netns.GetFromPath(file)
	if err != nil {
		return nil
	}
	defer ns.Close()
	handle, err := netlink.NewHandleAt(ns)
	if err != nil {
		return nil
	}
	bridge, err := handle.LinkByName("br0")
	if err != nil {
		handle.Close()
		return nil
	}
	return &outside{handle: handle, bridge: bridge}
}

// routeTo adds the route to the pods of a cluster.
func (o *outside) routeTo(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Fatalf("the nodes of a cluster: %v, %v", nodes, err)
	}
	_, pods, err := net.ParseCIDR(nodes.Items[0].Spec.PodCIDR)
	if err != nil {
		t.Fatal(err)
	}
	route := &netlink.Route{LinkIndex: o.bridge.Attrs().Index, Dst: pods, Gw: net.ParseIP(nodes.Items[0].Status.Addresses[0].Address)}
	if err := o.handle.RouteAdd(route); err != nil {
		t.Fatalf("route to the pods %s: %v", pods, err)
	}
}

// add adds an address, from which connections can then be made.
func (o *outside) add(t *testing.T, address string) netip.Addr {
	t.Helper()
	local := netip.MustParseAddr(address)
	if err := o.handle.AddrAdd(o.bridge, &netlink.Addr{IPNet: &net.IPNet{IP: local.AsSlice(), Mask: net.CIDRMask(32, 32)}}); err != nil {
		t.Fatalf("add the address %s: %v", address, err)
	}
	return local
}

// connects returns a check that an address can, or cannot, open a TCP connection.
func (o *outside) connects(from, to netip.Addr, port uint16, want bool) func(context.Context) error {
	return func(context.Context) error {
		a := &attempt{from: o.namespace, local: from, to: to, port: ciliumtest.Port{Protocol: "TCP", Number: port}}
		if err := connectBatch([]*attempt{a}); err != nil {
			return err
		}
		switch {
		case want && a.err != nil:
			return fmt.Errorf("%s cannot connect to %s: %w", from, to, a.err)
		case !want && a.err == nil:
			return fmt.Errorf("%s can connect to %s", from, to)
		case !want && !errors.Is(a.err, errNoAnswer): // Cilium drops what it refuses
			return fmt.Errorf("%s cannot connect to %s, but not because of a policy: %w", from, to, a.err)
		}
		return nil
	}
}
