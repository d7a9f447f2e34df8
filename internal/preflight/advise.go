package preflight

import (
	"context"
	"fmt"
	"strings"
)

// Advise asks, and says in a few lines what to do about permissions that are
// missing. It is for a start that has failed: whatever it was, nothing but the
// answer is added, and asking is bounded.
func Advise(ctx context.Context, client Client, needs []Need) string {
	report, err := Ask(ctx, client, needs)
	if err != nil {
		return err.Error()
	}
	return report.advice()
}

func (r Report) advice() string {
	required, optional := r.Missing()
	if required+optional == 0 {
		return "no permission is missing"
	}
	var lines []string
	for _, a := range r.sorted() {
		if !a.Allowed {
			lines = append(lines, fmt.Sprintf("grant the verb %q on %s %s: %s", a.Verb, a.object(), a.where(), a.why()))
		}
	}
	return fmt.Sprintf("permissions are missing; \"gpu-summary-controller preflight\" with the same flags prints the rules to add:\n  %s", strings.Join(lines, "\n  "))
}
