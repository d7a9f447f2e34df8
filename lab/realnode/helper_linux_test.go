package realnode

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// helperReport is what the helper tells about its nodes on its standard output.
type helperReport []helperNode

type helperNode struct {
	Namespace string // of the node's processes, as /proc has it
	Network   string // the node's network namespace
	Group     string // control group
	Dir       string // of the node
	Keeper    int    // process ids
	First     int
}

// helper starts a plane with two nodes and a pod on each, pauses the kubelets and waits
// to be killed. The long name of its directory is one that no socket can have.
func helper() {
	report, err := startHelped(context.Background())
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(report)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

func startHelped(ctx context.Context) (helperReport, error) {
	dir := filepath.Join(os.Getenv(helperEnv), strings.Repeat("long/", 25))
	p, err := plane.Start(ctx, plane.Options{Dir: dir, RealNode: true, Without: []string{plane.KWOK}})
	if err != nil {
		return nil, err
	}
	var report helperReport
	for range 2 {
		node, err := startHelpedNode(ctx, p)
		if err != nil {
			return nil, err
		}
		report = append(report, node)
	}
	return report, nil
}

func startHelpedNode(ctx context.Context, p *plane.Plane) (helperNode, error) {
	n, err := Start(ctx, Options{Plane: p})
	if err != nil {
		return helperNode{}, err
	}
	if err := loadTestImage(ctx, n); err != nil {
		return helperNode{}, err
	}
	c, err := kubernetes.NewForConfig(p.Config())
	if err != nil {
		return helperNode{}, err
	}
	pods := c.CoreV1().Pods("default")
	waits := podOn(n.Name(), "waits-on-"+n.Name(), "wait")
	if _, err := pods.Create(ctx, waits, metav1.CreateOptions{}); err != nil {
		return helperNode{}, err
	}
	err = wait.PollUntilContextTimeout(ctx, pollInterval, time.Minute, true, func(ctx context.Context) (bool, error) {
		now, err := pods.Get(ctx, waits.Name, metav1.GetOptions{})
		return err == nil && now.Status.Phase == corev1.PodRunning, err
	})
	if err != nil {
		return helperNode{}, fmt.Errorf("wait for the helper's pod: %w", err)
	}
	first, err := n.place.First()
	if err != nil {
		return helperNode{}, err
	}
	var namespaces [2]string
	for i, kind := range []string{"pid", "net"} {
		if namespaces[i], err = os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", first, kind)); err != nil {
			return helperNode{}, err
		}
	}
	return helperNode{
		Namespace: namespaces[0], Network: namespaces[1], Group: n.place.ID, Dir: n.place.Dir,
		Keeper: n.component(Keeper).Pid(), First: first,
	}, n.Kubelet().Pause()
}

// inNamespace lists the processes in a namespace of this kind.
func inNamespace(t *testing.T, kind, namespace string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/ns/" + kind)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, link := range links {
		// One that has ended since is in none.
		if in, err := os.Readlink(link); err == nil && in == namespace {
			name, _ := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(link)), "comm"))
			found = append(found, strings.TrimSpace(string(name)))
		}
	}
	return found
}

// groupsOf lists the control groups of a node, in all hierarchies.
func groupsOf(t *testing.T, id string) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup/" + id, "/sys/fs/cgroup/*/" + id} {
		groups, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, groups...)
	}
	return found
}

// processesIn lists the processes in a node's control groups: those of its containers.
func processesIn(t *testing.T, id string) []string {
	t.Helper()
	var found []string
	for _, group := range groupsOf(t, id) {
		err := filepath.WalkDir(group, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Base(path) != "cgroup.procs" {
				return err
			}
			pids, err := os.ReadFile(path)
			found = append(found, strings.Fields(string(pids))...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
