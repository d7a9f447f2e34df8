package gather

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

// maxBroken is how many objects that could not be read are kept an error of.
const maxBroken = 20

// howTo is what to do about a dump without anything in it.
const howTo = `want what "kubectl get pods,nodes -A -o json" prints, of a cluster with DRA "kubectl get pods,nodes,deviceclasses,resourceslices,resourceclaims -A -o json"`

// File reads a dump: what "kubectl get pods,nodes -A -o json" prints, or -o yaml, a
// list of one kind, single objects, several of these one after the other, packed
// with gzip or not. name is the file's name, for errors.
//
// Lists are read an item at a time, so that memory does not follow the size of the
// dump. What has to be held in one piece may have 16 MiB: an object, or a list in YAML
// whose items are not laid out as kubectl does it. More is an error.
//
// An object that is broken is in Report.Broken, and the others are told. Where JSON
// itself is broken nobody knows where the next object begins: that is an error, and
// what was told before stays told.
//
// Nothing is left out and nothing compared: finished pods are told, and an object
// that is there twice is told twice.
func File(ctx context.Context, name string, r io.Reader, v Visitor) (Report, error) {
	f := &file{name: name}
	f.to = teller{to: v, told: &f.report.Told}
	err := f.read(ctx, r)
	f.concludeDRA()
	if err == nil {
		err = f.nothing()
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return f.report, err
}

// file is the reading of a dump.
type file struct {
	name   string
	src    *source
	to     teller
	report Report

	document  int  // the number of the one that is read
	pods, dra bool // whether there were lists of pods, and anything of DRA
}

// read reads document after document, whatever each is written in.
func (f *file) read(ctx context.Context, r io.Reader) (err error) {
	if f.src, err = open(ctx, r); err != nil {
		return err
	}
	for {
		if err := f.src.skipBlank(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return f.stopped(err)
		}
		head, err := f.src.peek(chunkSize)
		if err != nil {
			return f.stopped(err)
		}
		switch {
		case bytes.TrimLeft(head, " \t")[0] == '#' || head[0] == '%' || isEnd(head, "..."):
			_, err = f.src.readLine(nil)
		case isEnd(head, "---"):
			f.src.take(len("---"))
		case isJSON(head):
			err = f.jsonDocuments()
		default:
			err = f.yamlDocument()
		}
		if err != nil {
			return f.stopped(err)
		}
	}
}

// stopped is an error that ends the reading.
func (f *file) stopped(err error) error {
	if errors.As(err, new(*placed)) {
		return err
	}
	return place(&where{document: f.document + 1, line: line(f.src.line + 1)}, err)
}

// isEnd reports whether a line is a separator of YAML documents.
func isEnd(line []byte, separator string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(separator))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// isJSON reports whether what begins so is JSON. YAML may have braces too, but not
// with quotes before the first name if kubectl, or a person, wrote it.
func isJSON(head []byte) bool {
	head = bytes.TrimLeft(head, " \t")
	if len(head) == 0 || head[0] != '{' && head[0] != '[' {
		return false
	}
	next := bytes.TrimLeft(head[1:], " \t\r\n")
	return len(next) == 0 || bytes.IndexByte([]byte(`"}{]`), next[0]) >= 0
}

// broken notes an object that could not be read. what is its kind and name, as far
// as they are known.
func (f *file) broken(w *where, what string, err error) {
	f.report.BrokenTotal++
	if len(f.report.Broken) >= maxBroken {
		return
	}
	if what = strings.TrimSpace(what); what != "" {
		err = fmt.Errorf("%s: %w", what, err)
	}
	f.report.Broken = append(f.report.Broken, fmt.Errorf("%s: %w", f.name, place(w, err)))
}

func (f *file) ignored(is metav1.TypeMeta) {
	if f.report.Ignored == nil {
		f.report.Ignored = make(map[string]int)
	}
	f.report.Ignored[kindName(is)]++
}

// kindName is how kubectl has a kind: Job.v1.batch.
func kindName(is metav1.TypeMeta) string {
	kind := is.GroupVersionKind()
	if kind.Group == "" {
		return kind.Kind
	}
	return kind.Kind + "." + kind.Version + "." + kind.Group
}

// concludeDRA: a dump says of a kind that it is there, and nothing of one that is
// not. With anything of DRA in it, all is taken to be.
func (f *file) concludeDRA() {
	if f.dra {
		f.report.DRA = count.DRASynced
		return
	}
	f.report.DRA, f.report.DRAReason = count.DRAAbsent, "the dump has nothing of resource.k8s.io"
}

// nothing is the error about a dump in which nothing is to be counted.
func (f *file) nothing() error {
	switch {
	case f.report.Told.Total() > 0:
		return nil
	case f.report.BrokenTotal > 0:
		more := ""
		if n := f.report.BrokenTotal - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
		var first *placed
		errors.As(f.report.Broken[0], &first)
		return fmt.Errorf("nothing in it can be read: %w%s; %s", first, more, howTo)
	case f.pods || f.report.NodesKnown || f.dra:
		return nil // of an empty cluster
	case len(f.report.Ignored) > 0:
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(f.report.Ignored)) {
			kinds = append(kinds, fmt.Sprintf("%d %s", f.report.Ignored[kind], kind))
		}
		return fmt.Errorf("has no pods and no nodes, only %s; %s", strings.Join(kinds, ", "), howTo)
	case f.document > 0:
		return fmt.Errorf("has only empty lists; %s", howTo)
	}
	return fmt.Errorf("is empty; %s", howTo)
}
