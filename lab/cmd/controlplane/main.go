// Command controlplane is etcd, kube-apiserver, kube-scheduler and
// kube-controller-manager in one binary; the first argument says which of them
// to be. One binary, because the four share most of their packages: apart they
// would take four times the disk and link time.
package main

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane/tether"
)

var components = map[string]func() int{
	"etcd": func() int {
		etcdmain.Main(os.Args)
		return 0
	},
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
}

func main() {
	tether.Hold()
	if len(os.Args) < 2 || components[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: controlplane etcd|kube-apiserver|kube-scheduler|kube-controller-manager [flags]")
		os.Exit(2)
	}
	run := components[os.Args[1]]
	// Each command parses os.Args as if it were the only one in the binary.
	os.Args = os.Args[1:]
	os.Exit(run())
}
