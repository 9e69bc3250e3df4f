// Package run starts a whole playground: the fleet, the dataplanes, the OIDC provider and the programs of ACP, in the order of
// their dependencies, and runs it until its context ends.
package run
