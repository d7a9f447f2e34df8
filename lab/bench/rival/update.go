package rival

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// AnnotationSent is when a bare update was sent, in nanoseconds since 1970.
const AnnotationSent = "lab-bench/sent"

// update is the limit for the way from an event to a ConfigMap: it knows already what
// to write, and writes an object of the same size.
func update(ctx context.Context, config *rest.Config, o Options, say func(string)) error {
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: o.Name}, Data: map[string]string{}}
	for i := range o.Rows {
		cm.Data[fmt.Sprintf("ip-10-%06d.us-west-2.compute.internal", i)] = "8"
	}
	configMaps := client.CoreV1().ConfigMaps(o.Namespace)
	if cm, err = configMaps.Create(ctx, cm, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	say("ready")
	for i := range o.Count {
		select {
		case <-time.After(o.Every):
		case <-ctx.Done():
			return nil
		}
		cm.Data["ip-10-000000.us-west-2.compute.internal"] = strconv.Itoa(i % 8)
		cm.Annotations = map[string]string{AnnotationSent: strconv.FormatInt(time.Now().UnixNano(), 10)}
		if cm, err = configMaps.Update(ctx, cm, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("update: %w", err)
		}
	}
	say("done")
	<-ctx.Done()
	return nil
}
