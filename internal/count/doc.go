// Package count is the arithmetic of the controller: records in, Snapshot out.
//
// It is pure. There is no client, no clock and no I/O in it, so the same code
// answers in the controller, in the kubectl plugin, on the page, under a fuzzer
// and beside the real scheduler. What it counts, rule by rule, is written in
// docs/counting.md; comments here name the rule (R1, N2, …) they implement.
//
// The input of a pass is a World: trimmed records of pods and nodes together
// with the resourceVersions they were read at. The output is a Snapshot that
// nobody changes after Take returned it.
package count
