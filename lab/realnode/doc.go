// Package realnode adds real nodes to a plane: for each of them kubelet, containerd, runc
// and kube-proxy on this machine, in namespaces of their own. It needs Linux and root;
// Missing names what else a machine lacks.
//
//	p, err := plane.Start(ctx, plane.Options{RealNode: true})
//	node, err := realnode.Start(ctx, realnode.Options{Plane: p})
//	err = node.LoadProgram(ctx, "docker.io/local/hello:1", "/path/of/a/static/binary")
//	// pods with this image and imagePullPolicy: Never run now
//	err = node.Stop() // before the plane's
//
// No image is pulled: nodes have no network but their own. Pods reach each other and
// services, on whichever node of the plane they are, and the apiserver, through the
// kubernetes service as everywhere; the apiserver reaches kubelets, pods and services.
// What runs outside reaches in with Node.Dial, and Node.Run starts a process inside, which
// has the kubelet's sockets at their usual paths:
//
//	/var/lib/kubelet/device-plugins/kubelet.sock
//	/var/lib/kubelet/plugins_registry
//	/var/lib/kubelet/pod-resources/kubelet.sock
//
// The same directory is Node.KubeletDir for processes outside. Both paths name the same
// files, and the longer one works inside as well.
//
// A plane has as many of them as are started, one after the other or at once, and each
// can be stopped by itself. Node.Freeze lets one stand still, with all that runs on it.
//
// How it is done: package keeper makes the namespaces and clears up after them. One
// thread of this process enters them, and all processes of the node are its children, so
// that they are ordinary components of the plane. Between each two nodes of a plane there
// is a pair of network devices (cable_linux.go), which the kernel removes with either of
// them. Between their networks and this machine's there are proxies in this process
// (proxy_linux.go): from the apiserver one for all nodes, to it one in each, at an address
// that all of them have. Nothing else of the machine changes.
package realnode
