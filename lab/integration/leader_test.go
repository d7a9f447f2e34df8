package integration

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
)

// replica is a controller in a process of its own.
type replica struct {
	*exec.Cmd
	log  *lines
	done chan struct{} // closed when it has ended
}

// replica starts a controller that contends for the lease, at a pace that a test has
// time for. Each is a user of its own, so that the audit log tells them apart.
func (e *env) replica() *replica {
	e.Helper()
	path, err := binary()
	e.must(err)
	e.replicas++
	config, err := e.plane.ConfigFor(fmt.Sprintf("%s-replica-%d", e.namespace, e.replicas), user.SystemPrivilegedGroup)
	e.must(err)
	r := &replica{log: &lines{}, done: make(chan struct{})}
	r.Cmd = exec.CommandContext(e.Context(), path, "--kubeconfig", e.kubeconfig(config), "--namespace", e.namespace,
		"--http-address=127.0.0.1:0", "--leader-elect", "--settle=100ms",
		"--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s")
	r.Stderr = r.log
	e.must(r.Start())
	go func() { defer close(r.done); _ = r.Wait() }()
	e.Cleanup(func() {
		_ = r.Process.Signal(syscall.SIGCONT)
		_ = r.Process.Kill()
		<-r.done
		if e.Failed() {
			e.Logf("a replica said:\n%s", r.log.String())
		}
	})
	return r
}

// leads reports whether the Lease names the replica, which says its own name.
func (e *env) leads(r *replica) error {
	lease, err := e.client.CoordinationV1().Leases(e.namespace).Get(e.Context(), "gpu-summary-controller", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder == "" || !strings.Contains(r.log.String(), `identity="`+*holder+`"`) {
		return fmt.Errorf("the lease is held by %v", lease.Spec.HolderIdentity)
	}
	return nil
}

// leader waits until one of the replicas leads, and returns it and the others.
func (e *env) leader(replicas ...*replica) (leader *replica, others []*replica) {
	e.Helper()
	e.eventually("a leader", func() (err error) {
		leader, others = nil, nil
		for _, r := range replicas {
			if err = e.leads(r); err == nil {
				leader = r
			} else {
				others = append(others, r)
			}
		}
		if leader == nil {
			return err
		}
		return nil
	})
	return leader, others
}

// terms follows the ConfigMap and fails the test if a version of an earlier term
// comes after one of a later.
func (e *env) terms() {
	w, err := e.client.CoreV1().ConfigMaps(e.namespace).Watch(e.Context(), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, "gpu-summary").String(),
	})
	e.must(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		last := 0
		for event := range w.ResultChan() {
			cm, ok := event.Object.(*corev1.ConfigMap)
			if !ok {
				continue
			}
			term, err := strconv.Atoi(cm.Annotations["gpu-summary/term"])
			if err != nil || term < last {
				e.Errorf("version %s is of term %q, the one before of %d", cm.ResourceVersion, cm.Annotations["gpu-summary/term"], last)
			}
			last = term
		}
	}()
	e.Cleanup(func() { w.Stop(); <-done })
}

// TestFailover: whatever becomes of a leader, the other replica publishes the right
// numbers, in a later term, and never does an earlier one write again.
func TestFailover(t *testing.T) {
	e := newEnv(t)
	e.node("gpu-1", 8)
	e.terms()
	a, b := e.replica(), e.replica()
	leader, others := e.leader(a, b)
	e.shows("gpu-1=0")

	// It dies.
	e.must(leader.Process.Kill())
	e.bound("a", "gpu-1", 1)
	e.shows("gpu-1=1")
	second, _ := e.leader(others...)

	// It is asked to end. It gives the lease back, and that is no failure.
	third := e.replica()
	e.eventually("a third replica to contend", func() error {
		if !strings.Contains(third.log.String(), "Attempting to acquire") {
			return fmt.Errorf("it says %s", third.log.String())
		}
		return nil
	})
	e.must(second.Process.Signal(syscall.SIGTERM))
	<-second.done
	if code := second.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the leader that was asked to end exits with %d", code)
	}
	e.bound("b", "gpu-1", 2)
	e.shows("gpu-1=3")
	e.leader(third)

	// It sleeps through its lease. Awake, it finds out and ends, and that is one.
	fourth := e.replica()
	e.must(third.Process.Signal(syscall.SIGSTOP))
	e.leader(fourth)
	e.bound("c", "gpu-1", 3)
	e.shows("gpu-1=6")
	e.must(third.Process.Signal(syscall.SIGCONT))
	<-third.done
	if code, said := third.ProcessState.ExitCode(), third.log.String(); code == 0 || !strings.Contains(said, "lost the lease") && !strings.Contains(said, "a later term has published") {
		t.Errorf("the leader that lost its lease exits with %d and says\n%s", code, said)
	}
	e.bound("d", "gpu-1", 1)
	e.shows("gpu-1=7")
	e.oneWriterAtATime(4)
}

// TestNeverLed: a standby that is asked to end has not failed.
func TestNeverLed(t *testing.T) {
	e := newEnv(t)
	leader := e.replica()
	e.leader(leader)
	standby := e.replica()
	e.eventually("it to stand by", func() error {
		if !strings.Contains(standby.log.String(), "Attempting to acquire") {
			return fmt.Errorf("it says %s", standby.log.String())
		}
		return nil
	})
	e.must(standby.Process.Signal(syscall.SIGTERM))
	<-standby.done
	if code := standby.ProcessState.ExitCode(); code != 0 {
		t.Errorf("it exits with %d", code)
	}
	if err := e.leads(leader); err != nil {
		t.Error(err)
	}
}
