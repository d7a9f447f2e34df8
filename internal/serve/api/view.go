package api

import (
	"context"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// View is the cluster at one moment. Nobody changes it.
type View struct {
	// Snapshot is nil as long as the caches are not complete.
	Snapshot *count.Snapshot
	// Missing says what keeps them from it, a line for each cache.
	Missing []string
	// Pods are those that the snapshot was counted from, in any order.
	Pods []*count.Pod
	// Stale is nil while the watches are alive.
	Stale *Stale
	// History is what the totals were since this replica started. It goes on.
	History *History
}

// Source returns the view that a request is answered from.
type Source func(context.Context) View

// Stale says that the numbers may be those of an earlier moment, because the API
// server is not heard of. How old they are is for readers to say, who know what time
// it is: an answer stays the same for as long as what it says does.
type Stale struct {
	// Since is when the API server last sent something on the watch that has been
	// silent for longest.
	Since time.Time `json:"since"`
	// Reasons has a line for each watch that is silent or fails.
	Reasons []string `json:"reasons"`
}
