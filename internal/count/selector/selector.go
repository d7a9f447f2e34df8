// Package selector says which devices a DeviceClass selects.
//
// A class selects with expressions in CEL, and any expression is allowed. They are
// compiled and evaluated here with the code that the scheduler uses
// (k8s.io/dynamic-resource-allocation/cel): an imitation would be right for the
// expressions somebody thought of. The package is pure. All it keeps is what it
// has worked out before, for an evaluation takes microseconds and a large cluster
// has half a million devices, which hardly ever change.
package selector

import (
	"context"
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// features are all switched on: an expression that the API server has accepted
// should mean here what it means there, and one that uses none of them means the
// same with and without.
var features = cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}

// program is the compiled selectors of a class.
type program struct {
	expressions []string
	compiled    []cel.CompilationResult
	err         error
	used        uint64 // the last pass that asked for it
}

// compile prepares expressions, all of which have to hold. A program with an error
// selects nothing.
func compile(expressions []string) *program {
	p := &program{expressions: expressions}
	for i, expression := range expressions {
		result := cel.GetCompiler(features).CompileCELExpression(expression, cel.Options{DisableCostEstimation: true})
		if result.Error != nil {
			p.err = fmt.Errorf("selector %d does not compile: %s", i+1, oneLine(result.Error.Detail))
			return p
		}
		p.compiled = append(p.compiled, result)
	}
	return p
}

// matches evaluates the selectors on one device. How long that may take is bounded
// by CEL's own cost limit, the one the scheduler has too.
func (p *program) matches(driver string, d *resourcev1.Device) (bool, error) {
	input := cel.Device{
		Driver: driver, Attributes: d.Attributes, Capacity: d.Capacity,
		AllowMultipleAllocations: d.AllowMultipleAllocations,
	}
	for i := range p.compiled {
		ok, _, err := p.compiled[i].DeviceMatches(context.Background(), input)
		if err != nil {
			return false, fmt.Errorf("selector %d fails on device %s: %s", i+1, d.Name, oneLine(err.Error()))
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

// on evaluates the selectors on every device.
func (p *program) on(d *Devices) result {
	r := result{program: p}
	if p.err != nil {
		return r
	}
	devices, err := d.decode()
	if err != nil {
		r.failed, r.why = d.count, err.Error()
		return r
	}
	for i := range devices {
		ok, err := p.matches(d.driver, &devices[i])
		switch {
		case err != nil && r.why == "":
			r.failed, r.why = 1, err.Error()
		case err != nil:
			r.failed++
		case ok:
			r.selected.add(i)
		}
	}
	return r
}

// oneLine is for messages that people read in a list.
func oneLine(message string) string { return strings.Join(strings.Fields(message), " ") }
