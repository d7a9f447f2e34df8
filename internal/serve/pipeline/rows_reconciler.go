package pipeline

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/gpu-summary/gpu-summary-controller/internal/serve/page"
)

// shownChanges is how many changes of the last pass the page has room for.
const shownChanges = 12

var reconcilerRows = []row[Reconciler]{
	{"last", "Last pass", "gpu_summary_snapshot_timestamp_seconds",
		"Also while nothing changes a pass is made every --resync. On the leader a longer time means that no key comes, or that none is taken.",
		func(n *Numbers, r *Reconciler) string {
			if !r.Running.IsZero() {
				return "running for " + span(n.At.Sub(r.Running))
			}
			return since(n.At, r.Last)
		}},
	{"duration", "Duration", "workqueue_work_duration_seconds",
		"Reading, counting and writing, in milliseconds for most clusters. When it climbs, the API server answers writes slowly, or the cluster has grown.",
		func(_ *Numbers, r *Reconciler) string {
			if r.Last.IsZero() {
				return none
			}
			return seconds(r.Seconds)
		}},
	{"outcome", "Written or skipped, and why", "gpu_summary_publishes_total",
		"A pass that finds everything right writes nothing. Failed ones are tried again; when they climb, the reason is here and under the next metrics.",
		func(_ *Numbers, r *Reconciler) string { return r.outcome() }},
	{"changes", "What changed", "gpu_summary_writes_total",
		"What the last pass that wrote put right. When writes climb by vanished or edited, somebody else changes our ConfigMaps.",
		func(_ *Numbers, r *Reconciler) string { return cmp.Or(first(r.Changes), none) }},
	{"publishes", "Passes by outcome", "gpu_summary_publishes_total",
		"Unchanged climbs with every resync and every echo of a write. Written climbs as fast as the numbers change.",
		func(_ *Numbers, r *Reconciler) string { return parts(r.Publishes) }},
	{"failures", "Failures by what they met", "gpu_summary_publish_failures_total",
		"Conflict: somebody was faster, which is harmless once. Forbidden: a permission is missing. Fenced: a later leader has published. Too large: a ConfigMap would not fit.",
		func(_ *Numbers, r *Reconciler) string { return parts(r.FailedBy) }},
	{"writes", "Objects written, by why", "gpu_summary_writes_total",
		"Changed is the work itself. Vanished and edited are the work of others, put right again.",
		func(_ *Numbers, r *Reconciler) string { return parts(r.Writes) }},
	{"right", "ConfigMaps right", "gpu_summary_published_timestamp_seconds",
		"When they were last made or found right. The older it gets on the leader, the older are the numbers that everybody reads.",
		func(n *Numbers, r *Reconciler) string { return since(n.At, r.Right) }},
}

// outcome says what came of the last pass.
func (r *Reconciler) outcome() string {
	switch r.Outcome {
	case Written:
		return "written: " + strings.Join(r.Reasons, ", ")
	case Unchanged:
		return "skipped: what is published is right"
	case Failed:
		return "failed: " + r.Error
	}
	return none
}

// first joins the first few, and counts the rest.
func first(changes []string) string {
	text := strings.Join(changes[:min(len(changes), shownChanges)], "; ")
	if more := len(changes) - shownChanges; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

var leaseRows = []row[Lease]{
	{"leading", "Our turn", "gpu_summary_leader",
		"1 on one replica, 0 on all others. When the sum over all is 0 for long, nobody publishes.",
		func(_ *Numbers, l *Lease) string {
			if l.Leading {
				return "yes"
			}
			return "no"
		}},
	{"holder", "Holder", "leader_election_master_status",
		"Who holds the lease. When it changes again and again, renewals are late: the API server is slow, or the process gets too little CPU.",
		func(_ *Numbers, l *Lease) string {
			if !l.Elected {
				return "there is no election"
			}
			return cmp.Or(l.Holder, "nobody")
		}},
	{"identity", "This replica", "leader_election_master_status",
		"Another name for each start of a process.",
		func(_ *Numbers, l *Lease) string { return cmp.Or(l.Identity, none) }},
	{"term", "Term", "gpu_summary_lease_term",
		"It climbs by one with each change of leader. What an earlier leader still has on its way is refused by it.",
		func(_ *Numbers, l *Lease) string { return page.Number(l.Term) }},
	{"renewed", "Renewed", "gpu_summary_lease_renewed_timestamp_seconds",
		"Every two seconds by default. When it climbs to the renew deadline, the lease is lost and the process ends, so that another can take over.",
		func(n *Numbers, l *Lease) string { return since(n.At, l.Renewed) }},
}
