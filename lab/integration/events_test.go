package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/preflight"
	"github.com/gpu-summary/gpu-summary-controller/internal/publish"
)

// allocatable lets devices of a node become unhealthy, or healthy again.
func (e *env) allocatable(node string, gpus int64) {
	e.Helper()
	e.eventually(fmt.Sprintf("%d healthy devices on %s", gpus, node), func() error {
		return retried(func() error {
			n, err := e.client.CoreV1().Nodes().Get(e.Context(), node, metav1.GetOptions{})
			if err != nil {
				return err
			}
			n.Status.Allocatable[count.NVIDIA] = *resource.NewQuantity(gpus, resource.DecimalSI)
			_, err = e.client.CoreV1().Nodes().UpdateStatus(e.Context(), n, metav1.UpdateOptions{})
			return err
		})
	})
}

// described are our Events in what kubectl describe shows of an object, oldest first.
func (e *env) described(about *corev1.ObjectReference) ([]corev1.Event, error) {
	list, err := e.client.CoreV1().Events(about.Namespace).SearchWithContext(e.Context(), scheme.Scheme, about)
	if err != nil {
		return nil, err
	}
	ours := slices.DeleteFunc(list.Items, func(event corev1.Event) bool { return event.ReportingController != "gpu-summary-controller" })
	slices.SortFunc(ours, func(a, b corev1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	return ours, nil
}

// told waits until these, and no others, are the reasons of the Events about an
// object, and returns the last Event.
func (e *env) told(about *corev1.ObjectReference, reasons ...string) (last corev1.Event) {
	e.Helper()
	e.eventually(fmt.Sprintf("Events %q of %s", reasons, about.Name), func() error {
		events, err := e.described(about)
		if err != nil {
			return err
		}
		var got []string
		for _, event := range events {
			got, last = append(got, event.Reason), event
		}
		if !slices.Equal(got, reasons) {
			return fmt.Errorf("they are %q", got)
		}
		return nil
	})
	return last
}

// aboutNode is what kubectl describe node looks for.
func aboutNode(name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)}
}

// aboutConfigMap is what kubectl describe configmap looks for.
func (e *env) aboutConfigMap() *corev1.ObjectReference {
	e.Helper()
	cm, err := e.configMap()
	e.must(err)
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: e.namespace, Name: cm.Name, UID: cm.UID}
}

// holding is a snapshot of one node with some devices healthy and six requested.
func holding(node string, healthy int64) *count.Snapshot {
	const requested = 6
	row := count.Row{Node: node, Resource: count.NVIDIA, Source: count.DevicePlugin}
	row.Numbers = count.Numbers{Capacity: 8, Allocatable: healthy, Requested: requested, Overcommitted: max(0, requested-healthy)}
	return &count.Snapshot{NodesKnown: true, Rows: []count.Row{row}, Observed: count.Observed{Pods: "1", Nodes: "1"}}
}

// events runs Events of a publisher until the test, or stop, ends.
func (e *env) events(client kubernetes.Interface, p *publish.Publisher, log *lines) (events *publish.Events, stop func()) {
	events = publish.NewEvents(client.EventsV1(), p, 0)
	ctx, cancel := context.WithCancel(klog.NewContext(e.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log)))))
	var wg sync.WaitGroup
	wg.Go(func() { events.Run(ctx) })
	stop = func() { cancel(); wg.Wait() }
	e.Cleanup(stop)
	return events, stop
}

// TestEventsOnARealServer: it takes them as they are, and kubectl describe finds them
// at the node and at the ConfigMap.
func TestEventsOnARealServer(t *testing.T) {
	e := newEnv(t)
	node := e.namespace + "-gpu"
	p := e.publisher(func(*publish.Options) {})
	log := &lines{}
	events, stop := e.events(e.client, p, log)
	pass := func(snap *count.Snapshot) {
		t.Helper()
		_, err := p.Publish(t.Context(), snap)
		e.must(err)
		events.Passed(snap, nil)
	}
	pass(holding(node, 8))
	e.told(e.aboutConfigMap(), "PublishingStarted")
	pass(holding(node, 5))
	event := e.told(aboutNode(node), "GPUsOvercommitted")
	want := "Pods hold more GPUs than are healthy, for 0s: 6 of nvidia.com/gpu requested, 5 of 8 healthy"
	if event.Namespace != "default" || event.Type != corev1.EventTypeWarning || event.Action != "Count" || event.Message != want || event.ReportingInstance == "" {
		t.Errorf("it is %+v", event)
	}
	if related := event.Related; related == nil || *related != *e.aboutConfigMap() {
		t.Errorf("related is %v", related)
	}
	pass(holding(node, 8))
	e.told(aboutNode(node), "GPUsOvercommitted", "GPUsRecovered")

	events.Passed(holding(node, 8), fmt.Errorf("in a test: %w", publish.ErrFenced))
	stop() // at once: it gets through nevertheless
	e.told(e.aboutConfigMap(), "PublishingStarted", "PublishingFenced")
	if log.String() != "" {
		t.Errorf("logged was %s", log)
	}
	e.found(node)
}

