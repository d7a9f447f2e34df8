package realnode

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gpu-summary/gpu-summary-controller/lab/realnode/keeper"
)

// needed are the programs of a node that are not built here, and the packages, as
// Debian and Ubuntu call them, that have them.
var needed = []struct{ program, pkg string }{
	{"containerd", "containerd"},
	{"containerd-shim-runc-v2", "containerd"},
	{"ctr", "containerd"},
	{"runc", "runc"},
	{"iptables", "iptables"},
	{"iptables-restore", "iptables"},
}

const pluginPackage = "containernetworking-plugins"

var (
	// pluginDirs are where distributions put the CNI plugins.
	pluginDirs = []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"}
	plugins    = []string{"bridge", "host-local", "loopback", "portmap"}
	// controllers are the ones without which kubelet or runc give up.
	controllers = []string{"cpu", "cpuset", "memory", "pids"}
)

// Missing names what a real node needs and this machine lacks, each with what to do
// about it. It changes nothing.
func Missing() []string { return missing(machine{}) }

// machine is asked about this machine, or about another one in a test.
type machine struct {
	user        func() int
	find        func(program string) error
	exists      func(path string) bool
	controllers func() []string
	namespaces  func() error
}

func (m machine) orThis() machine {
	if m.user == nil {
		m.user = os.Geteuid
	}
	if m.find == nil {
		m.find = func(program string) error { _, err := exec.LookPath(program); return err }
	}
	if m.exists == nil {
		m.exists = func(path string) bool { _, err := os.Stat(path); return err == nil }
	}
	if m.controllers == nil {
		m.controllers = keeper.Controllers
	}
	if m.namespaces == nil {
		m.namespaces = tryNamespaces
	}
	return m
}

func missing(m machine) []string {
	m = m.orThis()
	var found, packages []string
	for _, n := range needed {
		if m.find(n.program) != nil {
			packages = append(packages, n.pkg)
			found = append(found, fmt.Sprintf("%s is not installed: apt-get install %s", n.program, n.pkg))
		}
	}
	if dir, lacks := m.pluginDir(); dir == "" {
		found = append(found, fmt.Sprintf("CNI plugin %s is not installed: apt-get install %s", lacks, pluginPackage))
		packages = append(packages, pluginPackage)
	}
	for _, controller := range controllers {
		if !slices.Contains(m.controllers(), controller) {
			found = append(found, fmt.Sprintf("control groups have no %s controller: mount it below /sys/fs/cgroup, "+
				"or boot the kernel with cgroup_enable=%s", controller, controller))
		}
	}
	if !m.exists("/proc/sys/net/bridge/bridge-nf-call-iptables") {
		found = append(found, "iptables does not see what a bridge forwards: modprobe br_netfilter")
	}
	if m.user() != 0 {
		found = append([]string{"it must run as root: sudo --preserve-env=HOME,PATH and the same command"}, found...)
	} else if err := m.namespaces(); err != nil {
		found = append(found, fmt.Sprintf("namespaces cannot be made (%v): give the container that this is in "+
			"all capabilities (docker run --privileged)", err))
	}
	slices.Sort(packages)
	if packages = slices.Compact(packages); len(packages) > 1 {
		found = append(found, "all of these packages at once: apt-get install "+strings.Join(packages, " "))
	}
	return found
}

// pluginDir returns the directory that has all CNI plugins, or which one is lacking.
func (m machine) pluginDir() (dir, lacks string) {
	for _, dir := range pluginDirs {
		i := slices.IndexFunc(plugins, func(plugin string) bool { return !m.exists(filepath.Join(dir, plugin)) })
		if i < 0 {
			return dir, ""
		}
		if lacks == "" || i > 0 {
			lacks = plugins[i]
		}
	}
	return "", lacks
}

// tryNamespaces starts a program in such namespaces as the node gets.
func tryNamespaces() error {
	program, err := exec.LookPath("true")
	if err != nil {
		return err
	}
	cmd := exec.Command(program)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC,
	}
	return cmd.Run()
}
