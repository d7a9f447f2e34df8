package demo

import (
	"bytes"
	"reflect"
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
)

func TestJobsFollowTheSeed(t *testing.T) {
	a, b, other := newJobs(7), newJobs(7), newJobs(8)
	sizes, differs := map[int64]int{}, false
	for range 200 {
		job := a.next()
		if !reflect.DeepEqual(job, b.next()) {
			t.Fatal("the same seed gives other jobs")
		}
		differs = differs || !reflect.DeepEqual(job, other.next())
		pod := job.Spec.Template
		sizes[gpus(pod.Spec.Containers[0].Resources.Requests)]++
		if s, err := strconv.Atoi(pod.Annotations[runSeconds]); err != nil || s < 5 || s > 40 {
			t.Errorf("%s runs for %q seconds", job.Name, pod.Annotations[runSeconds])
		}
	}
	if !differs {
		t.Error("another seed gives the same jobs")
	}
	if len(sizes) != 4 || sizes[1] <= sizes[2] || sizes[2] <= sizes[8] {
		t.Errorf("sizes %v, want 1, 2, 4 and 8, the small ones more often", sizes)
	}
}

func TestRunning(t *testing.T) {
	list := make([]batchv1.Job, 4)
	list[1].Status.Ready = new(int32(0))
	list[2].Status.Ready = new(int32(1))
	if n := running(list); n != 1 {
		t.Errorf("%d run, want 1", n)
	}
}

func TestStatusLine(t *testing.T) {
	s := status{Published: Published{Requested: 4, Allocatable: 9, Free: 5, Pending: 2}, running: 3, writes: 17}
	const text = "requested 4 of 9  free 5  pending 2  jobs running 3  ConfigMap written 17 times"
	if s.String() != text {
		t.Errorf("got %q", s)
	}
	for name, tc := range map[string]struct {
		width int
		want  string
	}{
		"file":     {0, "beat\nbeat\n"},
		"terminal": {80, "\rbeat\x1b[K\rbeat\x1b[K\rbeat\x1b[K\n"},
		"narrow":   {4, "\rbea\x1b[K\rbea\x1b[K\rbea\x1b[K\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			l := &statusLine{w: &b, width: func() int { return tc.width }}
			for _, n := range []int{0, plainBeats - 1, plainBeats} {
				l.show(n, "beat")
			}
			l.end()
			l.end()
			if b.String() != tc.want {
				t.Errorf("got %q, want %q", b.String(), tc.want)
			}
		})
	}
}
