package server

import (
	"context"
	"time"
)

// Expected is what a right summary says.
type Expected struct {
	Requested int64 `json:"requested"`
	// Rows is how many nodes have GPUs, Used on how many of them some are requested.
	Rows int `json:"rows"`
	Used int `json:"used"`
}

// Expected returns what is right at this moment.
func (c *Cluster) Expected() Expected {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Expected{Requested: c.requested, Rows: c.GPUNodes, Used: c.usedNodes() + len(c.extra)}
}

// commit makes a change known. The caller holds the lock.
func (c *Cluster) commit(pods bool, i int, e event, o object) change {
	c.version++
	o.version, o.gone = c.version, e == deleted
	c.table(pods).set(i, o)
	ch := change{at: time.Now(), number: i, event: e, object: o, pods: pods}
	c.log = append(c.log, ch)
	close(c.moved)
	c.moved = make(chan struct{})
	return ch
}

// irrelevant makes the next change that alters no number of a summary: of twenty,
// four are heartbeats of nodes, eight are new statuses of pods without GPUs, four
// create such a pod and four delete one.
func (c *Cluster) irrelevant() {
	c.mu.Lock()
	defer c.mu.Unlock()
	turn := c.turn
	c.turn++
	switch turn % 5 {
	case 0:
		i := int(mix(uint64(turn)) % uint64(c.Nodes))
		c.commit(false, i, modified, c.nodes.get(i))
	case 1, 2:
		c.restart(turn)
	case 3:
		i := c.pods.began + c.pods.made
		c.pods.made++
		c.created = append(c.created, i)
		c.commit(true, i, added, c.firstPod(i))
	case 4:
		if len(c.created) == 0 {
			c.restart(turn)
			return
		}
		i := c.created[0]
		c.created = c.created[1:]
		c.commit(true, i, deleted, c.pods.get(i))
	}
}

// restart gives a pod without GPUs a new status: its container has another ID.
func (c *Cluster) restart(turn int) {
	if c.Pods == c.GPUPods {
		c.commit(false, turn%c.Nodes, modified, c.nodes.get(turn%c.Nodes))
		return
	}
	for i := int(mix(uint64(turn)) % uint64(c.Pods)); ; i = (i + 1) % c.Pods {
		if o := c.pods.get(i); !o.kind.gpu() {
			c.commit(true, i, modified, o)
			return
		}
	}
}

// bind makes a pod that asks for one GPU and has its node: one of those that were
// free in the beginning, or, when there is none, any.
func (c *Cluster) bind() (change, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, free := c.usedNodes(), c.GPUNodes-c.usedNodes()
	if free == 0 {
		first, free = 0, c.GPUNodes
	}
	o := object{kind: gpuPod, gpus: 1, node: uint32(first + c.slots/GPUsPerNode%free)}
	c.slots++
	i := c.pods.began + c.pods.made
	c.pods.made++
	c.bound = append(c.bound, i)
	if int(o.node) >= c.usedNodes() {
		c.extra[o.node]++
	}
	c.requested++
	return c.commit(true, i, added, o), c.requested
}

// finish lets the oldest pod that bind made run to its end; not ok if there is none.
func (c *Cluster) finish() (ch change, requested int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.bound) == 0 {
		return change{}, 0, false
	}
	i := c.bound[0]
	c.bound = c.bound[1:]
	o := c.pods.get(i)
	o.kind = finishedPod
	if c.extra[o.node]--; c.extra[o.node] <= 0 {
		delete(c.extra, o.node)
	}
	c.requested--
	return c.commit(true, i, modified, o), c.requested, true
}

// Churn is an order for changes.
type Churn struct {
	// Count changes in all, of which every GPUEvery-th is of a GPU pod, none if 0.
	Count, GPUEvery int
	// PerSecond is the rate, 0 for as fast as it goes.
	PerSecond float64
	// Finish lets every other GPU event be the end of an earlier pod, so that any
	// number of them finds room; else each binds one.
	Finish bool
}

// GPUEvent is a change of a GPU pod.
type GPUEvent struct {
	At        time.Time `json:"at"`
	Requested int64     `json:"requested"` // what a summary says that has it
}

// churn makes the changes and returns those of GPU pods. A rate that cannot be kept
// is made up for as soon as it can.
func (c *Cluster) churn(ctx context.Context, o Churn) ([]GPUEvent, error) {
	var gpu []GPUEvent
	start := time.Now()
	for n := range o.Count {
		if o.PerSecond > 0 {
			due := start.Add(time.Duration(float64(n) / o.PerSecond * float64(time.Second)))
			if err := sleep(ctx, time.Until(due)); err != nil {
				return gpu, err
			}
		}
		if o.GPUEvery == 0 || n%o.GPUEvery != 0 {
			c.irrelevant()
			continue
		}
		gpu = append(gpu, c.gpuEvent(o.Finish && n/o.GPUEvery%2 == 1))
	}
	return gpu, ctx.Err()
}

func (c *Cluster) gpuEvent(finish bool) GPUEvent {
	if finish {
		if ch, requested, ok := c.finish(); ok {
			return GPUEvent{At: ch.at, Requested: requested}
		}
	}
	ch, requested := c.bind()
	return GPUEvent{At: ch.at, Requested: requested}
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
