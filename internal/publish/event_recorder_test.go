package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// eventServer takes Events. Only what is used is implemented: a patch would panic.
type eventServer struct {
	eventsv1client.EventInterface

	mu       sync.Mutex
	tries    int
	fail     func(try int) error
	received []*eventsv1.Event
}

func (s *eventServer) Events(string) eventsv1client.EventInterface { return s }

func (s *eventServer) Create(ctx context.Context, e *eventsv1.Event, _ metav1.CreateOptions) (*eventsv1.Event, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	if s.fail != nil {
		if err := s.fail(s.tries); err != nil {
			return nil, err
		}
	}
	s.received = append(s.received, e.DeepCopy())
	return e, nil
}

// set changes what fails.
func (s *eventServer) set(fail func(try int) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

// seen is what was received, and after how many tries.
func (s *eventServer) seen() (received []*eventsv1.Event, tries int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received), s.tries
}

// lines are "30s Reason regarding", in order.
func (s *eventServer) lines(start time.Time) (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.received, func(a, b *eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	for _, e := range s.received {
		lines = append(lines, fmt.Sprint(e.EventTime.Sub(start), " ", e.Reason, " ", e.Regarding.Name))
	}
	return lines
}

// telling is Events at work, and the log.
type telling struct {
	*Events
	server *eventServer
	start  time.Time
	log    ktesting.Buffer
	stop   func()
}

// inBubble runs a test in virtual time. That it ends shows that every goroutine of
// Run, of client-go's too, has.
func inBubble(t *testing.T, test func(*telling)) {
	synctest.Test(t, func(t *testing.T) {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
		cms := newServer()
		server := &eventServer{}
		e := &telling{
			Events: NewEvents(server, New(cms, Options{Namespace: "ns", Name: "gpu-summary"}, &watched{server: cms}), DefaultEventDelay),
			server: server, start: time.Now(), log: logger.GetSink().(ktesting.Underlier).GetBuffer(),
		}
		var wg sync.WaitGroup
		wg.Go(func() { e.Run(ctx) })
		e.stop = func() { cancel(); wg.Wait() }
		defer e.stop()
		test(e)
	})
}

// logged counts the lines with a text.
func (e *telling) logged(text string) int { return strings.Count(e.log.String(), text) }

// every makes a pass and waits, for an hour.
func (e *telling) every(wait time.Duration, pass func(i int) (*count.Snapshot, error)) {
	for i := range int(time.Hour / wait) {
		e.Passed(pass(i))
		time.Sleep(wait)
	}
}

// TestAnIdleHour: none but the first, however many passes there are.
func TestAnIdleHour(t *testing.T) {
	inBubble(t, func(e *telling) {
		e.every(time.Second, func(int) (*count.Snapshot, error) { return counted("a"), nil })
		want := []string{"0s PublishingStarted gpu-summary", "30s NodesOvercommitted gpu-summary"}
		if got := e.server.lines(e.start); !slices.Equal(got, want) {
			t.Errorf("told was %q, want %q", got, want)
		}
		e.every(time.Second, func(int) (*count.Snapshot, error) { return counted("a"), nil })
		if n := len(e.server.lines(e.start)) - len(want); n != 0 {
			t.Errorf("an idle hour had %d Events", n)
		}
	})
}

// TestAnHourOfFailures: one.
func TestAnHourOfFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{"writes fail": {errWrite, "1m0s PublishingStale gpu-summary"}, "fenced": {behind, "10s PublishingFenced gpu-summary"}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(e *telling) {
				e.Passed(counted(), nil)
				e.every(time.Second, func(int) (*count.Snapshot, error) { return counted(), tc.err })
				want := []string{"0s PublishingStarted gpu-summary", tc.want}
				if got := e.server.lines(e.start); !slices.Equal(got, want) {
					t.Errorf("told was %q, want %q", got, want)
				}
			})
		})
	}
}

// TestFlappingNodes: 500 nodes that change each second, and 500 that change as fast
// as can be told, have 60 Events of their own in an hour, and 4 at most of each
// reason about the ConfigMap. None is dropped or folded on the way.
func TestFlappingNodes(t *testing.T) {
	some, all := counted(), counted(names(500)...)
	for _, change := range []time.Duration{time.Second, DefaultEventDelay + time.Second, 16 * time.Minute} {
		t.Run(change.String(), func(t *testing.T) {
			inBubble(t, func(e *telling) {
				e.Passed(some, nil)
				for hour := range 2 {
					e.every(min(change, time.Minute), func(int) (*count.Snapshot, error) {
						if time.Since(e.start)/change%2 == 0 {
							return all, nil
						}
						return some, nil
					})
					time.Sleep(time.Minute) // no pass is missed, the hours are not quite in step
					told := map[string]int{}
					received, _ := e.server.seen()
					for _, event := range received {
						if event.EventTime.Sub(e.start)/time.Hour == time.Duration(hour) {
							told[event.Regarding.Kind]++
							told[event.Reason]++
						}
					}
					if told["Node"] > 60 || told["ConfigMap"] > 9 || told[EventNodesOvercommitted] > 4 || told[EventNodesRecovered] > 4 {
						t.Errorf("hour %d: %v", hour, told)
					}
					if hour == 0 && (told["Node"] != 60 || told[EventNodesOvercommitted] == 0) {
						t.Errorf("hour %d: %v", hour, told)
					}
				}
			})
		})
	}
}

