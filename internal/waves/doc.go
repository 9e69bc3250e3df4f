// Package waves decides in which members Enforce begins, and when: one wave of members after the other, as the class of a resource
// defines (docs/waves.md). Next is a pure function of values. The adapter stores its result in the status of the ProtectedResource before it
// acts on it. The package may import the API and messages only.
package waves
