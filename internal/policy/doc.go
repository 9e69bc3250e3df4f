// Package policy defines the meaning of access control: names, statements, the decision about one connection, and the
// compilation of statements into units that an enforcer can render.
//
// The package is pure: it does no I/O, reads no clock (every query carries its instant), and depends on neither
// Kubernetes clients nor dataplanes. A Snapshot is built once from the objects and never changes, so it is safe for
// concurrent use. Its functions are total: no input makes them panic or fail; invalid input is left out and reported.
//
// Decide and Compile answer two different questions. Decide returns what the statements mean, in full. Compile returns
// what is pushed to the members, and reports every statement that could not be expressed.
package policy
