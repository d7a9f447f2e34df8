package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var serving = regexp.MustCompile(`"Serving" address="([^"]+)"`)

const (
	heapTimeout = 30 * time.Second
	// scrapes is how often metrics are read at most in order to cause garbage collections.
	scrapes = 20_000
	// collections are waited for, of which the first ones leave what is in pools.
	collections, settling = 14, 3
)

// heap returns what is live on the contestant's heap after a garbage collection.
func (e *entry) heap(ctx context.Context) (float64, error) {
	if e.said != nil {
		if _, err := io.WriteString(e.stdin, "heap\n"); err != nil {
			return 0, fmt.Errorf("ask %s: %w", e.name, err)
		}
		m, err := e.hear(ctx, "heap", heapTimeout)
		return float64(m.Heap), err
	}
	if e.metrics == "" {
		m := serving.FindStringSubmatch(e.stderr.String())
		if m == nil {
			return 0, fmt.Errorf("%s did not say where it serves metrics", e.name)
		}
		e.metrics = m[1] + "/metrics"
	}
	// Nothing can be told to collect its garbage from outside, but it does so when
	// asked for metrics often enough. What a collection finds alive includes what was
	// made while it was at work, so the least of a few is the heap.
	least, first := math.Inf(1), 0.0
	for i := range scrapes {
		m, err := e.scrape(ctx)
		if err != nil {
			return 0, err
		}
		cycles, live := m["go_gc_cycles_total_gc_cycles_total"], m["go_gc_heap_live_bytes"]
		if i == 0 {
			first = cycles
		}
		if cycles >= first+settling {
			least = min(least, live)
		}
		if cycles >= first+collections {
			return least, nil
		}
		if cycles == 0 { // this program does not say
			return m["go_memstats_heap_alloc_bytes"], nil
		}
	}
	return 0, fmt.Errorf("%s did not collect its garbage", e.name)
}

// scrape reads metrics that have no labels.
func (e *entry) scrape(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.metrics, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := e.target.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read metrics of %s: %w", e.name, err)
	}
	defer response.Body.Close()
	out := map[string]float64{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			out[name] = n
		}
	}
	return out, nil
}
