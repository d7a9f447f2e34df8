//go:build linux

// Command kubelet-keeper keeps the place of a real node on this machine; package
// keeper says how.
package main

import (
	"fmt"
	"os"

	"github.com/gpu-summary/gpu-summary-controller/lab/realnode/keeper"
)

func main() {
	if err := keeper.Run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "kubelet-keeper: %v\n", err)
		os.Exit(1)
	}
}
