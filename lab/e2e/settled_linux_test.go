package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
	"github.com/gpu-summary/gpu-summary-controller/lab/diff"
	"github.com/gpu-summary/gpu-summary-controller/lab/gpudriver"
	"github.com/gpu-summary/gpu-summary-controller/lab/realnode"
)

// settled waits until the row of the real node is this, and all agree on it and on that
// of another that has joined.
func (e *env) settled(requested int) {
	e.Helper()
	e.row(e.node.Name(), requested)
	e.agreeIn(e.Context())
}

// row waits until the ConfigMap shows so much on a node.
func (e *env) row(node string, requested int) {
	e.Helper()
	e.rowIs(e.Context(), node, strconv.Itoa(requested))
}

// rowIs waits until the ConfigMap shows this on a node: "" if it has no such row.
func (e *env) rowIs(ctx context.Context, node, want string) {
	e.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e.eventuallyIn(ctx, fmt.Sprintf("row %s to be %q", node, want), func() error {
		cm, err := e.site.configMap(ctx)
		if err == nil && cm.Data[node] != want {
			err = fmt.Errorf("it is %q", cm.Data[node])
		}
		return err
	})
}

// total waits until an annotation has a value.
func (e *env) total(annotation, want string) {
	e.Helper()
	e.eventually(annotation+" "+want, func() error {
		cm, err := e.site.configMap(e.Context())
		if err == nil && cm.Annotations[annotation] != want {
			err = fmt.Errorf("it is %q", cm.Annotations[annotation])
		}
		return err
	})
}

// agreeIn waits until published ConfigMaps, scheduler and kubelet agree on how many
// GPUs of each real node are taken.
func (e *env) agreeIn(ctx context.Context) {
	e.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e.eventuallyIn(ctx, "ConfigMap, NodeInfo and kubelet to agree", func() error {
		for _, node := range e.nodes {
			if err := e.agree(ctx, node); err != nil {
				return fmt.Errorf("of node %s %w", node.Name(), err)
			}
		}
		return nil
	})
}

func (e *env) agree(ctx context.Context, node *realnode.Node) error {
	published, err := e.published(ctx, node)
	if err != nil {
		return err
	}
	scheduler, err := e.schedulerSays(ctx, node)
	if err != nil {
		return err
	}
	kubelet, err := e.kubeletSays(ctx, node)
	if err != nil {
		return err
	}
	if published != scheduler || published != kubelet {
		return fmt.Errorf("%d are published, by NodeInfo and claims it is %d, and the kubelet has given away %d", published, scheduler, kubelet)
	}
	return nil
}

