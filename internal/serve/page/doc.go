// Package page is what people read with a browser: totals and models, the nodes as a
// field of GPU cells, a page for each node, the pods that wait, and what would fit.
//
// Pages are rendered here, whole, and are complete without JavaScript but for the
// field of cells. The one script asks every few seconds whether anything has changed,
// and then takes the parts that did from a new copy of the same page. All is embedded;
// nothing is ever asked of another origin; every address in a page is relative, so
// that it works below any path of a proxy.
//
// Each page is decided first, as a struct of what it says, and drawn then, by methods
// that return nodes. No html/template: it calls methods by name, which keeps the linker
// from leaving out any. Nodes escape every text, but know nothing of addresses, so those
// with a parameter are made by address and nowhere else.
//
// Layout is for pages of other packages too.
package page
