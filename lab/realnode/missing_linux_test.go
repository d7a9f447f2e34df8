package realnode

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// whole is a machine that has everything.
func whole() machine {
	return machine{
		user:        func() int { return 0 },
		find:        func(string) error { return nil },
		exists:      func(string) bool { return true },
		controllers: func() []string { return []string{"cpu", "cpuset", "io", "memory", "pids"} },
		namespaces:  func() error { return nil },
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	if got := missing(whole()); len(got) > 0 {
		t.Errorf("on a machine that has everything: %q", got)
	}
	not := errors.New("not there")
	for name, c := range map[string]struct {
		change func(*machine)
		want   []string
	}{
		"user": {
			func(m *machine) { m.user = func() int { return 1000 }; m.namespaces = func() error { return not } },
			[]string{"it must run as root: sudo --preserve-env=HOME,PATH and the same command"},
		},
		"namespaces": {
			func(m *machine) { m.namespaces = func() error { return not } },
			[]string{"namespaces cannot be made (not there): give the container that this is in all capabilities (docker run --privileged)"},
		},
		"runc": {
			func(m *machine) {
				m.find = func(program string) error {
					if program == "runc" {
						return not
					}
					return nil
				}
			},
			[]string{"runc is not installed: apt-get install runc"},
		},
		"every program": {
			func(m *machine) { m.find = func(string) error { return not } },
			[]string{
				"containerd is not installed: apt-get install containerd",
				"containerd-shim-runc-v2 is not installed: apt-get install containerd",
				"ctr is not installed: apt-get install containerd",
				"runc is not installed: apt-get install runc",
				"iptables is not installed: apt-get install iptables",
				"iptables-restore is not installed: apt-get install iptables",
				"all of these packages at once: apt-get install containerd iptables runc",
			},
		},
		"a CNI plugin": {
			func(m *machine) {
				m.exists = func(path string) bool {
					return strings.HasPrefix(path, "/usr/lib/cni/") && !strings.HasSuffix(path, "/host-local") || strings.HasPrefix(path, "/proc/")
				}
			},
			[]string{"CNI plugin host-local is not installed: apt-get install containernetworking-plugins"},
		},
		"a controller": {
			func(m *machine) { m.controllers = func() []string { return []string{"cpu", "cpuset", "pids"} } },
			[]string{"control groups have no memory controller: mount it below /sys/fs/cgroup, or boot the kernel with cgroup_enable=memory"},
		},
		"bridges": {
			func(m *machine) { m.exists = func(path string) bool { return !strings.HasPrefix(path, "/proc/") } },
			[]string{"iptables does not see what a bridge forwards: modprobe br_netfilter"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := whole()
			c.change(&m)
			if diff := cmp.Diff(c.want, missing(m)); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
		})
	}
}
