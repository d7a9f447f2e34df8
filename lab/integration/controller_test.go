package integration

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/gpu-summary/gpu-summary-controller/internal/run"
)

// controller is a running controller.
type controller struct {
	env    *env
	url    string
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// start runs the controller until the test ends.
func (e *env) start(changes ...func(*rest.Config, *run.Options)) *controller {
	e.Helper()
	config, options := e.plane.Config(), run.DefaultOptions()
	options.Namespace = e.namespace
	options.Settle = 200 * time.Millisecond
	options.HTTPAddress = freeAddress(e)
	for _, change := range changes {
		change(config, options)
	}
	e.must(options.Validate())
	_, ctx := ktesting.NewTestContext(e.T)
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, klog.FromContext(ctx)))
	c := &controller{env: e, url: "http://" + options.HTTPAddress, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = run.Control(ctx, config, options)
	}()
	e.Cleanup(c.stop)
	return c
}

// stop ends the controller and waits for it.
func (c *controller) stop() {
	c.cancel()
	select {
	case <-c.done:
		if c.err != nil {
			c.env.Errorf("the controller ended with %v", c.err)
		}
	case <-time.After(patience):
		c.env.Error("the controller does not end")
	}
}

func freeAddress(e *env) string {
	e.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	e.must(err)
	defer l.Close()
	return l.Addr().String()
}

// metric sums the series of a metric whose labels contain the given text.
// Counters live as long as the test process: compare two readings.
func (c *controller) metric(name, labels string) (sum float64) {
	c.env.Helper()
	res, err := http.Get(c.url + "/metrics")
	c.env.must(err)
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), " ")
		if head, rest, _ := strings.Cut(series, "{"); head == name && strings.Contains(rest, labels) {
			v, err := strconv.ParseFloat(value, 64)
			c.env.must(err)
			sum += v
		}
	}
	return sum
}

// passes is how many keys have been worked on.
func (c *controller) passes() float64 {
	c.env.Helper()
	return c.metric("workqueue_work_duration_seconds_count", `name="gpu-summary"`)
}

// quiet waits until no pass has begun for a while, so that what follows can be
// counted.
func (c *controller) quiet() {
	c.env.Helper()
	last, since := c.passes(), time.Now()
	c.env.eventually("a second without a pass", func() error {
		if now := c.passes(); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < time.Second {
			return fmt.Errorf("%v passes so far", last)
		}
		return nil
	})
}

// ready reports what /readyz says.
func (c *controller) ready() error {
	res, err := http.Get(c.url + "/readyz")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", body)
	}
	return nil
}
