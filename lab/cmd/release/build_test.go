package main

import (
	"fmt"
	"testing"
)

func TestPlatforms(t *testing.T) {
	for _, tc := range []struct {
		names     []string
		imageOnly bool
		want      string
	}{
		{nil, false, "[linux/amd64 linux/arm64 darwin/amd64 darwin/arm64] <nil>"},
		{nil, true, "[linux/amd64 linux/arm64] <nil>"},
		{[]string{"darwin/arm64", "linux/arm64"}, false, "[darwin/arm64 linux/arm64] <nil>"},
		{[]string{"darwin/arm64"}, true, "[] --platform darwin/arm64 is none of [linux/amd64 linux/arm64]"},
		{[]string{"arm64"}, false, "[] --platform arm64 is none of [linux/amd64 linux/arm64 darwin/amd64 darwin/arm64]"},
	} {
		platforms, err := choose(tc.names, tc.imageOnly)
		if got := fmt.Sprint(platforms, err); got != tc.want {
			t.Errorf("%q, for an image %t: %s, want %s", tc.names, tc.imageOnly, got, tc.want)
		}
	}
}
