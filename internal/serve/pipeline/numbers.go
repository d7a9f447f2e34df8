// Package pipeline shows the controller at work: its five components and the lease,
// each with live numbers, whether it is well, and by which rule.
//
// It is pure. A function given to it reads the numbers, Judge decides how each
// component is, and the page, the JSON and the metrics show the same reading.
package pipeline

import "time"

// Numbers is how the running process is at one moment.
type Numbers struct {
	At time.Time `json:"at"`
	// Resources are all that may be watched. Those of DRA have no numbers while DRA is
	// not counted.
	Resources  []string    `json:"resources"`
	Reflector  []Reflector `json:"reflector"`
	FIFO       []FIFO      `json:"fifo"`
	Indexer    []Indexer   `json:"indexer"`
	Workqueue  Workqueue   `json:"workqueue"`
	Reconciler Reconciler  `json:"reconciler"`
	Lease      Lease       `json:"lease"`
}

// Reflector lists and watches one resource.
type Reflector struct {
	Resource string `json:"resource"`
	// Synced is whether everything has been read once, and Failure what the last request
	// met, "" if it succeeded.
	Synced  bool   `json:"synced"`
	Failure string `json:"failure,omitempty"`
	// Connected is since when the watch is open, and LastByte when something last came.
	Connected time.Time `json:"connected,omitzero"`
	LastByte  time.Time `json:"lastByte,omitzero"`
	// Lists is how often everything was read. All but the first are relists.
	Lists       int64            `json:"lists"`
	LastList    time.Time        `json:"lastList,omitzero"`
	Expired     int64            `json:"expired"`
	LastExpired time.Time        `json:"lastExpired,omitzero"`
	Ends        map[string]int64 `json:"ends,omitempty"`
	Bookmarks   int64            `json:"bookmarks"`
	// Undecodable counts versions of objects that could not be decoded; of Missing
	// objects the newest version is one.
	Undecodable int64 `json:"undecodable"`
	Missing     int   `json:"missing"`
}

// Relists is how often everything was read again.
func (r Reflector) Relists() int64 { return max(0, r.Lists-1) }

// FIFO is between a reflector and a store.
type FIFO struct {
	Resource string `json:"resource"`
	Queued   int64  `json:"queued"`
	// Handled counts what has been taken out, one or many objects at a time, and
	// HandledSeconds is how long that took in all.
	Handled        int64   `json:"handled"`
	HandledSeconds float64 `json:"handledSeconds"`
}

// Indexer is the store of one resource, and what came and did not come into it.
type Indexer struct {
	Resource string `json:"resource"`
	Objects  int    `json:"objects"`
	Bytes    int64  `json:"bytes"`

	Seen    int64 `json:"seen"`
	Decoded int64 `json:"decoded"`
	Dropped int64 `json:"dropped"`
	// Measured is whether the next two are known.
	Measured     bool  `json:"measured"`
	SeenBytes    int64 `json:"seenBytes"`
	DroppedBytes int64 `json:"droppedBytes"`

	Version  string `json:"version"`
	Position string `json:"position"`
	// Behind is whether more was handed on than the store holds, at HandedOn the last.
	Behind   bool      `json:"behind"`
	HandedOn time.Time `json:"handedOn,omitzero"`
}

// Workqueue is what changes wait in to become passes.
type Workqueue struct {
	Depth     int       `json:"depth"`
	Oldest    time.Time `json:"oldest,omitzero"`
	Asked     int64     `json:"asked"`
	Retries   int64     `json:"retries"`
	HandedOut int64     `json:"handedOut"`
	// RunningSeconds is how long the key in hand has been worked on, as client-go has it.
	RunningSeconds float64 `json:"runningSeconds"`
	// SettleSeconds is how long the worker rests after a pass that wrote.
	SettleSeconds float64 `json:"settleSeconds"`
}

// Ratio is how many changes and retries became one key.
func (w Workqueue) Ratio() float64 {
	if w.HandedOut == 0 {
		return 0
	}
	return float64(w.Asked+w.Retries) / float64(w.HandedOut)
}

// Outcome is what came of a pass.
type Outcome string

// The outcomes, as gpu_summary_publishes_total has them.
const (
	Written   Outcome = "written"
	Unchanged Outcome = "unchanged"
	Failed    Outcome = "failed"
)

// Reconciler makes the passes.
type Reconciler struct {
	// Running is since when a pass has been going on, zero for none.
	Running time.Time `json:"running,omitzero"`
	// Last is when the last pass began, zero before the first. It took Seconds, and the
	// others say what came of it.
	Last    time.Time `json:"last,omitzero"`
	Seconds float64   `json:"seconds"`
	Outcome Outcome   `json:"outcome,omitempty"`
	// Error is why it failed. Reasons and Changes are why and what the last pass that
	// wrote has written.
	Error   string   `json:"error,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
	Changes []string `json:"changes,omitempty"`
	// Failures is how many have failed in a row.
	Failures int `json:"failures"`
	// Right is when the ConfigMaps were last made or found right.
	Right time.Time `json:"right,omitzero"`
	// Publishes counts passes by outcome, Writes objects by reason, FailedBy failures by
	// what they met.
	Publishes map[string]int64 `json:"publishes,omitempty"`
	Writes    map[string]int64 `json:"writes,omitempty"`
	FailedBy  map[string]int64 `json:"failedBy,omitempty"`
}

// Lease decides whose turn it is to publish.
type Lease struct {
	// Elected is whether there is an election at all. Without one it is always our turn.
	Elected  bool   `json:"elected"`
	Name     string `json:"name,omitempty"`
	Identity string `json:"identity,omitempty"`
	Holder   string `json:"holder,omitempty"`
	// Leading is whether it is our turn, in which term, and when the lease was renewed.
	Leading              bool      `json:"leading"`
	Term                 int64     `json:"term"`
	Renewed              time.Time `json:"renewed,omitzero"`
	RenewDeadlineSeconds float64   `json:"renewDeadlineSeconds,omitempty"`
	// Lost is why it is not ours any more.
	Lost string `json:"lost,omitempty"`
}
