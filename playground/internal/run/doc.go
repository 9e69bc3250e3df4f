// Package run puts a whole playground together: the fleet, the dataplanes, the OIDC provider and the programs of ACP,
// in the order in which they need each other, and keeps it until it is told to stop.
package run
