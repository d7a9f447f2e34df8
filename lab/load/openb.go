package load

import (
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The files of the trace that are read.
const (
	NodesFile = "openb_node_list_all_node.csv"
	PodsFile  = "openb_pod_list_default.csv"
)

var (
	nodeColumns = []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}
	podColumns  = []string{
		"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec",
		"qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time",
	}
)

// ReadOpenB reads the two files of the openb trace in dir. Every malformed row
// is reported as "file:line: column: what is wrong", and then there is no
// cluster: half a trace would load without complaint and count wrong.
func ReadOpenB(dir string) (*Cluster, error) {
	c := &Cluster{Source: "openb trace in " + dir}
	var bad problems
	nodes, pods := map[string]int{}, map[string]int{}
	err := readTable(filepath.Join(dir, NodesFile), nodeColumns, &bad, func(r *row) {
		if n := readNode(r, nodes); r.ok {
			c.Nodes = append(c.Nodes, n)
		}
	})
	if err == nil {
		err = readTable(filepath.Join(dir, PodsFile), podColumns, &bad, func(r *row) {
			if p := readPod(r, pods); r.ok {
				c.Pods = append(c.Pods, p)
			}
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read the openb trace: %q must hold %s and %s: %w", dir, NodesFile, PodsFile, err)
	}
	if err := bad.err(); err != nil {
		return nil, fmt.Errorf("read the openb trace:\n%w", err)
	}
	return c, nil
}

func readNode(r *row, seen map[string]int) Node {
	checkName(r, "sn")
	r.unique("sn", seen)
	n := Node{
		Name:      r.text("sn"),
		CPUMilli:  r.number("cpu_milli"),
		MemoryMiB: r.number("memory_mib"),
		GPUs:      r.number("gpu"),
		Model:     r.text("model"),
	}
	// Both become labels: the name as kubernetes.io/hostname.
	for column, value := range map[string]string{"sn": n.Name, "model": n.Model} {
		for _, msg := range validation.IsValidLabelValue(value) {
			r.fail(column, "%q: %s", value, msg)
		}
	}
	return n
}

func readPod(r *row, seen map[string]int) Pod {
	checkName(r, "name")
	r.unique("name", seen)
	p := Pod{
		Name:      r.text("name"),
		CPUMilli:  r.number("cpu_milli"),
		MemoryMiB: r.number("memory_mib"),
		GPUs:      r.number("num_gpu"),
		Phase:     corev1.PodPhase(r.text("pod_phase")),
		Created:   r.number("creation_time"),
	}
	// Not used, but a row that is broken anywhere is not to be trusted.
	r.number("gpu_milli")
	r.optional("deletion_time")
	r.optional("scheduled_time")
	switch p.Phase {
	case corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed:
	default:
		r.fail("pod_phase", "%q is not one of Pending, Running, Succeeded, Failed", p.Phase)
	}
	if spec := r.text("gpu_spec"); spec != "" {
		// Other files of the trace bind pods to GPU models. First fit knows
		// nothing of that, and a pod on the wrong model would go unnoticed.
		r.fail("gpu_spec", "%q: pods that ask for a GPU model are not supported", spec)
	}
	return p
}

// checkName refuses here what the API server would refuse in the middle of the load.
func checkName(r *row, column string) {
	name := r.text(column)
	for _, msg := range validation.IsDNS1123Subdomain(name) {
		r.fail(column, "%q: %s", name, msg)
	}
}
