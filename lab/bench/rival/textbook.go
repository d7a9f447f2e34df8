package rival

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const gpuResource = "nvidia.com/gpu"

// book is the controller of every tutorial: a shared informer for pods and one
// for nodes that cache whole objects, a workqueue, and a reconcile that lists everything
// and writes what it finds.
//
// One thing is better than the usual: all events share one key. A key for each pod, which
// is what the tutorials begin with, would mean a hundred and fifty thousand lists of everything
// before the queue is empty for the first time, which takes hours.
type book struct {
	client    kubernetes.Interface
	pods      corelisters.PodLister
	queue     workqueue.TypedRateLimitingInterface[string]
	namespace string
	name      string
}

const bookKey = "summary"

func textbook(ctx context.Context, config *rest.Config, o Options, say func(string)) error {
	// QPS and burst stay client-go's defaults, five a second: few people know of them.
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 10*time.Minute)
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	b := &book{
		client: client, pods: pods.Lister(), namespace: o.Namespace, name: o.Name,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	defer b.queue.ShutDown()
	// Every event asks for a pass: what could make it matter is for the reconciler to find out.
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { b.queue.Add(bookKey) },
		UpdateFunc: func(any, any) { b.queue.Add(bookKey) },
		DeleteFunc: func(any) { b.queue.Add(bookKey) },
	}
	for _, informer := range []cache.SharedIndexInformer{pods.Informer(), nodes.Informer()} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("add handler: %w", err)
		}
	}
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), pods.Informer().HasSynced, nodes.Informer().HasSynced) {
		return errors.New("caches did not sync")
	}
	say("ready")
	go func() {
		<-ctx.Done()
		b.queue.ShutDown()
	}()
	for b.processNext(ctx) {
	}
	return nil
}

func (b *book) processNext(ctx context.Context) bool {
	key, shutdown := b.queue.Get()
	if shutdown {
		return false
	}
	defer b.queue.Done(key)
	if err := b.reconcile(ctx); err != nil {
		b.queue.AddRateLimited(key)
		return true
	}
	b.queue.Forget(key)
	return true
}

// reconcile lists everything and writes the result, whether it has changed or not.
func (b *book) reconcile(ctx context.Context) error {
	pods, err := b.pods.List(labels.Everything())
	if err != nil {
		return err
	}
	sum := map[string]int64{}
	for _, pod := range pods {
		add(sum, pod)
	}
	return write(ctx, b.client, b.namespace, b.name, sum)
}

// add adds what a pod asks for: the sum of its containers, as most people have it.
func add(sum map[string]int64, pod *corev1.Pod) {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	for _, c := range pod.Spec.Containers {
		if q, ok := c.Resources.Requests[gpuResource]; ok {
			sum[pod.Spec.NodeName] += q.Value()
		}
	}
}

// write gets the ConfigMap and updates it.
func write(ctx context.Context, client kubernetes.Interface, namespace, name string, sum map[string]int64) error {
	data := make(map[string]string, len(sum))
	for node, n := range sum {
		data[node] = strconv.FormatInt(n, 10)
	}
	configMaps := client.CoreV1().ConfigMaps(namespace)
	cm, err := configMaps.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	cm = cm.DeepCopy()
	cm.Data = data
	_, err = configMaps.Update(ctx, cm, metav1.UpdateOptions{})
	return err
}
