// Package realnode adds one real node to a plane: kubelet, containerd, runc and
// kube-proxy on this machine, in namespaces of their own. It needs Linux and root;
// Missing names what else a machine lacks.
//
//	p, err := plane.Start(ctx, plane.Options{RealNode: true})
//	node, err := realnode.Start(ctx, realnode.Options{Plane: p})
//	err = node.LoadProgram(ctx, "docker.io/local/hello:1", "/path/of/a/static/binary")
//	// pods with this image and imagePullPolicy: Never run now
//	err = node.Stop() // before the plane's
//
// No image is pulled: the node has no network but its own. Pods reach the apiserver,
// through the kubernetes service as everywhere; the apiserver reaches kubelet, pods and
// services. What runs outside reaches in with Node.Dial, and Node.Run starts a
// process inside, which has the kubelet's sockets at their usual paths:
//
//	/var/lib/kubelet/device-plugins/kubelet.sock
//	/var/lib/kubelet/plugins_registry
//	/var/lib/kubelet/pod-resources/kubelet.sock
//
// The same directory is Node.KubeletDir for processes outside. Both paths name the same
// files, and the longer one works inside as well.
//
// How it is done: package keeper makes the namespaces and clears up after them. One
// thread of this process enters them, and all processes of the node are its children, so
// that they are ordinary components of the plane. Between the networks there are two
// proxies in this process (proxy_linux.go), and nothing else of the machine changes.
package realnode
