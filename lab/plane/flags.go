package plane

import (
	"fmt"
	"net"
)

// The names of the components, as Options.Without, Options.ExtraFlags and
// Plane.Component take them.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	Scheduler         = "kube-scheduler"
	ControllerManager = "kube-controller-manager"
	KWOK              = "kwok"
)

// startOrder is also the order of lists people read; stopping goes backwards,
// so that nothing loses the server it depends on while it still works.
var startOrder = []string{Etcd, APIServer, ControllerManager, Scheduler, KWOK}

const (
	loopback     = "127.0.0.1"
	serviceCIDR  = "10.0.0.0/24"
	podCIDR      = "10.128.0.0/9"
	issuer       = "https://kubernetes.default.svc.cluster.local"
	frontProxy   = "front-proxy-client"
	leaseSeconds = 200
)

var firstServiceIP = net.IPv4(10, 0, 0, 1)

func httpURL(port int) string  { return fmt.Sprintf("http://%s:%d", loopback, port) }
func httpsURL(port int) string { return fmt.Sprintf("https://%s:%d", loopback, port) }

// etcdFlags: plain HTTP, because it listens on the loopback address only and
// nothing but the lab's own toys lies in it.
func etcdFlags(f files, client, peer int) []string {
	return []string{
		"--name=lab",
		"--data-dir=" + f.etcdData(),
		"--listen-client-urls=" + httpURL(client),
		"--advertise-client-urls=" + httpURL(client),
		"--listen-peer-urls=" + httpURL(peer),
		"--initial-advertise-peer-urls=" + httpURL(peer),
		"--initial-cluster=lab=" + httpURL(peer),
		// The data does not outlive the lab: waiting for the disk at every write
		// would only make it slow.
		"--unsafe-no-fsync",
		// As kubeadm sets it: without frequent progress notifications the
		// apiserver cannot answer consistent reads from its watch cache.
		"--watch-progress-notify-interval=5s",
		"--quota-backend-bytes=4294967296",
		"--log-level=warn",
	}
}

func apiserverFlags(f files, port int, etcdURL string) []string {
	return []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", port),
		// An Endpoints object cannot hold a loopback address; without this the
		// server would fail to write it every ten seconds.
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + f.serverCert(),
		"--tls-private-key-file=" + f.serverKey(),
		"--client-ca-file=" + f.ca(),
		// The aggregation layer, as kubeadm sets it up. Scheduler and controller
		// manager look for this CA and complain as long as there is none.
		"--requestheader-client-ca-file=" + f.ca(),
		"--requestheader-allowed-names=" + frontProxy,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + f.proxyCert(),
		"--proxy-client-key-file=" + f.proxyKey(),
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + f.serviceAccountPublic(),
		"--service-account-signing-key-file=" + f.serviceAccountKey(),
		// A loader sends thousands of creations at once and should be slowed
		// down by the work, not by a limit meant for shared clusters.
		"--max-requests-inflight=3000",
		"--max-mutating-requests-inflight=1000",
		// Otherwise the server waits up to a minute for its watchers to go away
		// before it ends, and they do not: a restart would take that long.
		"--shutdown-send-retry-after=true",
	}
}

func auditFlags(f files, log string) []string {
	return []string{
		"--audit-policy-file=" + f.auditPolicy(),
		"--audit-log-path=" + log,
		// No rotation: whoever counts requests wants them all in one file.
		"--audit-log-maxsize=0",
	}
}

func schedulerFlags(f files, port int) []string {
	return append(clientFlags(f, Scheduler, port),
		// The default 50 a second would let a loaded cluster wait for minutes.
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)
}

func controllerManagerFlags(f files, port int) []string {
	return append(clientFlags(f, ControllerManager, port),
		"--controllers=*",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+f.serviceAccountKey(),
		"--root-ca-file="+f.ca(),
		"--cluster-signing-cert-file="+f.ca(),
		"--cluster-signing-key-file="+f.caKey(),
		// 1,500 nodes share two cores with everything else. KWOK renews a lease
		// after a quarter of its 200 s, which makes 30 writes a second for that
		// many nodes, and falls behind while thousands of pods are loaded. With
		// the default grace of 50 s nodes would turn NotReady then, and their
		// pods would be evicted, for want of CPU and not for anything tested.
		"--node-monitor-grace-period=10m",
		"--kube-api-qps=300",
		"--kube-api-burst=500",
	)
}

// clientFlags are what scheduler and controller manager have in common. There
// is one of each, so an election would only delay the start.
func clientFlags(f files, name string, port int) []string {
	kubeconfig := f.kubeconfig(name)
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + f.serverCert(),
		"--tls-private-key-file=" + f.serverKey(),
		"--leader-elect=false",
	}
}

func kwokFlags(f files, port int, realNode bool) []string {
	manage := "--manage-all-nodes=true"
	if realNode {
		// KWOK takes no selector to select what has no label at all.
		manage = "--manage-nodes-with-label-selector=!" + RealNodeLabel
	}
	return []string{
		"--kubeconfig=" + f.kubeconfig(KWOK),
		"--config=" + f.stages(),
		manage,
		fmt.Sprintf("--node-lease-duration-seconds=%d", leaseSeconds),
		"--cidr=" + podCIDR,
		fmt.Sprintf("--server-address=%s:%d", loopback, port),
		// At the default level every lease renewal is a line.
		"--v=WARN",
	}
}
