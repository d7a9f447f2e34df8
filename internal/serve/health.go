package serve

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Info is a condition that is worth a line and keeps nobody from being ready.
type Info string

func (i Info) Error() string { return string(i) }

// withheld stands for a reason that is told to those who may read: the message of
// an API server names users and namespaces.
const withheld = "reason withheld"

// checks answers 200 when every named condition holds, else 503 and what that
// means; either way with a line for each, as the Kubernetes components do. told
// decides who learns the reasons.
func checks(otherwise string, conditions func() map[string]error, told func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		var results map[string]error
		if conditions != nil {
			results = conditions()
		}
		reason := func(error) string { return withheld }
		if told(r) {
			reason = error.Error
		}
		var body strings.Builder
		verdict, status := "ok", http.StatusOK
		for _, name := range slices.Sorted(maps.Keys(results)) {
			var info Info
			if errors.As(results[name], &info) {
				fmt.Fprintf(&body, "[i] %s: %s\n", name, reason(info))
				continue
			}
			if err := results[name]; err != nil {
				verdict, status = otherwise, http.StatusServiceUnavailable
				fmt.Fprintf(&body, "[-] %s: %s\n", name, reason(err))
				continue
			}
			fmt.Fprintf(&body, "[+] %s\n", name)
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, "%s%s\n", body.String(), verdict)
	})
}
