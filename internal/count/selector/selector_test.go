package selector

import (
	"fmt"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func encoded(n int) *Devices {
	var devices []resourcev1.Device
	for i := range n {
		kind, id := "gpu", int64(i)
		devices = append(devices, resourcev1.Device{
			Name: fmt.Sprint("gpu-", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"type": {StringValue: &kind}, "index": {IntValue: &id},
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
		})
	}
	return Encode("gpu.example.com", devices)
}

func TestSelect(t *testing.T) {
	for _, tc := range []struct {
		name      string
		selectors []string
		want      int
		failed    int
	}{
		{"no selector selects everything", nil, 70, 0},
		{"the driver", []string{`device.driver == "gpu.example.com"`}, 70, 0},
		{"an attribute", []string{`device.attributes["gpu.example.com"].index >= 60`}, 10, 0},
		{"a capacity", []string{`device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) > 0`}, 70, 0},
		{"all have to hold", []string{`device.driver == "gpu.example.com"`, `device.attributes["gpu.example.com"].index == 65`}, 1, 0},
		{"an attribute that is missing", []string{`device.attributes["gpu.example.com"].mode == "a"`}, 0, 70},
		{"one that is asked for with care", []string{`device.attributes["gpu.example.com"].?mode.orValue("a") == "a"`}, 70, 0},
		{"missing on some", []string{`device.attributes["gpu.example.com"].index < 3 || device.attributes["gpu.example.com"].mode == "a"`}, 3, 67},
	} {
		var c Cache
		pass := c.Begin()
		class, err := pass.Class(tc.selectors)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		selected, failed, why := pass.Slice(encoded(70)).Select(class)
		if selected.Len() != tc.want || failed != tc.failed || (why != "") != (failed > 0) {
			t.Errorf("%s: %d selected, failed on %d (%s); want %d, %d", tc.name, selected.Len(), failed, why, tc.want, tc.failed)
		}
		pass.End()
	}
}

func TestWhatDoesNotCompile(t *testing.T) {
	for _, expression := range []string{"", "device.", `device.driver`, `device.divers == "x"`} {
		var c Cache
		pass := c.Begin()
		class, err := pass.Class([]string{"true", expression})
		if err == nil || !strings.Contains(err.Error(), "selector 2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", expression, err)
		}
		if selected, _, _ := pass.Slice(encoded(2)).Select(class); selected.Len() > 0 {
			t.Errorf("%q selects something", expression)
		}
		pass.End()
	}
}

// TestOnlyWhatIsNewIsEvaluated, and what is no longer there is forgotten.
func TestOnlyWhatIsNewIsEvaluated(t *testing.T) {
	var c Cache
	a, b := encoded(8), encoded(8)
	round := func(classes []string, slices ...*Devices) int {
		before := c.evaluated
		pass := c.Begin()
		for _, expression := range classes {
			class, err := pass.Class([]string{expression})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range slices {
				pass.Slice(s).Select(class)
			}
		}
		pass.End()
		return c.evaluated - before
	}
	for i, step := range []struct {
		classes []string
		slices  []*Devices
		want    int
	}{
		{[]string{"true"}, []*Devices{a, b}, 16},
		{[]string{"true"}, []*Devices{a, b}, 0},
		{[]string{"true", "false"}, []*Devices{a, b}, 16},          // the new class only
		{[]string{"true", "false"}, []*Devices{a, encoded(8)}, 16}, // the new slice only
		{[]string{"true"}, []*Devices{a}, 0},
		{[]string{"true"}, []*Devices{a}, 0},
	} {
		if got := round(step.classes, step.slices...); got != step.want {
			t.Errorf("round %d evaluated %d devices, want %d", i, got, step.want)
		}
	}
	if len(c.results) != 1 || len(c.programs) != 1 || len(c.results[a].results) != 1 {
		t.Errorf("%d slices and %d classes are remembered, want 1 of each", len(c.results), len(c.programs))
	}
}

func TestSet(t *testing.T) {
	var s, u Set
	s.add(3)
	u.add(127)
	union := s.Or(u)
	if !union.Has(3) || !union.Has(127) || union.Has(4) || union.Len() != 2 || s.Len() != 1 || u.Len() != 1 {
		t.Errorf("%v or %v is %v", s, u, union)
	}
	if union := u.Or(s); union.Len() != 2 || s.Has(200) {
		t.Errorf("the other way round it is %v", union)
	}
}
