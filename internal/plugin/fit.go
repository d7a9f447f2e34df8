package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/fit"
	"github.com/gpu-summary/gpu-summary-controller/internal/gather"
)

// Exit statuses of fit, beside 0. That something does not fit is an answer; scripts
// have to be able to tell it from having none.
const (
	doesNotFit = 1
	noAnswer   = 2
)

type fitOptions struct {
	*common
	file     string
	gpus     int64
	pods     int64
	model    string
	resource string
}

func newFit(c *common) *cobra.Command {
	o := &fitOptions{common: c}
	cmd := &cobra.Command{
		Use:   "fit (--gpus N [--pods N] | -f FILE)",
		Short: "Say whether pods would fit now, on which nodes, and if not, why",
		Long: `Say how many copies of a pod fit now and on which nodes, and why no more of them do.

With --gpus the question is about GPUs alone: on nodes that take pods, as "placeable" is
counted. With -f it is about the pods of a manifest, and everything is judged that
kube-scheduler's filters look at, except volumes and claims: node selector and affinity,
taints, CPU, memory and all other resources, host ports, pod affinity and anti-affinity,
topology spread. Nothing is created, and nothing is evicted for it.

It ends with status 0 if all copies fit, with 1 if they do not, and with 2 if there is no
answer: because of an error, or because the pod has claims.`,
		Example: `  # is there room for four pods of 8 H100 each?
  kubectl gpu-summary fit --gpus 8 --pods 4 --model H100

  # would this deployment fit, and if not, what is wrong with each node?
  kubectl gpu-summary fit -f deployment.yaml -o wide

  # several, one after the other, and twice the copies of each
  cat a.yaml b.yaml | kubectl gpu-summary fit -f - --pods 2

  # wait for room
  until kubectl gpu-summary fit -f job.yaml; do sleep 60; done`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return withStatus(noAnswer, err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.Flags().Changed("pods")) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return withStatus(noAnswer, err) })
	fs := cmd.Flags()
	fs.StringVarP(&o.file, "filename", "f", "", "ask for the pods of this `file`, - for standard input: Pod, Deployment, StatefulSet, ReplicaSet, ReplicationController, Job or CronJob, one or several; -n is the namespace of those that name none")
	fs.Int64Var(&o.gpus, "gpus", 0, "ask for pods with so many GPUs each, and nothing else")
	fs.Int64Var(&o.pods, "pods", 1, "how many copies; of a file, instead of what it says")
	fs.StringVar(&o.model, "model", "", "only GPUs of this `model`, or of those that have it in their name")
	fs.StringVar(&o.resource, "resource", "", "the GPU `resource` that --gpus is of; may be left out if there is nvidia.com/gpu, or only one")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json") // the flag is there
	return cmd
}

func (o *fitOptions) run(ctx context.Context, podsGiven bool) error {
	v, answers, err := o.view(ctx, podsGiven)
	if err == nil {
		err = o.print(v)
	}
	if err != nil {
		return withStatus(noAnswer, err)
	}
	verdicts := make(map[fit.Verdict]bool)
	for i := range answers {
		verdicts[answers[i].Verdict] = true
	}
	switch {
	case verdicts[fit.DoesNotFit]:
		return withStatus(doesNotFit, nil)
	case verdicts[fit.Unknown]:
		return withStatus(noAnswer, nil)
	}
	return nil
}

func (o *fitOptions) view(ctx context.Context, podsGiven bool) (*view, []fit.Answer, error) {
	switch {
	case o.gpus == 0 && o.file == "":
		return nil, nil, errors.New("what is to fit? say --gpus N, or -f FILE")
	case o.file != "" && (o.gpus != 0 || o.resource != ""):
		return nil, nil, errors.New("-f says itself what its pods ask for: leave out --gpus and --resource")
	case o.gpus < 0:
		return nil, nil, fmt.Errorf("--gpus=%d: want at least 1", o.gpus)
	case o.pods < 1 || o.pods > mostCopies:
		return nil, nil, fmt.Errorf("--pods=%d: want 1 to %d", o.pods, mostCopies)
	}
	questions, err := o.questions()
	if err != nil {
		return nil, nil, err
	}
	facts, r, err := o.readFit(ctx, questions)
	if err != nil {
		return nil, nil, err
	}
	if o.file == "" {
		questions, err = o.ofGPUs(r.snapshot)
	} else {
		err = o.choose(questions, r.snapshot, podsGiven)
	}
	if err != nil {
		return nil, nil, err
	}
	answers, err := fit.Ask(facts, r.snapshot, questions...)
	if err != nil {
		return nil, nil, err
	}
	return fitView(r, answers, o.format() == formatWide), answers, nil
}

