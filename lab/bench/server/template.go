package server

import (
	"bytes"
	"fmt"
	"strings"
)

// slot is a value that differs between the objects of one template.
type slot int

const (
	slotNumber    slot = iota // of the object, 8 digits
	slotVersion               // resourceVersion, 10 digits
	slotNode                  // number of the node, 6 digits
	slotNamespace             // number of the namespace, 3 digits
	slotGPUs                  // GPUs requested, 1 digit
	slotAddress               // last digits of the IP address, 6 in all
	slotUID                   // 32 hexadecimal digits
	slotContainer             // 64 hexadecimal digits that change with the version
	slots
)

// hole is what stands in a template where a value goes. Each lower-case x is a
// digit; the rest is there so that the hole is found where it is meant to be.
type hole struct {
	slot slot
	text string
}

// Holes are as long as what goes into them: encoded lengths stay what they are, and
// so patching digits is all there is to making an object.
var holes = []hole{
	{slotNumber, "-xxxxxxxx"},
	{slotVersion, "Vxxxxxxxxx"},
	{slotNode, "ip-10-xxxxxx."},
	{slotNamespace, "team-xxx"},
	{slotAddress, "10.1xx.1xx.1xx"},
	{slotUID, "Uxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"},
	{slotContainer, "CONTAINER_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},
}

// values are what goes into the holes of one object.
type values struct {
	number, version, node, namespace, gpus uint64
}

// template is an encoded object with holes.
type template struct {
	bytes []byte
	spots [slots][]int // offset of each digit, in the order of the text
}

// newTemplate finds the holes. Each of must has to be there: a template without
// its name would make a million equal objects.
func newTemplate(encoded []byte, gpus string, must ...slot) (*template, error) {
	t := &template{bytes: encoded}
	all := holes
	if gpus != "" {
		all = append([]hole{{slotGPUs, gpus}}, holes...)
	}
	for _, h := range all {
		for from := 0; ; {
			i := bytes.Index(encoded[from:], []byte(h.text))
			if i < 0 {
				break
			}
			t.mark(h, from+i)
			from += i + len(h.text)
		}
	}
	for _, f := range must {
		if len(t.spots[f]) == 0 {
			return nil, fmt.Errorf("template has no place for slot %d", f)
		}
	}
	return t, nil
}

// mark notes the digits of one hole that begins at offset i.
func (t *template) mark(h hole, i int) {
	for k := range len(h.text) {
		switch c := h.text[k]; {
		case c == 'x', h.slot == slotGPUs && k == gpuDigit(h.text),
			h.slot == slotVersion || h.slot == slotUID && c == 'U',
			h.slot == slotContainer:
			t.spots[h.slot] = append(t.spots[h.slot], i+k)
		}
	}
}

// append appends the object with these values.
func (t *template) append(dst []byte, v values) []byte {
	start := len(dst)
	dst = append(dst, t.bytes...)
	b := dst[start:]
	t.decimal(b, slotNumber, 8, v.number)
	t.decimal(b, slotVersion, 10, v.version)
	t.decimal(b, slotNode, 6, v.node)
	t.decimal(b, slotNamespace, 3, v.namespace)
	t.decimal(b, slotAddress, 6, v.number)
	t.decimal(b, slotGPUs, 1, v.gpus)
	t.hexadecimal(b, slotUID, v.number)
	t.hexadecimal(b, slotContainer, v.number<<32^v.version)
	return dst
}

// decimal writes n into every hole of that slot, which has so many digits.
func (t *template) decimal(b []byte, f slot, width int, n uint64) {
	spots := t.spots[f]
	for end := len(spots); end >= width; end -= width {
		for k, m := end-1, n; k >= end-width; k-- {
			b[spots[k]] = byte('0' + m%10)
			m /= 10
		}
	}
}

const hexDigits = "0123456789abcdef"

// hexadecimal fills the holes with digits that follow from seed and look like
// nothing: the same zeros a million times would compress as no real cluster does.
func (t *template) hexadecimal(b []byte, f slot, seed uint64) {
	var bits uint64
	for k, at := range t.spots[f] {
		if k%16 == 0 {
			seed += 0x9e3779b97f4a7c15
			bits = mix(seed)
		}
		b[at] = hexDigits[bits&15]
		bits >>= 4
	}
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// gpuDigit is where the digit of a hole for GPUs stands: it is the last 7.
func gpuDigit(text string) int { return strings.LastIndexByte(text, '7') }
