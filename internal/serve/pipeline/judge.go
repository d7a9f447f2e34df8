package pipeline

import (
	"fmt"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve/page"
)

// State is how a component is.
type State string

// The states.
const (
	OK      State = "ok"      // nothing to do, or doing it
	Busy    State = "busy"    // at work on something that passes by itself
	Trouble State = "trouble" // the numbers are or will be wrong or old, and this is where to look
)

func (s State) worse(than State) bool { return rank[s] > rank[than] }

var rank = map[State]int{OK: 0, Busy: 1, Trouble: 2}

// Names of the components, in the order of the flow of data.
const (
	ReflectorName  = "reflector"
	FIFOName       = "fifo"
	IndexerName    = "indexer"
	WorkqueueName  = "workqueue"
	ReconcilerName = "reconciler"
	LeaseName      = "lease"
)

// Verdict is what is said of a component.
type Verdict struct {
	Component string `json:"component"`
	State     State  `json:"state"`
	// Reason is what decided, and Rule how it is decided.
	Reason string `json:"reason"`
	Rule   string `json:"rule"`
}

// The bounds that rules name.
const (
	// silentAfter is two bookmarks and a half: an API server sends one about every
	// minute.
	silentAfter = 150 * time.Second
	// expiredLately is how long a relist after 410 is worth a look.
	expiredLately = time.Minute
	// longQueue and veryLongQueue are events that wait in a FIFO.
	longQueue, veryLongQueue = 100, 10_000
	// lagsAfter is how long a store may be behind what was handed on.
	lagsAfter = 10 * time.Second
	// waitsAfter is how long a key may wait beyond the worker's rest.
	waitsAfter = 30 * time.Second
	// runsAfter is how long a pass may take.
	runsAfter = time.Minute
	// failsAfter is how many passes may fail in a row.
	failsAfter = 2
)

var rules = map[string]string{
	ReflectorName: fmt.Sprintf("Trouble: a request failed, nothing was heard on a watch for %v, or the newest version of an object cannot be decoded. "+
		"Busy: everything is being read for the first time, no watch is open, or the server answered 410 within the last minute.", silentAfter),
	FIFOName: fmt.Sprintf("Trouble: %d events or more wait for a store that has been complete. Busy: %d or more wait.", veryLongQueue, longQueue),
	IndexerName: fmt.Sprintf("Trouble: a store has lacked something that was handed on for more than %v. Busy: it lacks something, or is not complete yet.",
		lagsAfter),
	WorkqueueName: fmt.Sprintf("Trouble: a key has waited for more than %v beyond --settle although it is our turn and no pass is running. Busy: a key waits, or is to be tried again.", waitsAfter),
	ReconcilerName: fmt.Sprintf("Trouble: %d passes failed in a row, or one has been running for more than %v. Busy: a pass is running, has failed once, or the first is still to come.",
		failsAfter, runsAfter),
	LeaseName: "Trouble: the lease was lost, or more than half of --leader-elect-renew-deadline has gone by since it was renewed. Busy: nobody is known to hold it, or we do and have not begun.",
}

// Judge says how each component is, in the order of the flow of data.
func Judge(n Numbers) []Verdict {
	judges := []struct {
		component string
		judge     func(Numbers, *finding)
	}{
		{ReflectorName, judgeReflector}, {FIFOName, judgeFIFO}, {IndexerName, judgeIndexer},
		{WorkqueueName, judgeWorkqueue}, {ReconcilerName, judgeReconciler}, {LeaseName, judgeLease},
	}
	verdicts := make([]Verdict, 0, len(judges))
	for _, j := range judges {
		f := finding{state: OK}
		j.judge(n, &f)
		verdicts = append(verdicts, Verdict{j.component, f.state, f.reason, rules[j.component]})
	}
	return verdicts
}

// finding is the worst that was found, the first of several that are as bad.
type finding struct {
	state  State
	reason string
}

func (f *finding) is(s State, format string, args ...any) {
	if f.reason == "" || s.worse(f.state) {
		f.state, f.reason = s, fmt.Sprintf(format, args...)
	}
}

