package realnode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// networks are those of the planes that have real nodes.
var networks = struct {
	sync.Mutex
	of map[*plane.Plane]*network
}{of: map[*plane.Plane]*network{}}

// network is what the real nodes of one plane have in common: numbers, of which their
// addresses are made, a cable between each two of them, and the apiserver's way in.
type network struct {
	nodes     []*Node // that have a number
	connected []*Node // of these, those that are connected with each other
	egress    *proxies
}

// mostNodes is how many numbers there are.
const mostNodes = 254

// enrol gives the node a number, and with it its name and its addresses.
func (n *Node) enrol() error {
	networks.Lock()
	defer networks.Unlock()
	w := networks.of[n.options.Plane]
	if w == nil {
		w = &network{}
	}
	for n.number = 1; w.has(func(o *Node) bool { return o.number == n.number }); n.number++ {
		if n.number == mostNodes {
			return fmt.Errorf("add a real node: the plane has %d, and there are no more addresses", mostNodes)
		}
	}
	if n.name = n.options.Name; n.name == "" {
		if n.name = DefaultName; n.number > 1 {
			n.name = fmt.Sprintf("%s-%d", DefaultName, n.number)
		}
	}
	if w.has(func(o *Node) bool { return o.name == n.name }) {
		return fmt.Errorf("add a real node: the plane has one that is called %s", n.name)
	}
	n.address = netip.AddrFrom4([4]byte{10, 88, byte(n.number), 1})
	n.pods = netip.PrefixFrom(n.address, 24).Masked()
	w.nodes = append(w.nodes, n)
	networks.of[n.options.Plane] = w
	return nil
}

func (w *network) has(is func(*Node) bool) bool { return slices.ContainsFunc(w.nodes, is) }

// connect lets the node and the others reach each other, and the apiserver the node.
func (n *Node) connect() error {
	networks.Lock()
	defer networks.Unlock()
	w := networks.of[n.options.Plane]
	if w.egress == nil {
		l, err := listenUnix(n.options.Plane.EgressSocket())
		if err != nil {
			return err
		}
		w.egress = newProxies()
		w.egress.connect(l, w.dial)
	}
	others := slices.Clone(w.connected)
	w.connected = append(w.connected, n) // from here on disconnect undoes what was done
	for _, other := range others {
		if err := n.layCable(other); err != nil {
			return fmt.Errorf("connect %s with %s: %w", n.name, other.name, err)
		}
	}
	return nil
}

// disconnect takes the node's cables away. After the last node the way in is closed.
func (n *Node) disconnect() error {
	egress, err := n.takeCables()
	if egress != nil {
		egress.close() // waits for those who dial, who wait for the lock
	}
	return err
}

func (n *Node) takeCables() (unused *proxies, err error) {
	networks.Lock()
	defer networks.Unlock()
	w := networks.of[n.options.Plane]
	if w == nil || !slices.Contains(w.connected, n) {
		return nil, nil
	}
	w.connected = slices.DeleteFunc(w.connected, func(o *Node) bool { return o == n })
	if len(w.connected) == 0 {
		unused, w.egress = w.egress, nil
	}
	var errs []error
	for _, other := range w.connected {
		errs = append(errs, n.takeCable(other))
	}
	return unused, errors.Join(errs...)
}

// resign gives back the node's number and name, when nothing is left that has them.
func (n *Node) resign() {
	networks.Lock()
	defer networks.Unlock()
	w := networks.of[n.options.Plane]
	if w == nil {
		return
	}
	w.nodes = slices.DeleteFunc(w.nodes, func(o *Node) bool { return o == n })
	if len(w.nodes) == 0 {
		delete(networks.of, n.options.Plane)
	}
}

// dial connects from inside of the node that has the address. What none has is a
// service's, which all of them know.
func (w *network) dial(ctx context.Context, protocol, address string) (net.Conn, error) {
	from, err := w.nodeFor(address)
	if err != nil {
		return nil, err
	}
	return from.inside.dial(ctx, protocol, address)
}

func (w *network) nodeFor(address string) (*Node, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("connect with a node's network: %w", err)
	}
	networks.Lock()
	defer networks.Unlock()
	if len(w.connected) == 0 {
		return nil, errors.New("connect with a node's network: there is no real node")
	}
	for _, n := range w.connected {
		if n.pods.Contains(to.Addr()) {
			return n, nil
		}
	}
	return w.connected[0], nil
}
