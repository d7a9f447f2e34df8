package plane

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Options say what Start starts. The zero value is a whole control plane in a
// temporary directory.
type Options struct {
	// Dir is the state directory; it must be empty or not exist, or be left
	// over from a lab that was killed. "" is a new temporary directory. Stop
	// removes what the lab made in either case.
	Dir string
	// Binaries are what Build returned; zero means that Start calls Build.
	Binaries Binaries
	// Progress gets lines for people; nil is silent.
	Progress io.Writer
	// Without names components not to start.
	Without []string
	// ExtraFlags are added to a component's flags. Of a flag given twice the
	// later one counts, so these override the lab's own.
	ExtraFlags map[string][]string
	// Audit lets kube-apiserver write every request (who, what, which object)
	// to audit.log in the state directory.
	Audit bool
	// RealNode makes the plane ready for nodes with a kubelet (package realnode).
	// KWOK leaves those alone, and with them all nodes that have no label.
	RealNode bool
}

// check finds misspelt names before anything is started.
func (o Options) check() error {
	known := strings.Join(startOrder, ", ")
	for _, name := range o.Without {
		if !slices.Contains(startOrder, name) {
			return fmt.Errorf("leave out %q: no such component (there are %s)", name, known)
		}
		if name == Etcd || name == APIServer {
			return fmt.Errorf("leave out %s: nothing works without it", name)
		}
	}
	if o.RealNode && !o.wants(ControllerManager) {
		return fmt.Errorf("leave out %s: a real node takes no pods without it", ControllerManager)
	}
	for name := range o.ExtraFlags {
		if !slices.Contains(startOrder, name) {
			return fmt.Errorf("add flags to %q: no such component (there are %s)", name, known)
		}
	}
	return nil
}

func (o Options) wants(name string) bool { return !slices.Contains(o.Without, name) }

func (o Options) say(format string, args ...any) {
	if o.Progress != nil {
		fmt.Fprintf(o.Progress, format+"\n", args...)
	}
}