// mostCopies bounds how long a question can take: copies that keep each other away are
// placed one by one.
const mostCopies = 10_000

// questions are those of the file, if there is one.
func (o *fitOptions) questions() ([]fit.Question, error) {
	if o.file == "" {
		return nil, nil
	}
	if o.file == "-" && o.from == "-" {
		return nil, errors.New("-f - and --from -: standard input can only be one of them")
	}
	namespace, err := o.namespace()
	if err != nil {
		return nil, err
	}
	if o.file == "-" {
		return fit.ReadQuestions("standard input", o.In, namespace)
	}
	f, err := os.Open(o.file)
	if err != nil {
		return nil, fmt.Errorf("-f: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	return fit.ReadQuestions(o.file, f, namespace)
}

// readFit reads what is counted, and what else a scheduler goes by.
func (o *fitOptions) readFit(ctx context.Context, questions []fit.Question) (*fit.Facts, *reading, error) {
	names, err := o.names()
	if err != nil {
		return nil, nil, err
	}
	classes, err := o.classes(names)
	if err != nil {
		return nil, nil, err
	}
	f, facts := newFacts(names), fit.NewFacts(names, questions...)
	report, err := o.gather(ctx, gather.Scope{Nodes: true, DRA: true}, gather.All{f, facts})
	if err != nil {
		return nil, nil, err
	}
	switch {
	case !report.NodesKnown && o.from != "":
		return nil, nil, fmt.Errorf("there are no nodes in %s, and without them nobody can say what fits", o.from)
	case !report.NodesKnown:
		return nil, nil, errors.Join(append(report.Missing, errors.New("without nodes nobody can say what fits"))...)
	}
	r := &reading{facts: f, world: f.world(report, classes), notes: notes(report)}
	r.snapshot = count.Take(r.world)
	r.notes = append(r.notes, draNotes(r.snapshot.DRA, len(report.Missing) > 0)...)
	return facts, r, nil
}

// ofGPUs is the question of --gpus.
func (o *fitOptions) ofGPUs(snap *count.Snapshot) ([]fit.Question, error) {
	resource, err := o.whichResource(snap)
	if err != nil {
		return nil, err
	}
	q := fit.GPUs(resource, o.gpus, o.pods)
	if q.Models, err = fit.MatchModels(snap, resource, o.model); err != nil {
		return nil, fmt.Errorf("--model: %w", err)
	}
	return []fit.Question{q}, nil
}

func (o *fitOptions) whichResource(snap *count.Snapshot) (string, error) {
	var all []string
	for i := range snap.Summaries {
		all = append(all, snap.Summaries[i].Resource)
	}
	switch {
	case o.resource != "":
		return o.resource, known("resource", o.resource, all)
	case len(all) == 1:
		return all[0], nil
	case len(all) == 0 || snap.Of(count.NVIDIA).Nodes > 0:
		return count.NVIDIA, nil
	}
	return "", fmt.Errorf("there is no %s: choose --resource of %s", count.NVIDIA, list(all))
}

// choose puts what the flags say into the questions of a file.
func (o *fitOptions) choose(questions []fit.Question, snap *count.Snapshot, podsGiven bool) error {
	for i := range questions {
		q := &questions[i]
		if podsGiven {
			q.Copies = o.pods
		}
		if q.Copies > mostCopies {
			return fmt.Errorf("%s: %d copies are more than can be asked for, %d", q.Name, q.Copies, mostCopies)
		}
		if o.model == "" {
			continue
		}
		resource, err := fit.ResourceOf(q, snap)
		if err == nil {
			q.Models, err = fit.MatchModels(snap, resource, o.model)
		}
		if err != nil {
			return fmt.Errorf("--model: %w", err)
		}
	}
	return nil
}
