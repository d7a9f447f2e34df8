package rival

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// poll is what one writes before one knows of watches, and what many a script in a
// CronJob still is: list everything, sum, write, wait.
func poll(ctx context.Context, config *rest.Config, o Options, say func(string)) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	for first := true; ; first = false {
		pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list pods: %w", err)
		}
		sum := map[string]int64{}
		for i := range pods.Items {
			add(sum, &pods.Items[i])
		}
		if err := write(ctx, client, o.Namespace, o.Name, sum); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		if first {
			say("ready")
		}
		select {
		case <-time.After(o.Every):
		case <-ctx.Done():
			return nil
		}
	}
}
