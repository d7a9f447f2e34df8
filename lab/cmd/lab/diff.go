package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/lab/compile"
	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

// judge is the program that "lab diff" runs. The go command decides whether it is
// still what the sources would give: they are those of the counting as well.
var judge = compile.Job{
	Name:  "judge",
	Of:    "the judge (kube-scheduler " + plane.KubernetesVersion + " and the counting)",
	Long:  "which takes some minutes",
	Mains: []string{"./cmd/labdiff"},
	Flags: []string{"-buildvcs=false", "-ldflags=-s -w"},
}

func newDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff [flags]",
		Short: "Let kube-scheduler judge what is counted",
		Long: `Diff compares what the controller counts with what kube-scheduler's own code counts, on
random pods. That code is in a program of its own, which is built first where that has
not been done. Then "lab diff --help" says everything about it.`,
		// All flags are the program's.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := buildJudge(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			// In place of this process: signals, terminal and exit status are its own then.
			err = syscall.Exec(path, append([]string{path}, args...), os.Environ())
			return fmt.Errorf("run %s: %w", path, err)
		},
	}
}

// buildJudge builds into bin of the checkout, beside this command. Two checkouts
// never run each other's judge.
func buildJudge(ctx context.Context, progress io.Writer) (string, error) {
	module, err := compile.Module()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(filepath.Dir(module), "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", fmt.Errorf("make directory for the judge: %w", err)
	}
	if err := judge.Into(ctx, module, bin, progress); err != nil {
		return "", err
	}
	// A signal that came last was meant for the whole command.
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return filepath.Join(bin, "labdiff"), nil
}
