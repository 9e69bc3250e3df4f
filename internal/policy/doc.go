// Package policy owns the meaning of access control: names, statements, the decision about one connection, and the
// compilation of statements into units that an enforcer can render.
//
// It is pure. It does no I/O, reads no clock (every question carries its instant) and knows neither Kubernetes clients
// nor dataplanes. A Snapshot is built once from the objects as they are and never changes, so any number of goroutines
// may ask it. It is total: no input makes it panic or fail; what is wrong is left out and reported.
//
// Two questions are answered apart. Decide says what the statements mean, in full. Compile says what is pushed to the
// members, and names every statement that could not be expressed.
package policy
