package diff

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// queued returns a function that says how many pods the scheduler is going to try
// without anything else having to happen. A pod that did not fit says so at once and
// for as long as it backs off, up to ten seconds: by the pods alone, a cluster looks
// settled in which devices are about to be given to those who wait.
func queued(p *plane.Plane) (func(context.Context) (int, error), error) {
	client, err := rest.HTTPClientFor(p.Config())
	if err != nil {
		return nil, fmt.Errorf("make HTTP client: %w", err)
	}
	scheduler := p.Component(plane.Scheduler)
	return func(ctx context.Context) (int, error) {
		n, err := pendingPods(ctx, client, scheduler.URL()+"/metrics")
		if err != nil {
			return 0, fmt.Errorf("read the scheduler's queues: %w", err)
		}
		return n, nil
	}, nil
}

// pendingPods adds up the queues of which pods come back by themselves.
func pendingPods(ctx context.Context, client *http.Client, url string) (sum int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	req.Close = true // no idle connection is to delay the scheduler's end
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("GET %s: %s", url, res.Status)
	}
	found := 0
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		for _, queue := range []string{"active", "backoff"} {
			if value, ok := strings.CutPrefix(lines.Text(), `scheduler_pending_pods{queue="`+queue+`"} `); ok {
				var n float64
				if _, err := fmt.Sscan(value, &n); err != nil {
					return 0, fmt.Errorf("queue %s: %q is no number", queue, value)
				}
				sum += int(n)
				found++
			}
		}
	}
	if found != 2 { // not to be taken for empty
		return 0, fmt.Errorf("GET %s: %d of the queues active and backoff are in it", url, found)
	}
	return sum, nil
}
