package realnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// dialTimeout bounds how long a proxy tries to connect.
const dialTimeout = 10 * time.Second

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// proxies are what connects networks of nodes with this machine's: the apiserver is
// reached at an address in each, and reaches out through a Unix socket.
type proxies struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func newProxies() *proxies {
	p := &proxies{}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// close ends all connections and waits for their goroutines.
func (p *proxies) close() {
	p.cancel()
	p.wg.Wait()
}

// serve hands each connection to handle until close.
func (p *proxies) serve(l net.Listener, handle func(net.Conn)) {
	stop := context.AfterFunc(p.ctx, func() { _ = l.Close() })
	p.wg.Go(func() {
		defer stop()
		for {
			conn, err := l.Accept()
			if err != nil {
				if p.ctx.Err() != nil {
					return
				}
				// Of too many open files there are fewer a moment later.
				if pause(p.ctx, 50*time.Millisecond) != nil {
					return
				}
				continue
			}
			p.wg.Go(func() { handle(conn) })
		}
	})
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// forward connects every client of the listener with the address.
func (p *proxies) forward(l net.Listener, dial dialFunc, address string) {
	p.serve(l, func(client net.Conn) {
		ctx, cancel := context.WithTimeout(p.ctx, dialTimeout)
		server, err := dial(ctx, "tcp", address)
		cancel()
		if err != nil {
			_ = client.Close() // as a server that is not there
			return
		}
		p.join(client, server)
	})
}

// join copies both ways until both sides have ended, or the proxies.
func (p *proxies) join(a, b net.Conn) {
	stop := context.AfterFunc(p.ctx, func() { _, _ = a.Close(), b.Close() })
	defer stop()
	var wg sync.WaitGroup
	pass := func(to, from net.Conn) {
		_, err := io.Copy(to, from)
		// The end of one direction is passed on; the other may go on.
		if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
			_ = half.CloseWrite()
			return
		}
		_, _ = a.Close(), b.Close()
	}
	wg.Go(func() { pass(a, b) })
	wg.Go(func() { pass(b, a) })
	wg.Wait()
	_, _ = a.Close(), b.Close()
}

// listenUnix listens at a path of any length: the kernel takes 107 bytes, so it is
// given one by way of the directory's file descriptor.
func listenUnix(path string) (net.Listener, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	defer dir.Close()
	// Left by an earlier node of this plane.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	short := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false) // the short name means nothing by then
	return l, nil
}

// connect serves HTTP CONNECT: whoever asks is connected with what dial leads to.
func (p *proxies) connect(l net.Listener, dial dialFunc) {
	server := &http.Server{
		ReadHeaderTimeout: dialTimeout,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodConnect {
				http.Error(w, "only CONNECT is served here", http.StatusMethodNotAllowed)
				return
			}
			ctx, cancel := context.WithTimeout(r.Context(), dialTimeout)
			defer cancel()
			out, err := dial(ctx, "tcp", r.RequestURI)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			in, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				_ = out.Close()
				return
			}
			if _, err := io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
				_, _ = in.Close(), out.Close()
				return
			}
			p.join(in, out)
		}),
	}
	stop := context.AfterFunc(p.ctx, func() { _ = server.Close() })
	p.wg.Go(func() {
		defer stop()
		_ = server.Serve(l) // until it is closed
	})
}
