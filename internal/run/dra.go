package run

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpu-summary/gpu-summary-controller/internal/count"
	"github.com/gpu-summary/gpu-summary-controller/internal/serve"
	"github.com/gpu-summary/gpu-summary-controller/internal/watch"
)

// draClasses is what classes count as: those that vendors' drivers come with and
// those that the flags add or change.
func (o *Options) draClasses(names count.Names) (map[string]string, error) {
	classes := count.DefaultDRAClasses()
	var errs []error
	for _, entry := range o.DRAClasses {
		class, resource, ok := strings.Cut(entry, "=")
		switch problems := validation.IsDNS1123Subdomain(class); {
		case !ok:
			errs = append(errs, fmt.Errorf("%q: want class=resource, as in gpu.example.com=example.com/gpu", entry))
		case len(problems) > 0:
			errs = append(errs, fmt.Errorf("%q: not the name of a class: %s", entry, strings.Join(problems, "; ")))
		case !names.Match(resource):
			errs = append(errs, fmt.Errorf("%q: %s is not counted as a GPU (--gpu-resource=%s would make it one)", entry, resource, resource))
		default:
			classes[class] = resource
		}
	}
	return classes, errors.Join(errs...)
}

// conditions are what /readyz shows. DRA is not one to wait for: it says how it is
// with it, and fails nothing.
func conditions(informers *watch.Watch) func() map[string]error {
	return func() map[string]error {
		results := informers.Synced()
		state, reason := informers.DRA()
		text := string(state)
		if reason != "" {
			text += ": " + reason
		}
		results["dra"] = serve.Info(text)
		return results
	}
}
