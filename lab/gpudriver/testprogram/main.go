// Command testprogram says which devices it was given and that these are all, and then
// waits if it is asked to. It is what the tests of package gpudriver run in pods.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() {
	env := os.Environ()
	slices.Sort(env)
	for _, variable := range env {
		if strings.HasPrefix(variable, "GPU_SUMMARY_") || strings.HasPrefix(variable, "NVIDIA_") {
			fmt.Println(variable)
		}
	}
	fmt.Println("end")
	if len(os.Args) > 1 && os.Args[1] == "wait" {
		end := make(chan os.Signal, 1)
		signal.Notify(end, syscall.SIGTERM)
		<-end
	}
}