// TestEventsAsWritten: all that events.k8s.io asks for, in the namespaces where
// kubectl looks.
func TestEventsAsWritten(t *testing.T) {
	inBubble(t, func(e *telling) {
		e.Passed(counted(), nil)
		e.Passed(counted("a"), nil)
		time.Sleep(time.Minute)
		if got, want := e.server.lines(e.start), []string{"0s PublishingStarted gpu-summary", "30s GPUsOvercommitted a"}; !slices.Equal(got, want) {
			t.Fatalf("told was %q, want %q", got, want)
		}
		received, _ := e.server.seen()
		for i, namespace := range []string{"ns", "default"} {
			event := received[i]
			if event.Namespace != namespace || event.ReportingController != "gpu-summary-controller" || event.ReportingInstance == "" ||
				event.Action == "" || event.EventTime.IsZero() || event.Series != nil || !strings.HasPrefix(event.Name, event.Regarding.Name) {
				t.Errorf("it is %+v", event)
			}
		}
		if related := received[1].Related; related == nil || related.Name != "gpu-summary" || related.Namespace != "ns" {
			t.Errorf("related to a node is %v", related)
		}
		if related := received[0].Related; related != nil {
			t.Errorf("related to the ConfigMap is %v", related)
		}
	})
}

// TestTheEnd: what is on its way gets through, what cannot is not waited for, and
// what happens afterwards is not told: somebody else leads.
func TestTheEnd(t *testing.T) {
	inBubble(t, func(e *telling) {
		e.server.set(func(try int) error {
			if try == 1 {
				return errors.New("EOF")
			}
			return nil
		})
		e.Passed(counted(), nil)
		synctest.Wait()
		e.stop()
		if n, took := len(e.server.lines(e.start)), time.Since(e.start); n != 1 || took > flushTime {
			t.Errorf("%d Events got through in %v", n, took)
		}
		e.Passed(counted(), errWrite)
		time.Sleep(time.Hour)
		if _, n := e.server.seen(); n != 2 {
			t.Errorf("%d were tried in all", n)
		}
		if e.log.String() != "" {
			t.Errorf("logged was %s", e.log.String())
		}
	})
	inBubble(t, func(e *telling) {
		e.Passed(counted(), nil)
		synctest.Wait()
		e.Passed(counted(), errLater)
		e.stop()
		if got, want := e.server.lines(e.start), []string{"0s PublishingStarted gpu-summary", "0s PublishingFenced gpu-summary"}; !slices.Equal(got, want) {
			t.Errorf("told was %q, want %q", got, want)
		}
	})
	inBubble(t, func(e *telling) {
		e.server.set(func(int) error { return errors.New("EOF") })
		e.Passed(counted(), nil)
		synctest.Wait()
		e.stop()
		if took := time.Since(e.start); took != flushTime || e.logged("Not all Events were written") != 1 || e.logged("\n") != 1 {
			t.Errorf("it took %v:\n%s", took, e.log.String())
		}
	})
}

// TestSets: what is known of the published objects comes from our own writes, and
// from the cache once it has them.
func TestSets(t *testing.T) {
	b := newBench(t, both)
	if got, want := fmt.Sprint(b.Sets()), "[{gpu-summary  0} {gpu-capacity  0}]"; got != want {
		t.Errorf("before the first pass: %s, want %s", got, want)
	}
	want := func(when string) {
		t.Helper()
		var want []Set
		for _, name := range []string{"gpu-summary", "gpu-capacity"} {
			cm := b.server.objects[name]
			want = append(want, Set{Name: name, UID: cm.UID, Shards: shardsOf(cm)})
		}
		if got := b.Sets(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	b.publish(cluster(3))
	want("after a write that the cache does not have")
	b.publish(cluster(200))
	want("with shards")
	if sets := b.Sets(); sets[0].Shards == 0 || sets[0].UID == "" {
		t.Errorf("they are %v", sets)
	}
	b.publish(cluster(200))
	want("from the cache")
	b.restart(both)
	want("after a restart")
	b.publish(cluster(3))
	want("with one object again")
}
