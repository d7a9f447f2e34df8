package main

import (
	"slices"
	"strings"
	"testing"
)

func TestKubectlTalksToTheRunningLab(t *testing.T) {
	env := []string{"KUBECONFIG=/home/me/.kube/config"}
	for name, c := range map[string]struct {
		labs []string
		args []string
		want string // the last variable
		fail string
	}{
		"one lab":        {labs: []string{"/tmp/a"}, args: []string{"get", "nodes"}, want: "KUBECONFIG=/tmp/a"},
		"no lab":         {args: []string{"get", "nodes"}, fail: "no lab is running"},
		"two labs":       {labs: []string{"/tmp/a", "/tmp/b"}, fail: "--kubeconfig /tmp/a, or --kubeconfig /tmp/b"},
		"one that I say": {labs: []string{"/tmp/a", "/tmp/b"}, args: []string{"--kubeconfig", "/tmp/b", "get", "nodes"}, want: env[0]},
		"said shorter":   {labs: []string{"/tmp/a", "/tmp/b"}, args: []string{"get", "nodes", "--kubeconfig=/tmp/b"}, want: env[0]},
		"said to a pod":  {labs: []string{"/tmp/a"}, args: []string{"exec", "pod", "--", "tool", "--kubeconfig=/x"}, want: "KUBECONFIG=/tmp/a"},
	} {
		t.Run(name, func(t *testing.T) {
			setLabs(t, nil, c.labs...)
			got, err := kubectlEnvironment(c.args, slices.Clone(env))
			switch {
			case c.fail != "":
				if err == nil || !strings.Contains(err.Error(), c.fail) {
					t.Errorf("error %v, want %q in it", err, c.fail)
				}
			case err != nil || got[len(got)-1] != c.want:
				t.Errorf("environment %q, %v; want %s", got, err, c.want)
			}
		})
	}
}
