package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-summary/gpu-summary-controller/lab/load"
)

func configMap(annotations, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Data: data}
}

func goodAnnotations() map[string]string {
	return map[string]string{
		"gpu-summary/requested": "5", "gpu-summary/allocatable": "12", "gpu-summary/free": "7",
		"gpu-summary/pending": "3", "gpu-summary/overcommitted": "0", "gpu-summary/observed": "pods@1 nodes@2",
	}
}

func TestParse(t *testing.T) {
	p, err := parse(configMap(goodAnnotations(), map[string]string{"a": "5", "b": "0"}))
	if err != nil {
		t.Fatal(err)
	}
	if p.Requested != 5 || p.Allocatable != 12 || p.Free != 7 || p.Pending != 3 || p.Overcommitted != 0 ||
		!maps.Equal(p.Rows, map[string]int64{"a": 5, "b": 0}) {
		t.Errorf("got %+v", p)
	}
}

// TestParseRefuses: what nobody has published must not be shown as zero.
func TestParseRefuses(t *testing.T) {
	for annotation := range goodAnnotations() {
		if annotation == "gpu-summary/observed" {
			continue
		}
		missing, broken := goodAnnotations(), goodAnnotations()
		delete(missing, annotation)
		broken[annotation] = "many"
		if _, err := parse(configMap(missing, nil)); err == nil || err.Error() != "annotation "+annotation+" is missing" {
			t.Errorf("without %s: %v", annotation, err)
		}
		if _, err := parse(configMap(broken, nil)); err == nil || err.Error() != fmt.Sprintf("annotation %s is %q, not a number", annotation, "many") {
			t.Errorf("%s broken: %v", annotation, err)
		}
	}
	if _, err := parse(configMap(goodAnnotations(), map[string]string{"a": "1.5"})); err == nil || err.Error() != `row a is "1.5", not a number` {
		t.Errorf("row broken: %v", err)
	}
}

func TestCompare(t *testing.T) {
	want := load.Totals{Requested: 5, Allocatable: 12, Free: 7, Pending: 3, PerNode: map[string]int64{"a": 5, "b": 0}}
	for name, tc := range map[string]struct {
		change func(*Published)
		want   string
	}{
		"equal":        {func(*Published) {}, ""},
		"totals":       {func(p *Published) { p.Requested, p.Free = 4, 8 }, "requested is 4, want 5; free is 8, want 7"},
		"other totals": {func(p *Published) { p.Allocatable, p.Pending = 0, 1 }, "allocatable is 0, want 12; pending is 1, want 3"},
		"row":          {func(p *Published) { p.Rows["a"] = 6 }, "row a is 6, want 5"},
		"no row":       {func(p *Published) { delete(p.Rows, "b") }, "row b is absent, want 0"},
		"more rows":    {func(p *Published) { p.Rows["c"] = 0 }, "row c is 0, want absent"},
		"no rows":      {func(p *Published) { p.Rows = nil }, "row a is absent, want 5; row b is absent, want 0"},
		"many": {func(p *Published) {
			for i := range 9 {
				p.Rows[fmt.Sprintf("x%d", i)] = 1
			}
		}, "row x0 is 1, want absent; row x1 is 1, want absent; row x2 is 1, want absent; row x3 is 1, want absent; row x4 is 1, want absent; and 4 more"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Published{Requested: 5, Allocatable: 12, Free: 7, Pending: 3, Rows: map[string]int64{"a": 5, "b": 0}}
			tc.change(&got)
			err := compare(got, want)
			if text := strings.TrimSuffix(fmt.Sprint(err), "<nil>"); text != tc.want {
				t.Errorf("got  %s\nwant %s", text, tc.want)
			}
		})
	}
}

func TestLookBeforeThereIsAnything(t *testing.T) {
	if _, _, err := (&follower{}).look(); err == nil || err.Error() != "it does not exist" {
		t.Errorf("got %v", err)
	}
}

// TestFollowerCountsWrites: a relist hands the same version over again.
func TestFollowerCountsWrites(t *testing.T) {
	f := &follower{changed: make(chan struct{}, 1)}
	for _, version := range []string{"7", "8", "8", "9"} {
		cm := configMap(goodAnnotations(), nil)
		cm.ResourceVersion = version
		f.saw(cm)
	}
	if _, writes, err := f.look(); err != nil || writes != 3 {
		t.Errorf("%d writes, %v", writes, err)
	}
}

// TestWaitNamesWhatDiffers: when the wait is over the error is all there is to go by.
func TestWaitNamesWhatDiffers(t *testing.T) {
	d := &demo{Options: Options{Stderr: io.Discard}}
	f := &follower{changed: make(chan struct{}, 1)}
	f.saw(configMap(goodAnnotations(), map[string]string{"a": "5"}))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err := d.awaitRecount(ctx, f, load.Totals{Requested: 6, Allocatable: 12, Free: 7, Pending: 3, PerNode: map[string]int64{"a": 6}})
	const want = "wait for ConfigMap gpu-summary/gpu-summary to equal the recount: enough: requested is 5, want 6; row a is 5, want 6"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestLastWords(t *testing.T) {
	c := &controller{log: filepath.Join(t.TempDir(), "log")}
	if got := c.lastWords(); got != "" {
		t.Errorf("of no log: %q", got)
	}
	if err := os.WriteFile(c.log, []byte("1\n2\n3\n4\n5\n6\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := c.lastWords(); got != "\nlast lines of the controller's log:\n  2\n  3\n  4\n  5\n  6" {
		t.Errorf("got %q", got)
	}
}