// published is what both ConfigMaps say, once they say the same.
func (e *env) published(ctx context.Context, node *realnode.Node) (int, error) {
	summary, err := e.site.configMap(ctx)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(summary.Data[node.Name()])
	if err != nil {
		return 0, fmt.Errorf("row of the node: %w", err)
	}
	capacity, err := e.client.CoreV1().ConfigMaps(e.site.namespace).Get(ctx, "gpu-capacity", metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	var nodes struct {
		Rows []struct {
			Node, Resource string
			Requested      int
		}
	}
	if err := json.Unmarshal([]byte(capacity.Data[publish.KeyNodes]), &nodes); err != nil {
		return 0, err
	}
	sum := 0
	for _, row := range nodes.Rows {
		if row.Node == node.Name() && row.Resource == count.NVIDIA {
			sum += row.Requested
		}
	}
	if sum != n {
		return 0, fmt.Errorf("%s says %d and %s %d", summary.Name, n, capacity.Name, sum)
	}
	return n, nil
}

// schedulerSays is what the scheduler has charged the node: by its own NodeInfo for
// pods that a device plugin serves, and the devices of claims for all others.
func (e *env) schedulerSays(ctx context.Context, node *realnode.Node) (int, error) {
	nodes, err := e.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	pods, err := e.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	held, err := e.held(ctx, node)
	if err != nil {
		return 0, err
	}
	var all []*corev1.Node
	for i := range nodes.Items {
		all = append(all, &nodes.Items[i])
	}
	var own []*corev1.Pod
	for i := range pods.Items {
		if pods.Items[i].Status.ExtendedResourceClaimStatus == nil {
			own = append(own, &pods.Items[i])
		}
	}
	counts := diff.Scheduler(all, own)
	return int(counts[diff.Key{Node: node.Name(), Resource: count.NVIDIA}]) + len(held), nil
}

// held is the node's devices that claims hold. Administration holds none.
func (e *env) held(ctx context.Context, node *realnode.Node) (map[string]bool, error) {
	claims, err := e.client.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	devices := map[string]bool{}
	for _, claim := range claims.Items {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, r := range claim.Status.Allocation.Devices.Results {
			if r.Driver == gpudriver.DRADriver && r.Pool == node.Name() && (r.AdminAccess == nil || !*r.AdminAccess) {
				devices[r.Device] = true
			}
		}
	}
	return devices, nil
}

// kubeletSays is how many devices the kubelet has given to pods that are active. What
// containers and sidecars have is what its pod-resources API says. Of init containers
// that have ended it says nothing, although the scheduler goes on to charge for them and
// the kubelet to keep what is theirs: that is in its checkpoint.
func (e *env) kubeletSays(ctx context.Context, node *realnode.Node) (int, error) {
	list, err := podResources(ctx, node)
	if err != nil {
		return 0, err
	}
	kept, err := checkpoint(node)
	if err != nil {
		return 0, err
	}
	held, err := e.held(ctx, node)
	if err != nil {
		return 0, err
	}
	given := map[string]bool{}
	for _, p := range list {
		object, err := e.client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
		if err != nil {
			return 0, err // it is on its way out
		}
		for _, c := range p.Containers {
			for _, id := range nvidia(c) {
				given["device plugin "+id] = true
			}
			for _, claim := range c.DynamicResources {
				for _, r := range claim.ClaimResources {
					// Whether access is administrative, the kubelet does not say.
					if r.DriverName == gpudriver.DRADriver && held[r.DeviceName] {
						given["dra "+r.DeviceName] = true
					}
				}
			}
		}
		for _, c := range object.Spec.InitContainers {
			for _, id := range kept[string(object.UID)][c.Name] {
				given["device plugin "+id] = true
			}
		}
	}
	return len(given), nil
}

func nvidia(c *podresourcesv1.ContainerResources) (ids []string) {
	for _, d := range c.Devices {
		if d.ResourceName == count.NVIDIA {
			ids = append(ids, d.DeviceIds...)
		}
	}
	return ids
}

// podResources asks the kubelet.
func podResources(ctx context.Context, node *realnode.Node) ([]*podresourcesv1.PodResources, error) {
	conn, err := grpc.NewClient("unix:"+node.PodResourcesSocket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	answer, err := podresourcesv1.NewPodResourcesListerClient(conn).List(ctx, &podresourcesv1.ListPodResourcesRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask the kubelet's pod-resources API: %w", err)
	}
	return answer.PodResources, nil
}

func checkpointFile(node *realnode.Node) string {
	return filepath.Join(node.KubeletDir(), "device-plugins", "kubelet_internal_checkpoint")
}

// checkpoint is the devices of each container of each pod, as the kubelet keeps them.
func checkpoint(node *realnode.Node) (map[string]map[string][]string, error) {
	text, err := os.ReadFile(checkpointFile(node))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // nothing was ever given away
	}
	if err != nil {
		return nil, err
	}
	var file struct {
		Data struct {
			PodDeviceEntries []struct {
				PodUID, ContainerName, ResourceName string
				DeviceIDs                           map[string][]string // by NUMA node
			}
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("read the kubelet's checkpoint: %w", err)
	}
	kept := map[string]map[string][]string{}
	for _, entry := range file.Data.PodDeviceEntries {
		if entry.ResourceName != count.NVIDIA {
			continue
		}
		if kept[entry.PodUID] == nil {
			kept[entry.PodUID] = map[string][]string{}
		}
		for _, ids := range entry.DeviceIDs {
			kept[entry.PodUID][entry.ContainerName] = append(kept[entry.PodUID][entry.ContainerName], ids...)
		}
	}
	return kept, nil
}
