package realnode

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// echo is a server that repeats what it is told until the client has said all.
func echo(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func newTestProxies(t *testing.T) *proxies {
	t.Helper()
	p := newProxies()
	t.Cleanup(p.close)
	return p
}

// TestForwardPassesOnTheEnd of what a client says: HTTP without length, logs that
// are followed and exec depend on it.
func TestForwardPassesOnTheEnd(t *testing.T) {
	p := newTestProxies(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.forward(l, new(net.Dialer).DialContext, echo(t))
	conn, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "all"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "all" {
		t.Errorf("answer %q, %v", got, err)
	}
}

// TestCloseEndsConnections that both sides would keep for ever.
func TestCloseEndsConnections(t *testing.T) {
	p := newProxies()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.forward(l, new(net.Dialer).DialContext, echo(t))
	conn, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		p.close() // waits for the goroutines
	}()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Fatal("goroutines of the proxies are there 10 s after close")
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is there after close")
	}
	if conn, err := net.Dial("tcp4", l.Addr().String()); err == nil {
		_ = conn.Close()
		t.Error("the listener is there after close")
	}
}

// TestConnectLeadsOn, by a socket whose name is too long for the kernel.
func TestConnectLeadsOn(t *testing.T) {
	p := newTestProxies(t)
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 25))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "egress.sock")
	l, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("no such pod")
	p.connect(l, func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == "10.88.0.9:1" {
			return nil, refused
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	})
	t.Chdir(dir) // as the API server, which is in the directory
	connect := func(address string) (conn net.Conn, status int, reason string) {
		t.Helper()
		conn, err := net.Dial("unix", "egress.sock")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", address)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			body, err := io.ReadAll(response.Body)
			return conn, response.StatusCode, fmt.Sprint(string(body), err)
		}
		return conn, response.StatusCode, ""
	}
	conn, status, reason := connect(echo(t))
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, reason)
	}
	fmt.Fprint(conn, "hello")
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello" {
		t.Errorf("answer %q, %v", got, err)
	}
	if _, status, reason = connect("10.88.0.9:1"); status != http.StatusBadGateway || !strings.Contains(reason, refused.Error()) {
		t.Errorf("status %d, %q; want %d with the reason", status, reason, http.StatusBadGateway)
	}
}
