package keeper

import (
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
)

// forwarding is what a node must do with the packets of its pods: pass them on, and
// show those between two of them to iptables, where services are.
var forwarding = []string{"net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables"}

// network makes the node's network: a bridge, which pods are connected to later, with
// the node's address, and nothing that leads elsewhere. Other nodes are connected later.
func (p Place) network() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find the node's loopback device: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("start the node's loopback device: %w", err)
	}
	server, err := netlink.ParseAddr(p.Server)
	if err != nil {
		return fmt.Errorf("read the address for what is outside: %w", err)
	}
	if err := netlink.AddrAdd(loopback, server); err != nil {
		return fmt.Errorf("make the address for what is outside: %w", err)
	}
	address, err := netlink.ParseAddr(p.Address)
	if err != nil {
		return fmt.Errorf("read the node's address: %w", err)
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name = p.Bridge
	bridge := &netlink.Bridge{LinkAttrs: attributes}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("make bridge device %s: %w", p.Bridge, err)
	}
	if err := netlink.AddrAdd(bridge, address); err != nil {
		return fmt.Errorf("give %s its address: %w", p.Bridge, err)
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("start %s: %w", p.Bridge, err)
	}
	// A packet to a service needs some route before iptables gives it another address.
	everywhere := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: bridge.Index, Dst: everywhere, Scope: netlink.SCOPE_LINK}); err != nil {
		return fmt.Errorf("make the node's default route: %w", err)
	}
	for _, setting := range forwarding {
		if err := os.WriteFile("/proc/sys/"+setting, []byte("1"), 0o600); err != nil {
			return fmt.Errorf("let the node forward packets: %w", err)
		}
	}
	return nil
}
