// Package api answers with JSON: the counts of the latest snapshot, a row for each
// node, the pods that are in them, and what would fit. docs/api.md is the promise
// made to readers, openapi.json its form.
//
// Handlers are pure. Each asks once for a View, which nobody changes, and whatever
// it answers is from that one moment.
package api