// found fails the test unless the selector of docs/events.md finds a node's Events.
func (e *env) found(node string) {
	e.Helper()
	list, err := e.client.CoreV1().Events("").List(e.Context(), metav1.ListOptions{FieldSelector: "reportingComponent=gpu-summary-controller"})
	e.must(err)
	if !slices.ContainsFunc(list.Items, func(event corev1.Event) bool { return event.InvolvedObject.Name == node }) {
		e.Errorf("the selector finds %d Events, and none of %s", len(list.Items), node)
	}
}

// TestEventsWithoutPermission: one line for each namespace, whatever happens, and no
// Event; with the permission to create, and no other, they are written again.
func TestEventsWithoutPermission(t *testing.T) {
	e := newEnv(t)
	node := e.namespace + "-gpu"
	e.user(nil, nil)
	config, err := e.plane.ConfigFor("user-of-" + e.namespace)
	e.must(err)
	client, err := kubernetes.NewForConfig(config)
	e.must(err)
	p := e.publisher(func(*publish.Options) {})
	log := &lines{}
	events, _ := e.events(client, p, log)
	_, err = p.Publish(t.Context(), holding(node, 8))
	e.must(err)
	events.Passed(holding(node, 8), nil)
	logged := func(lines int, text string) {
		t.Helper()
		e.eventually(text, func() error {
			if got := log.String(); strings.Count(got, "\n") != lines || !strings.Contains(got, text) {
				return errors.New(got)
			}
			return nil
		})
	}
	logged(1, `Events cannot be written, all else goes on; nothing more is said of it until one is" namespace="`+e.namespace+`" err="events.events.k8s.io is forbidden: `)
	events.Passed(holding(node, 5), nil)
	logged(2, `namespace="default" err="events.events.k8s.io is forbidden: `)
	for i := range 5 {
		events.Passed(holding(fmt.Sprint(node, i), 5), nil)
	}
	e.told(aboutNode(node))
	e.told(e.aboutConfigMap())

	e.grantEvents("default")
	// The API server's authorizer hears of roles by a watch.
	e.eventually("the role to take effect", func() error {
		needs := []preflight.Need{{Group: "events.k8s.io", Resource: "events", Namespace: "default", Verbs: []string{"create"}}}
		report, err := preflight.Ask(t.Context(), client, needs)
		if missing, _ := report.Missing(); err == nil && missing > 0 {
			err = errors.New("it has not yet")
		}
		return err
	})
	events.Passed(holding(node+"-more", 5), nil)
	e.told(aboutNode(node+"-more"), "GPUsOvercommitted")
	logged(3, `Events are written again" namespace="default" lost=`)
}

// grantEvents lets the user of this test create Events in a namespace.
func (e *env) grantEvents(namespace string) {
	e.Helper()
	name := "user-of-" + e.namespace
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create"},
	}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}
	_, err := e.client.RbacV1().Roles(namespace).Create(e.Context(), role, metav1.CreateOptions{})
	e.must(err)
	_, err = e.client.RbacV1().RoleBindings(namespace).Create(e.Context(), binding, metav1.CreateOptions{})
	e.must(err)
	e.Cleanup(func() {
		ctx := context.Background() // the test has ended
		for _, err := range []error{
			e.client.RbacV1().Roles(namespace).Delete(ctx, name, metav1.DeleteOptions{}),
			e.client.RbacV1().RoleBindings(namespace).Delete(ctx, name, metav1.DeleteOptions{}),
		} {
			if err != nil && !apierrors.IsNotFound(err) {
				e.Errorf("clean up RBAC: %v", err)
			}
		}
	})
}
