// Package bench measures the controller beside its rivals: in one run, in processes
// of their own, in turns, against a server that costs little (package server). docs/benchmarks.md
// says how, and what came out.
package bench
