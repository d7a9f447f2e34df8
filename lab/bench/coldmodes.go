package bench

import "context"

// wire is the cold start with each way to serve.
func wire(ctx context.Context, r *runner, name string) error {
	return coldModes(ctx, r, name, []mode{{}, {gzip: true}, {tls: true}, {tls: true, gzip: true}})
}

// fallback is the cold start against servers that lack something.
func fallback(ctx context.Context, r *runner, name string) error {
	return coldModes(ctx, r, name, []mode{{noWatchList: true}, {jsonOnly: true}, {noWatchList: true, jsonOnly: true}})
}

func coldModes(ctx context.Context, r *runner, name string, modes []mode) error {
	size := r.Sizes[0]
	var steps []step
	for _, m := range modes {
		for _, w := range []who{controller, drain} {
			k := key{Scenario: name, Size: size.String(), Case: m.String(), Who: w, pods: size.Pods}
			steps = append(steps, step{k, func(ctx context.Context) (metrics, error) {
				return r.cold(ctx, w, size.cluster(), m)
			}})
		}
	}
	return r.take(ctx, name+" at "+size.String(), steps)
}
