package gpudriver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	cdi "tags.cncf.io/container-device-interface/specs-go"
)

// RuntimeName is what a link to the command gpudriver has to be called to be the
// container runtime instead.
const RuntimeName = "runc"

// Runtime is runc for a containerd that knows nothing of CDI, as those before 1.7: of
// what a DRA driver has prepared nothing arrives in containers there. Before a
// container is created, Runtime asks the kubelet which CDI devices it has, and adds
// what is in their specifications to its environment. (Ordinary init containers are
// left out: the kubelet does not tell.)
type Runtime struct {
	Runc         string   // the real one
	PodResources string   // the kubelet's socket
	CDIDirs      []string // where specifications are
}

const podResourcesTimeout = 10 * time.Second

// NewRuntime finds the runc that is behind this program in PATH.
func NewRuntime() (Runtime, error) {
	r := Runtime{
		PodResources: "/var/lib/kubelet/pod-resources/kubelet.sock",
		CDIDirs:      []string{"/var/lib/kubelet/cdi", "/etc/cdi", "/var/run/cdi"},
	}
	var self os.FileInfo
	program, err := os.Executable()
	if err == nil {
		self, err = os.Stat(program)
	}
	if err != nil {
		return r, fmt.Errorf("find this program: %w", err)
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, RuntimeName)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 && !os.SameFile(info, self) {
			r.Runc = path
			return r, nil
		}
	}
	return r, fmt.Errorf("no %s in PATH besides this one", RuntimeName)
}

// Exec becomes runc with these arguments, and returns only if it cannot.
func (r Runtime) Exec(ctx context.Context, args []string) error {
	if bundle := bundleToCreate(args); bundle != "" {
		if err := r.amend(ctx, bundle); err != nil {
			return fmt.Errorf("give the container its devices: %w", err)
		}
	}
	return fmt.Errorf("run %s: %w", r.Runc, syscall.Exec(r.Runc, append([]string{RuntimeName}, args...), os.Environ()))
}

// bundleToCreate returns the directory of the container that the arguments create,
// "" if they do something else.
func bundleToCreate(args []string) string {
	create := slices.Index(args, "create")
	if create < 0 {
		return ""
	}
	for n, arg := range args[create:] {
		if bundle, ok := strings.CutPrefix(arg, "--bundle="); ok {
			return bundle
		}
		if (arg == "--bundle" || arg == "-b") && create+n+1 < len(args) {
			return args[create+n+1]
		}
	}
	return "."
}

// amend adds what is missing to the configuration of the container in a bundle.
func (r Runtime) amend(ctx context.Context, bundle string) error {
	file := filepath.Join(bundle, "config.json")
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read its configuration: %w", err)
	}
	config := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // as they are: some do not fit into a float
	if err := decoder.Decode(&config); err != nil {
		return fmt.Errorf("read its configuration %s: %w", file, err)
	}
	annotation := func(name string) string {
		annotations, _ := config["annotations"].(map[string]any)
		value, _ := annotations["io.kubernetes.cri."+name].(string)
		return value
	}
	if annotation("container-type") != "container" {
		return nil // the pod's own, or not of a pod
	}
	devices, err := r.devices(ctx, annotation("sandbox-namespace"), annotation("sandbox-name"), annotation("container-name"))
	if err != nil || len(devices) == 0 {
		return err
	}
	added, err := r.environment(devices)
	if err != nil {
		return err
	}
	process, ok := config["process"].(map[string]any)
	if !ok {
		return fmt.Errorf("its configuration %s has no process", file)
	}
	env, _ := process["env"].([]any)
	for _, variable := range added {
		env = append(env, variable)
	}
	process["env"] = env
	if data, err = json.Marshal(config); err != nil {
		return fmt.Errorf("encode its configuration: %w", err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("write its configuration: %w", err)
	}
	return nil
}

// devices asks the kubelet which CDI devices a container has.
func (r Runtime) devices(ctx context.Context, namespace, pod, container string) (ids []string, err error) {
	conn, err := grpc.NewClient("unix:"+r.PodResources, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to kubelet: %w", err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, podResourcesTimeout)
	defer cancel()
	response, err := podresources.NewPodResourcesListerClient(conn).Get(ctx, &podresources.GetPodResourcesRequest{PodNamespace: namespace, PodName: pod})
	if err != nil {
		return nil, fmt.Errorf("ask the kubelet which it has: %w", err)
	}
	for _, c := range response.GetPodResources().GetContainers() {
		if c.Name != container {
			continue
		}
		for _, d := range c.DynamicResources {
			for _, claim := range d.ClaimResources {
				for _, device := range claim.CdiDevices {
					ids = append(ids, device.Name)
				}
			}
		}
	}
	return ids, nil
}

// environment is what the specifications of devices add to a container's. Devices of
// other kinds than this driver's are not its business.
func (r Runtime) environment(ids []string) (env []string, err error) {
	for _, id := range ids {
		kind, name, _ := strings.Cut(id, "=")
		if kind != cdiKind {
			continue
		}
		n := -1
		for _, dir := range r.CDIDirs {
			spec, err := findSpec(dir, name)
			if err != nil {
				return nil, err
			}
			if n = slices.IndexFunc(spec.Devices, func(d cdi.Device) bool { return d.Name == name }); n >= 0 {
				env = append(env, spec.Devices[n].ContainerEdits.Env...)
				break
			}
		}
		if n < 0 {
			return nil, fmt.Errorf("no CDI specification of %s in %s", id, strings.Join(r.CDIDirs, ", "))
		}
	}
	return env, nil
}

// findSpec reads the specification of the claim that a CDI device belongs to.
func findSpec(dir, device string) (spec cdi.Spec, err error) {
	claim := device[:max(strings.LastIndex(device, "-"), 0)]
	data, err := os.ReadFile(filepath.Join(dir, cdiPrefix+claim+".json"))
	if errors.Is(err, os.ErrNotExist) {
		return spec, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &spec)
	}
	if err != nil {
		return spec, fmt.Errorf("read CDI specification: %w", err)
	}
	return spec, nil
}
