// Package bench measures a fleet through the interfaces of its users: make, the HTTP API of the portal and its event stream. It
// contains no part of the fleet and reads no store. Every figure that it prints was measured in the same run.
package bench
