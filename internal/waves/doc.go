// Package waves decides in which members Enforce of a resource begins, or a change of a class begins to count, and when: one wave of members
// after the other, as the class defines (docs/waves.md). Index says which wave a member belongs to. Next is a pure function of values. The
// adapter stores its result in the status of the ProtectedResource or of the ResourceClass before it acts on it. The package may import the API
// and messages only.
package waves
