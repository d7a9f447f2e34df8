package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
)

const (
	churnNamespace = "churn"
	// beat is how often the status is looked at; every jobBeats of them a job starts.
	beat     = time.Second
	jobBeats = 2
	// runSeconds is for the KWOK stage that ends the pods of jobs.
	runSeconds = "lab.gpu-summary/run-seconds"
)

// jobs makes jobs, the same ones for the same seed.
type jobs struct {
	rng  *rand.Rand
	made int
}

func newJobs(seed uint64) *jobs { return &jobs{rng: rand.New(rand.NewPCG(seed, 1))} }

// next returns the next job: small ones are frequent, and each runs for 5 to 40
// seconds, which makes about a dozen of them at a time.
func (j *jobs) next() *batchv1.Job {
	j.made++
	sizes := []int64{1, 1, 1, 1, 2, 2, 4, 8}
	size := sizes[j.rng.IntN(len(sizes))]
	runs := 5 + j.rng.IntN(36)
	devices := corev1.ResourceList{count.NVIDIA: *resource.NewQuantity(size, resource.DecimalSI)}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: churnNamespace, Name: fmt.Sprintf("job-%05d", j.made)},
		Spec: batchv1.JobSpec{
			// Jobs that have ended soon go away, or hours of churn would fill the store.
			TTLSecondsAfterFinished: new(int32(5)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{runSeconds: strconv.Itoa(runs)}},
				Spec: corev1.PodSpec{
					RestartPolicy:                corev1.RestartPolicyNever,
					AutomountServiceAccountToken: new(false),
					Tolerations:                  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					Containers: []corev1.Container{{
						Name: "main", Image: "lab/pause",
						Resources: corev1.ResourceRequirements{Requests: devices, Limits: devices},
					}},
				},
			},
		},
	}
}

// churn lets jobs come and go and shows what is published, until ctx ends. A
// request that fails is made again at the next beat; when nothing has worked for as
// long as patience, the churn gives up.
func (d *demo) churn(ctx context.Context, summary *follower) error {
	if err := d.openChurn(ctx); err != nil {
		return err
	}
	line := newStatusLine(d.Stdout)
	defer line.end()
	c := &churn{demo: d, summary: summary, jobs: newJobs(d.Seed)}
	tick := time.NewTicker(beat)
	defer tick.Stop()
	worked := time.Now()
	for n := 0; ; n++ {
		err := c.step(ctx, n)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			worked = time.Now()
			line.show(n, c.status.String())
		case time.Since(worked) > patience:
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// openChurn makes the namespace and waits for its service account, without which
// admission refuses every pod.
func (d *demo) openChurn(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: churnNamespace}}
	if _, err := d.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", churnNamespace, err)
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, err := d.client.CoreV1().ServiceAccounts(churnNamespace).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("wait for service account %s/default: %w", churnNamespace, err)
	}
	return nil
}

// churn is the churn under way.
type churn struct {
	*demo
	summary *follower
	jobs    *jobs
	waiting *batchv1.Job // made, but not yet created
	status  status
}

// step starts a job if it is time for one and brings the status up to date.
func (c *churn) step(ctx context.Context, n int) error {
	if n%jobBeats == 0 && c.waiting == nil {
		c.waiting = c.jobs.next()
	}
	api := c.client.BatchV1().Jobs(churnNamespace)
	if c.waiting != nil {
		_, err := api.Create(ctx, c.waiting, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) { // it exists if only the answer was lost
			return fmt.Errorf("create job %s: %w", c.waiting.Name, err)
		}
		c.waiting = nil
	}
	// resourceVersion 0 is answered from the server's memory.
	list, err := api.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("list jobs: %w", err)
	}
	published, writes, err := c.summary.look()
	if err != nil {
		return fmt.Errorf("read ConfigMap %s: %w", target, err)
	}
	c.status = status{Published: published, running: running(list.Items), writes: writes}
	return nil
}

// running counts the jobs whose pod runs.
func running(list []batchv1.Job) (n int) {
	for _, job := range list {
		if job.Status.Ready != nil && *job.Status.Ready > 0 {
			n++
		}
	}
	return n
}
