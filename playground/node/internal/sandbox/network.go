package sandbox

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Switch is a network namespace with a bridge to which nodes are connected. It has no interface in the machine's own namespace, so the
// nodes reach only each other. The kernel removes it when this process ends.
type Switch struct {
	ns      netns.NsHandle
	gateway *net.IPNet
}

// NewSwitch creates a switch. gateway is its own address, which is the default route of the nodes.
func NewSwitch(gateway *net.IPNet) (*Switch, error) {
	s := &Switch{gateway: gateway}
	err := onOwnThread(func() (err error) {
		// The thread is not used again, so its namespace need not be restored.
		if s.ns, err = netns.New(); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
		if err := netlink.LinkAdd(bridge); err != nil {
			return fmt.Errorf("make a bridge (does this kernel have bridges?): %w", err)
		}
		if err := netlink.AddrAdd(bridge, &netlink.Addr{IPNet: gateway}); err != nil {
			return fmt.Errorf("give the bridge an address: %w", err)
		}
		return linksUp("lo", "br0")
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Route is the route to the addresses of another node's pods.
type Route struct {
	To  netip.Prefix
	Via net.IP
}

// Connect creates an interface eth0 with an address in the network namespace of process pid, and connects it to the switch.
func (s *Switch) Connect(pid int, port string, address *net.IPNet, routes ...Route) error {
	node, err := netns.GetFromPid(pid)
	if err != nil {
		return fmt.Errorf("find the network namespace of the node: %w", err)
	}
	defer node.Close()
	handle, err := netlink.NewHandleAt(s.ns)
	if err != nil {
		return fmt.Errorf("reach the switch: %w", err)
	}
	defer handle.Close()
	bridge, err := handle.LinkByName("br0")
	if err != nil {
		return fmt.Errorf("find the bridge: %w", err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MasterIndex = port, bridge.Attrs().Index
	cable := &netlink.Veth{LinkAttrs: attrs, PeerName: "eth0", PeerNamespace: netlink.NsFd(node)}
	if err := handle.LinkAdd(cable); err != nil {
		return fmt.Errorf("connect the node to the switch (does this kernel have veth?): %w", err)
	}
	if err := handle.LinkSetUp(cable); err != nil {
		return fmt.Errorf("connect the node to the switch: %w", err)
	}
	inside, err := netlink.NewHandleAt(node)
	if err != nil {
		return fmt.Errorf("reach the node's network: %w", err)
	}
	defer inside.Close()
	for _, name := range []string{"lo", "eth0"} {
		link, err := inside.LinkByName(name)
		if err != nil {
			return fmt.Errorf("find %s of the node: %w", name, err)
		}
		if name == "eth0" {
			if err := inside.AddrAdd(link, &netlink.Addr{IPNet: address}); err != nil {
				return fmt.Errorf("give the node its address: %w", err)
			}
		}
		if err := inside.LinkSetUp(link); err != nil {
			return fmt.Errorf("set up %s of the node: %w", name, err)
		}
		if name == "eth0" {
			all := []*netlink.Route{{LinkIndex: link.Attrs().Index, Gw: s.gateway.IP}}
			for _, r := range routes {
				to := &net.IPNet{IP: r.To.Addr().AsSlice(), Mask: net.CIDRMask(r.To.Bits(), r.To.Addr().BitLen())}
				all = append(all, &netlink.Route{LinkIndex: link.Attrs().Index, Dst: to, Gw: r.Via})
			}
			for _, r := range all {
				if err := inside.RouteAdd(r); err != nil {
					return fmt.Errorf("give the node a route: %w", err)
				}
			}
		}
	}
	return nil
}

// Close releases the network namespace of the switch.
func (s *Switch) Close() error { return s.ns.Close() }

func linksUp(names ...string) error {
	for _, name := range names {
		link, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetUp(link)
		}
		if err != nil {
			return fmt.Errorf("set up %s: %w", name, err)
		}
	}
	return nil
}

// onOwnThread runs f on a thread that ends after f, so that f may change the thread's namespaces.
func onOwnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // without unlocking it, so that the runtime ends the thread with the goroutine
		done <- f()
	}()
	return <-done
}