func judgeReflector(n Numbers, f *finding) {
	for _, r := range n.Reflector {
		if r.Failure != "" {
			f.is(Trouble, "%s", r.Failure)
		}
		// Before anything came there is nothing to be silent.
		if silent := n.At.Sub(r.LastByte); !r.LastByte.IsZero() && silent > silentAfter {
			f.is(Trouble, "nothing has been heard on the watch of %s for %s", r.Resource, span(silent))
		}
		if r.Missing > 0 {
			f.is(Trouble, "the newest version of %s among %s cannot be decoded", page.Plural(r.Missing, "object"), r.Resource)
		}
		switch {
		case !r.Synced:
			f.is(Busy, "%s are being read for the first time", r.Resource)
		case r.Connected.IsZero():
			f.is(Busy, "no watch of %s is open", r.Resource)
		case !r.LastExpired.IsZero() && n.At.Sub(r.LastExpired) < expiredLately:
			f.is(Busy, "%s had to be read again %s ago: the server no longer had our version", r.Resource, span(n.At.Sub(r.LastExpired)))
		}
	}
	f.is(OK, "every watch is open and alive")
}

func judgeFIFO(n Numbers, f *finding) {
	synced := make(map[string]bool)
	for _, r := range n.Reflector {
		synced[r.Resource] = r.Synced
	}
	for _, q := range n.FIFO {
		switch {
		case q.Queued >= veryLongQueue && synced[q.Resource]:
			f.is(Trouble, "%d events of %s wait for the store", q.Queued, q.Resource)
		case q.Queued >= longQueue:
			f.is(Busy, "%d events of %s wait for the store", q.Queued, q.Resource)
		}
	}
	f.is(OK, "hardly anything waits")
}

func judgeIndexer(n Numbers, f *finding) {
	for _, i := range n.Indexer {
		switch lag := n.At.Sub(i.HandedOn); {
		case i.Behind && lag > lagsAfter:
			f.is(Trouble, "the store of %s has lacked what was handed on for %s", i.Resource, span(lag))
		case i.Behind:
			f.is(Busy, "the store of %s takes in what was handed on", i.Resource)
		}
	}
	for _, r := range n.Reflector {
		if !r.Synced {
			f.is(Busy, "the store of %s is not complete yet", r.Resource)
		}
	}
	f.is(OK, "every store holds all that was handed on")
}

func judgeWorkqueue(n Numbers, f *finding) {
	q := n.Workqueue
	if !n.Lease.Leading {
		f.is(OK, "keys wait for our turn: only the leader takes them")
		return
	}
	waits := n.At.Sub(q.Oldest)
	late := waitsAfter + time.Duration(q.SettleSeconds*float64(time.Second))
	switch {
	case q.Depth > 0 && waits > late && n.Reconciler.Running.IsZero():
		f.is(Trouble, "a key has waited for %s and nobody takes it", span(waits))
	case q.Depth > 0:
		f.is(Busy, "a key has waited for %s", span(waits))
	case n.Reconciler.Failures > 0 && n.Reconciler.Running.IsZero():
		f.is(Busy, "a key that failed is to be tried again")
	}
	f.is(OK, "no key waits")
}

func judgeReconciler(n Numbers, f *finding) {
	r := n.Reconciler
	if !r.Running.IsZero() && n.At.Sub(r.Running) > runsAfter {
		f.is(Trouble, "a pass has been running for %s", span(n.At.Sub(r.Running)))
	}
	if r.Failures >= failsAfter {
		f.is(Trouble, "%d passes have failed in a row: %s", r.Failures, r.Error)
	}
	switch {
	case !n.Lease.Leading:
		f.is(OK, "it is not our turn, and no passes are made")
	case r.Failures > 0:
		f.is(Busy, "the last pass failed and will be tried again: %s", r.Error)
	case !r.Running.IsZero():
		f.is(Busy, "a pass is running")
	case r.Last.IsZero():
		f.is(Busy, "the first pass is still to come")
	}
	f.is(OK, "the last pass succeeded")
}

func judgeLease(n Numbers, f *finding) {
	l := n.Lease
	if !l.Elected {
		f.is(OK, "there is no election: it is always our turn")
		return
	}
	deadline := time.Duration(l.RenewDeadlineSeconds * float64(time.Second))
	switch age := n.At.Sub(l.Renewed); {
	case l.Lost != "":
		f.is(Trouble, "%s", l.Lost)
	case l.Leading && age > deadline/2:
		f.is(Trouble, "the lease was renewed %s ago, and is lost after %v", span(age), deadline)
	case l.Leading:
		f.is(OK, "we lead, in term %d", l.Term)
	case l.Holder == "":
		f.is(Busy, "nobody is known to hold the lease")
	case l.Holder == l.Identity:
		f.is(Busy, "we hold the lease and have not begun")
	}
	f.is(OK, "%s leads, and we stand by", l.Holder)
}
