package watch

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// TestSharedForgetsWhatIsGone: of nodes that come and go, names do not pile up, while
// one that is in use stays the same.
func TestSharedForgetsWhatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names shared[string, string]
		of := func(name string) string { copied := strings.Clone(name); return names.of(copied, copied) }
		stays := of("stays")
		const perHour = 100
		for i := range 100 * perHour {
			if same := of("stays"); unsafe.StringData(same) != unsafe.StringData(stays) {
				t.Fatalf("a name in use is there twice after %d nodes", i)
			}
			of(fmt.Sprint("goes-", i))
			time.Sleep(time.Hour / perHour)
		}
		if kept := len(names.young) + len(names.old); kept > 2*perHour+10 {
			t.Errorf("%d names are kept, of %d nodes an hour", kept, perHour)
		}
	})
}
