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
	// collections are asked for, in so many moments: what is in pools survives the first,
	// and what the writing of a summary had in hand some more.
	collections = 6
	moment      = time.Second
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
	if e.address == "" {
		m := serving.FindStringSubmatch(e.stderr.String())
		if m == nil {
			return 0, fmt.Errorf("%s did not say where it serves", e.name)
		}
		e.address = m[1]
	}
	least := math.Inf(1)
	for range collections {
		if err := e.pass(ctx, moment); err != nil {
			return 0, err
		}
		live, err := e.collect(ctx)
		if err != nil {
			return 0, fmt.Errorf("read heap of %s: %w", e.name, err)
		}
		least = min(least, live)
	}
	return least, nil
}

// collect lets a program collect its garbage, and returns what is allocated right after
// that. (What it says of its heap in its metrics will not do: writing them is itself an
// allocation, which a collection at that time finds alive.)
func (e *entry) collect(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, heapTimeout, fmt.Errorf("no answer within %v", heapTimeout))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, e.address+"/debug/pprof/heap?gc=1&debug=1", http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := e.target.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s answered %s", request.URL, response.Status)
	}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if n, ok := strings.CutPrefix(lines.Text(), "# HeapAlloc = "); ok {
			return strconv.ParseFloat(n, 64)
		}
	}
	return 0, fmt.Errorf("%s does not say how much is allocated", request.URL)
}
