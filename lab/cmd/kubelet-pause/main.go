// Command kubelet-pause does nothing. One runs in each pod of a real node: its
// process holds the namespaces that the containers share.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// As process 1 of its namespace it would ignore the signal that ends it.
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	<-stop
}
