package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gpu-summary/gpu-summary-controller/lab/gpudriver"
)

func newHealthCommand(p *place) *cobra.Command {
	return &cobra.Command{
		Use:       "health DEVICE healthy|unhealthy",
		Short:     "Say how a device is; a GPU in MIG slices stands for all of them",
		Args:      cobra.ExactArgs(2),
		ValidArgs: []string{"healthy", "unhealthy"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "healthy" && args[1] != "unhealthy" {
				return fmt.Errorf("health of %s: %q is neither healthy nor unhealthy", args[0], args[1])
			}
			return gpudriver.Control{Socket: p.socket()}.SetHealthy(cmd.Context(), args[0], args[1] == "healthy")
		},
	}
}

func newUseCommand(p *place) *cobra.Command {
	return &cobra.Command{
		Use:   "use device-plugin|dra",
		Short: "Offer the same devices in another way",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return gpudriver.Control{Socket: p.socket()}.Use(cmd.Context(), gpudriver.Mode(args[0]))
		},
	}
}

// newPlainCommands are those that only have a name.
func newPlainCommands(p *place) []*cobra.Command {
	var commands []*cobra.Command
	for _, c := range []struct {
		use, short string
		run        func(gpudriver.Control, context.Context) error
	}{
		{"restart", "End the driver and start it anew, as an upgrade would", gpudriver.Control.Restart},
		{"vanish", "Take the driver away, as if it were uninstalled", gpudriver.Control.Vanish},
		{"return", "Bring it back", gpudriver.Control.Return},
	} {
		commands = append(commands, &cobra.Command{
			Use: c.use, Short: c.short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return c.run(gpudriver.Control{Socket: p.socket()}, cmd.Context())
			},
		})
	}
	return commands
}

func newDevicesCommand(p *place) *cobra.Command {
	return &cobra.Command{
		Use:   "devices",
		Short: "List the devices",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := gpudriver.Control{Socket: p.socket()}.Status(cmd.Context())
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			presence := "present"
			if !status.Present {
				presence = "away"
			}
			fmt.Fprintf(out, "Node %s, %s, %s\n\n", status.Node, status.Mode, presence)
			table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "DEVICE\tRESOURCE\tSLOTS\tHEALTH\tUUID")
			for _, d := range status.Devices {
				health := "healthy"
				if !d.Healthy {
					health = "unhealthy"
				}
				fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", d.Name, d.Resource, d.Slots, health, d.UUID)
			}
			return table.Flush()
		},
	}
}
