package tether_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane/tether"
)

func TestMain(m *testing.M) {
	if os.Getenv("TETHER_TEST_CHILD") != "" {
		tether.Hold()
		fmt.Println("held", os.Getenv(tether.EnvFD))
		select {}
	}
	os.Exit(m.Run())
}

func TestChildEndsWithTheTether(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "TETHER_TEST_CHILD=1", tether.EnvFD+"=3")
	child.ExtraFiles = []*os.File{read}
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill() }()

	// It lives as long as the writing end is open, and does not pass it on.
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "held \n" {
		t.Fatalf("child says %q (%v), want %q", line, err, "held \n")
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("child ended while it was tethered: %v", err)
	default:
	}

	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if code := child.ProcessState.ExitCode(); code != 1 {
			t.Errorf("child ended with %v, want exit status 1", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("child still there 10 s after the tether was cut")
	}
}
