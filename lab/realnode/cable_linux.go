package realnode

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// device is the node's end of its cable to another.
func (n *Node) device(other *Node) string { return fmt.Sprintf("node-%d", other.number) }

// layCable connects two nodes, so that their pods reach each other.
func (n *Node) layCable(other *Node) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = n.device(other)
	cable := &netlink.Veth{
		LinkAttrs: attributes,
		PeerName:  other.device(n), PeerNamespace: netlink.NsFd(int(other.inside.network.Fd())),
	}
	err := n.inside.inNetwork(func() error {
		if err := netlink.LinkAdd(cable); err != nil {
			return fmt.Errorf("make device %s: %w", attributes.Name, err)
		}
		return n.lead(other)
	})
	if err != nil {
		return err
	}
	return other.inside.inNetwork(func() error { return other.lead(n) })
}

// lead makes the way through the cable to the other node and its pods.
func (n *Node) lead(other *Node) error {
	link, err := netlink.LinkByName(n.device(other))
	if err != nil {
		return fmt.Errorf("find device %s: %w", n.device(other), err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("start %s: %w", n.device(other), err)
	}
	err = netlink.RouteAdd(&netlink.Route{
		LinkIndex: link.Attrs().Index,
		Dst:       &net.IPNet{IP: other.pods.Addr().AsSlice(), Mask: net.CIDRMask(other.pods.Bits(), 32)},
		// The other answers for its address, which is that of its bridge.
		Gw: ip(other.address), Flags: int(netlink.FLAG_ONLINK),
		Src: ip(n.address),
	})
	if err != nil {
		return fmt.Errorf("make the route to %s: %w", other.pods, err)
	}
	return nil
}

func ip(a netip.Addr) net.IP { return a.AsSlice() }

// takeCable removes both ends of a cable, and the routes with them.
func (n *Node) takeCable(other *Node) error {
	return n.inside.inNetwork(func() error {
		link, err := netlink.LinkByName(n.device(other))
		var none netlink.LinkNotFoundError
		if errors.As(err, &none) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("find device %s: %w", n.device(other), err)
		}
		if err := netlink.LinkDel(link); err != nil {
			return fmt.Errorf("remove device %s: %w", n.device(other), err)
		}
		return nil
	})
}
