package plane

// What the lab runs. A test holds these against lab/go.mod.
const (
	KubernetesVersion = "v1.37.2"
	KWOKVersion       = "v0.8.0"
)
