package plane

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports come from below the range the kernel takes local ports of outgoing
// connections from (32768 and up on Linux). A port of that range can be taken
// by any connection while a component restarts; worse, a client that tries to
// reconnect to it may be given that very port and end up connected to itself.
const (
	firstPort = 20000
	lastPort  = 32000
)

// handedOut keeps two planes of one process from choosing the same port before
// either has begun to listen.
var handedOut = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// freePort returns a port nobody listens on at the moment. Another program may
// take it before the component does; Start tries another one then.
func freePort() (int, error) {
	handedOut.Lock()
	defer handedOut.Unlock()
	var last error
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if handedOut.ports[port] {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("release port %d: %w", port, err)
		}
		handedOut.ports[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("find a free port between %d and %d: %w", firstPort, lastPort, last)
}
