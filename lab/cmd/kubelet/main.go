//go:build linux

// Command kubelet is kubelet and kube-proxy in one binary; the first argument says
// which of them to be. They are apart from the control plane because only a real
// node needs them.
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/component-base/cli"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane/tether"
)

var components = map[string]func() int{
	"kubelet":    func() int { return cli.Run(kubelet.NewKubeletCommand(context.Background())) },
	"kube-proxy": func() int { return cli.Run(proxy.NewProxyCommand()) },
}

func main() {
	tether.Hold()
	if len(os.Args) < 2 || components[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: kubelet kubelet|kube-proxy [flags]")
		os.Exit(2)
	}
	run := components[os.Args[1]]
	// Each command parses os.Args as if it were the only one in the binary.
	os.Args = os.Args[1:]
	os.Exit(run())
}
