package scale

import (
	"errors"
	"fmt"
	"time"
)

// Options of a run.
type Options struct {
	// Repo is the root of the repository, and BinDir the folder with the built programs.
	Repo, BinDir string
	// Members, Resources and Grants are the numbers of members, of resources, and of grants of each resource.
	Members, Resources, Grants int
	// Changes is the number of single changes of each kind.
	Changes int
	// Workloads is the number of external workloads. With 0, the members get no groups of addresses.
	Workloads int
	// People is the number of people who request and decide access in the portal, and Flows that of the members' connections per second, while
	// revocations are measured. With 0, the portal or the collector does not run.
	People, Flows int
	// Slow is the latency of the slow member.
	Slow time.Duration
	// Errors is the share of requests, from 0 to 1, that the failing member answers with an internal error.
	Errors float64
	// Profile is the file for a profile of the adapter's processor time in the bulk push, or "" for none.
	Profile string
}

const (
	maxPeople = 1_000
	maxFlows  = 1_000_000
)

// DefaultOptions returns the sizes that two cores can handle within minutes.
func DefaultOptions() Options {
	return Options{Members: fullMembers, Resources: 1_000, Grants: fullGrants, Changes: fullChanges, People: fullPeople, Flows: fullFlows,
		Slow: 2 * time.Second, Errors: 0.3}
}

// Validate reports what is wrong with the options.
func (o Options) Validate() error {
	switch {
	case o.Members < 4 || o.Members > largeMesh:
		return fmt.Errorf("the number of members must be from 4 to %d", largeMesh)
	case o.Resources < 2 || o.Grants < 2 || o.Changes < 1:
		return errors.New("at least 2 resources with 2 grants each, and 1 change are needed")
	case o.Workloads < 0 || o.Workloads > maxWorkloads:
		return fmt.Errorf("the number of external workloads must be from 0 to %d", maxWorkloads)
	case o.People < 0 || o.People > maxPeople || o.People > 0 && o.People < 3:
		return fmt.Errorf("the number of people must be 0, or from 3 to %d: two others decide about each request", maxPeople)
	case o.People > o.requestable():
		return fmt.Errorf("%d people need at least %d resources", o.People, 2*o.People)
	case o.Flows < 0 || o.Flows > maxFlows:
		return fmt.Errorf("the number of flows per second must be from 0 to %d", maxFlows)
	case o.Errors < 0 || o.Errors > 1:
		return errors.New("the share of requests that fail must be from 0 to 1")
	}
	return nil
}
