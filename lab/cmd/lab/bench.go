package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/lab/bench"
)

// Sizes of "lab bench" where nobody says others.
var (
	benchSizes      = []string{"5k/150k", "65k/500k", "100k/1M"}
	benchQuickSizes = []string{"200/4k", "400/12k"}
)

func newBenchCommand() *cobra.Command {
	var b benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the controller beside its rivals",
		Long: `Bench measures the controller beside what else one could run: CPU time, memory,
time, requests and bytes, each in a process of its own, in turns, in one run. It needs
no cluster: a server that hardly costs anything plays one of up to a million pods.

Beside the controller run: drain, which reads what the controller has to read and
throws it away, and so is the limit; the textbook controller, with whole objects in
shared informers, a list of everything for each pass and unconditional writes; the poll
loop, which lists everything every five seconds; and kube-state-metrics, if its binary
is given. What does not fit into this machine's memory is left out, and said.

Scenarios:
` + bench.DescribeScenarios() + `
A full run takes about an hour and a half on two cores. Close everything else: other
work on the machine costs nothing that can be subtracted. What to read from the numbers,
and how they come about, is in docs/benchmarks.md.`,
		Example: `  # a minute or three, to see that it works
  lab bench --quick

  # one question, one size
  lab bench --scenario cold-start --size 5k/150k --runs 3

  # everything, kept, and then shown in several ways
  lab bench -o json > run.json
  lab bench --from run.json
  lab bench --from run.json --svg docs/benchmarks --docs docs/benchmarks.md`,
		Args: cobra.NoArgs,
		RunE: b.run,
	}
	flags := cmd.Flags()
	flags.StringVar(&b.Controller, "controller", "", "`PATH` of the controller (default gpu-summary-controller beside this program)")
	flags.StringVar(&b.StateMetrics, "kube-state-metrics", "", "`PATH` of kube-state-metrics, to measure it too")
	flags.StringArrayVar(&b.Scenarios, "scenario", nil, "`NAME` of what to measure, of the list above; repeatable (default all but lab)")
	flags.StringArrayVar(&b.sizes, "size", nil, "cluster, as `NODES/PODS`; repeatable (default "+strings.Join(benchSizes, ", ")+"); where a scenario takes one, it takes the first")
	flags.StringArrayVar(&b.Who, "who", nil, "`NAME` of a contestant: "+strings.Join(bench.WhoNames(), ", ")+"; repeatable (default all)")
	flags.IntVar(&b.Runs, "runs", 5, "how often to measure each; the median is shown")
	flags.BoolVar(&b.Quick, "quick", false, "small sizes ("+strings.Join(benchQuickSizes, ", ")+"), once, and briefly: shows that it works, not how well")
	flags.BoolVar(&b.TLS, "tls", false, "let the server serve HTTPS and HTTP/2, where a scenario does not choose itself")
	flags.BoolVar(&b.Gzip, "gzip", false, "let the server compress, where a scenario does not choose itself")
	flags.DurationVar(&b.QuietFor, "quiet-for", 11*time.Minute, "how long nothing happens in the scenario quiet")
	flags.StringVar(&b.from, "from", "", "show what is in this JSON `FILE` of an earlier run, and measure nothing")
	flags.StringVarP(&b.output, "output", "o", "table", "`FORMAT`: table, markdown or json")
	flags.StringVar(&b.svg, "svg", "", "write plots into `DIR`")
	flags.StringVar(&b.docs, "docs", "", "put tables and plots into this Markdown `FILE`, between its marks")
	cmd.AddCommand(newBenchServerCommand(), newBenchRivalCommand())
	return cmd
}

type benchFlags struct {
	bench.Options
	sizes                   []string
	from, output, svg, docs string
}

func (b *benchFlags) run(cmd *cobra.Command, _ []string) error {
	write, ok := map[string]func(*bench.Report, []bench.Plot, io.Writer) error{
		"table":    func(r *bench.Report, _ []bench.Plot, w io.Writer) error { return r.WriteTable(w) },
		"markdown": func(r *bench.Report, p []bench.Plot, w io.Writer) error { return r.WriteMarkdown(w, p) },
		"json": func(r *bench.Report, _ []bench.Plot, w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", " ")
			return e.Encode(r)
		},
	}[b.output]
	if !ok {
		return fmt.Errorf("--output %q: want table, markdown or json", b.output)
	}
	report, err := b.report(cmd)
	if report == nil {
		return err
	}
	// Also of a run that was given up: what it measured until then is true.
	plots, writeErr := b.files(report)
	return errors.Join(err, writeErr, write(report, plots, cmd.OutOrStdout()))
}

// report measures, or reads what was measured.
func (b *benchFlags) report(cmd *cobra.Command) (*bench.Report, error) {
	if b.from != "" {
		return bench.ReadReport(b.from)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	b.Self, b.Progress = []string{self, "bench"}, cmd.ErrOrStderr()
	if b.Controller == "" {
		b.Controller = filepath.Join(filepath.Dir(self), "gpu-summary-controller")
	}
	if b.Scenarios == nil {
		b.Scenarios = bench.DefaultScenarios()
	}
	if b.sizes == nil {
		b.sizes = benchSizes
		if b.Quick {
			b.sizes = benchQuickSizes
		}
	}
	if b.Quick && !cmd.Flags().Changed("runs") {
		b.Runs = 1
	}
	if b.Runs < 1 {
		return nil, fmt.Errorf("--runs %d: want at least 1", b.Runs)
	}
	for _, text := range b.sizes {
		size, err := bench.ParseSize(text)
		if err != nil {
			return nil, fmt.Errorf("--size: %w", err)
		}
		b.Sizes = append(b.Sizes, size)
	}
	return bench.Run(cmd.Context(), b.Options)
}

// files writes what goes into files.
func (b *benchFlags) files(report *bench.Report) (plots []bench.Plot, err error) {
	if b.svg != "" {
		if plots, err = report.WritePlots(b.svg); err != nil {
			return nil, err
		}
	}
	if b.docs != "" {
		err = report.FillDocument(b.docs, plots)
	}
	return plots, err
}
