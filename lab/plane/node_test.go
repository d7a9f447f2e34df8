package plane_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/gpu-summary/gpu-summary-controller/lab/plane"
)

func sleeper(name string) plane.Part {
	return plane.Part{
		Name: name, Path: "/bin/sleep", Args: []string{"600"},
		Probe: func(context.Context) error { return nil },
	}
}

// TestAddedPartIsAComponent: the last, since it depends on all others.
func TestAddedPartIsAComponent(t *testing.T) {
	p := labPlane(t)
	name := unique("part")
	c, err := p.Add(t.Context(), sleeper(name))
	if err != nil {
		t.Fatal(err)
	}
	if all := p.Components(); all[len(all)-1] != c || p.Component(name) != c {
		t.Errorf("%s is not the last of the components", name)
	}
	if _, err := p.Add(t.Context(), sleeper(name)); err == nil || !strings.Contains(err.Error(), "component of that name") {
		t.Errorf("a second %s: %v, want an error", name, err)
	}
	pid := c.Pid()
	if err := p.Remove(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if alive(pid) || p.Component(name) != nil {
		t.Errorf("after Remove the process is there (%t), or the component", alive(pid))
	}
	if err := p.Remove(t.Context(), name); err != nil {
		t.Errorf("removed twice: %v", err)
	}
}

// TestPartThatDoesNotStartIsForgotten, so that it can be tried again.
func TestPartThatDoesNotStartIsForgotten(t *testing.T) {
	p := labPlane(t)
	part := sleeper(unique("part"))
	refused := errors.New("no namespaces today")
	part.Start = func(*exec.Cmd) error { return refused }
	if _, err := p.Add(t.Context(), part); !errors.Is(err, refused) {
		t.Errorf("error %v, want the cause", err)
	}
	part = sleeper(part.Name)
	part.Path = "/bin/false"
	part.Args, part.Probe = nil, func(context.Context) error { return errors.New("not yet") }
	if _, err := p.Add(t.Context(), part); err == nil || !strings.Contains(err.Error(), "ended by itself") {
		t.Errorf("error %v, want one that says that it ended", err)
	}
	if p.Component(part.Name) != nil {
		t.Error("what did not start is a component")
	}
}

func TestRealNodeNeedsTheControllerManager(t *testing.T) {
	_, err := plane.Start(t.Context(), plane.Options{RealNode: true, Without: []string{plane.ControllerManager}})
	if err == nil || !strings.Contains(err.Error(), "leave out "+plane.ControllerManager) {
		t.Errorf("error %v, want one about %s", err, plane.ControllerManager)
	}
}
