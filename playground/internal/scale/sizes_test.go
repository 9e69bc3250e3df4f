package scale

import (
	"strings"
	"testing"
)

// TestPeopleNeedResources checks the bounds of the people who request access.
func TestPeopleNeedResources(t *testing.T) {
	for people, valid := range map[int]bool{0: true, 1: false, 2: false, 3: true, 50: true, 51: false, -1: false, maxPeople + 1: false} {
		o := DefaultOptions()
		o.Resources, o.People = 100, people
		if err := o.Validate(); (err == nil) != valid {
			t.Errorf("%d people with 100 resources: %v", people, err)
		}
	}
}

// TestSizes checks that a run prints every quantity of the aims, and what it lacks of each.
func TestSizes(t *testing.T) {
	full := Options{Members: fullMembers, Resources: fullResources, Grants: fullGrants, Workloads: fullWorkloads,
		People: fullPeople, Flows: fullFlows}
	reduced := DefaultOptions()
	reduced.Members = 20
	reduced.Grants = 2
	reduced.People = 0
	reduced.Flows = 1_000
	tests := map[string]struct {
		options Options
		want    []string
	}{
		"the full size": {full, []string{
			"size members 100 of 100", "size resources 10000 of 10000", "size grants 100000 of 100000", "size units in members 1000000 of 1000000",
			"size applications with grants 10000 of 10000", "size external workloads 40000 of 40000",
			"size people deciding 40 of 40", "size flows per second 13300 of 13300",
		}},
		"a reduced size": {reduced, []string{
			"size members 20 of 100: scaled down", "size resources 1000 of 10000: scaled down", "size grants 2000 of 100000: scaled down",
			"size units in members 20000 of 1000000: scaled down", "size applications with grants 2000 of 10000: scaled down",
			"size external workloads 0 of 40000: not part of this run",
			"size people deciding 0 of 40: not part of this run", "size flows per second 1000 of 13300: scaled down",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sizes := test.options.sizes()
			if len(sizes) != len(test.want) {
				t.Fatalf("there are %d sizes, want %d", len(sizes), len(test.want))
			}
			for i, s := range sizes {
				line, explanation, _ := strings.Cut(s.String(), "; ")
				if line != test.want[i] {
					t.Errorf("line %d is %q, want %q", i, line, test.want[i])
				}
				if s.here == 0 && explanation == "" {
					t.Errorf("%q does not say what measures it", line)
				}
			}
		})
	}
}
