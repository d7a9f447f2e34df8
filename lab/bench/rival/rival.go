// Package rival has the programs that the controller is measured against. Each is
// a process of its own, as the controller is. All but the first are written as people
// write them, and are not improved: they say what the usual way costs.
package rival

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Options are those of all rivals.
type Options struct {
	Kubeconfig string
	// Namespace and Name are those of the ConfigMap that is written.
	Namespace, Name string
	// Every is how often the poll loop asks, and how long the bare update waits between two.
	Every time.Duration
	// Rows and Count are how large the ConfigMap of the bare update is, and how often
	// it is updated.
	Rows, Count int
}

// Message is a line that a rival writes.
type Message struct {
	// Event is "ready" when the rival has seen the whole cluster, "done" when it has
	// no more to do, "heap" as the answer to a line that says so.
	Event string    `json:"event"`
	At    time.Time `json:"at"`
	// Heap is what is live after a garbage collection, in bytes.
	Heap uint64 `json:"heap,omitempty"`
}

// program runs until ctx ends and calls say with "ready" and "done".
type program func(ctx context.Context, config *rest.Config, o Options, say func(event string)) error

var programs = map[string]program{"drain": drain, "textbook": textbook, "poll": poll, "update": update}

// Names returns the rivals there are.
func Names() []string { return slices.Sorted(maps.Keys(programs)) }

// Run runs one of them until ctx or the input ends: whoever started it is gone then.
func Run(ctx context.Context, name string, o Options, in io.Reader, out io.Writer) error {
	run, ok := programs[name]
	if !ok {
		return fmt.Errorf("no rival is called %q: want one of %s", name, strings.Join(Names(), ", "))
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return fmt.Errorf("load kubeconfig: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &writer{out: json.NewEncoder(out)}
	// Ends with the process: a read cannot be interrupted.
	go func() {
		defer cancel()
		w.answer(in)
	}()
	err = run(ctx, config, o, func(event string) { w.say(Message{Event: event}) })
	if ctx.Err() != nil {
		return nil
	}
	return err
}

type writer struct {
	mu  sync.Mutex
	out *json.Encoder
}

func (w *writer) say(m Message) {
	m.At = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.out.Encode(m) // fails when nobody reads
}

// answer answers lines until there are no more.
func (w *writer) answer(in io.Reader) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if lines.Text() == "heap" {
			w.say(Message{Event: "heap", Heap: liveHeap()})
		}
	}
}

func liveHeap() uint64 {
	// What a finalizer or a pool holds is free after the second.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
