package bench

// scenarios are all there are, in the order in which they are run.
var scenarios = []scenario{
	{name: "cold-start", about: "from nothing to the first right summary, at each size", run: coldStart},
	{name: "wire", about: "the same with TLS and gzip each on and off, at the first size", run: wire},
	{name: "fallback", about: "the same against servers without protobuf, or without lists as a watch", run: fallback},
	{name: "heap", about: "live heap for each pod, with GPUs and without", run: heap},
	{name: "irrelevant", about: "CPU time for each event that changes no number, at the first size", run: irrelevant},
	{name: "gpu", about: "CPU time for each event of a GPU pod, and for each publish, at each size", run: gpu},
	{name: "latency", about: "from an event to the ConfigMap at a watcher, quiet and under load", run: latency},
	{name: "quiet", about: "requests and bytes in an hour in which nothing changes", run: quiet},
	{name: "bytes", about: "bytes written for one change, with 1, 5k and 65k GPU nodes", run: writtenBytes},
	{name: "lab", about: "the cold start on a real etcd and kube-apiserver, at the first size; only if named", run: lab, extra: true},
}
