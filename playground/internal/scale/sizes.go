package scale

import "fmt"

// The sizes for which the aims hold.
const (
	fullMembers   = 100
	fullResources = 10_000
	fullGrants    = 10
	fullChanges   = 100
	fullWorkloads = 40_000
	fullPeople    = 40
	fullFlows     = 13_300
)

// size is a quantity of a run beside the one for which the aims hold.
type size struct {
	name       string
	here, full int
	// elsewhere says what measures the quantity when a run has nothing of it.
	elsewhere string
}

// String returns the size as a line of the output, which says whether it was scaled down.
func (s size) String() string {
	line := fmt.Sprintf("size %s %d of %d", s.name, s.here, s.full)
	switch {
	case s.here >= s.full:
		return line
	case s.here == 0:
		return line + ": not part of this run; " + s.elsewhere
	}
	return line + ": scaled down"
}

// sizes returns every quantity of the aims with what a run has of it.
func (o Options) sizes() []size {
	return []size{
		{name: "members", here: o.Members, full: fullMembers},
		{name: "resources", here: o.Resources, full: fullResources},
		{name: "grants", here: o.Resources * o.Grants, full: fullResources * fullGrants},
		{name: "units in members", here: o.Resources * o.Members, full: fullResources * fullMembers},
		{name: "applications with grants", here: min(o.Resources*o.Grants, applications), full: applications},
		{name: "external workloads", here: o.Workloads, full: fullWorkloads,
			elsewhere: "make bench measures 40,000 without members (adapter_workload_40k, cidrgroups_40k, workloads_sync_40k)"},
		{name: "people deciding", here: o.People, full: fullPeople,
			elsewhere: "make bench measures the portal with 190 people logged in, without members (portal_write_p99)"},
		{name: "flows per second", here: o.Flows, full: fullFlows,
			elsewhere: "make bench measures the collector with 100 members and as many flows, without the adapter (collector_rss_100, collector_cpu_100)"},
	}
}
