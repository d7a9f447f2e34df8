package plane

import (
	"context"
	"fmt"
	"os"
)

// Main runs the tests of a package on one plane:
//
//	func TestMain(m *testing.M) {
//		os.Exit(plane.Main(m, plane.Options{}, func(p *plane.Plane) { lab = p }))
//	}
//
// It starts the plane, passes it to set, runs the tests and stops the plane.
// The result is the exit status, which is not 0 either when the plane does not
// start or stop. (*testing.M is taken as what it is used for, so that programs
// that use this package do not link the testing package.)
func Main(m interface{ Run() int }, o Options, set func(*Plane)) int {
	if o.Progress == nil {
		o.Progress = os.Stderr // a first build would look like a hanging test
	}
	p, err := Start(context.Background(), o)
	if err != nil {
		fmt.Fprintf(os.Stderr, "start plane: %v\n", err)
		return 1
	}
	set(p)
	code := m.Run()
	if err := p.Stop(); err != nil {
		fmt.Fprintf(os.Stderr, "stop plane: %v\n", err)
		return max(code, 1)
	}
	return code
}
