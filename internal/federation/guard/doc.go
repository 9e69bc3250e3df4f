// Package guard owns the admission policies that keep hands off what ACP manages in a member: who may write it, and who
// may set the pod labels that policies select by.
//
// It renders them (deploy/guard holds the same as files), tells whether a member has them as they are rendered, and
// contacts nobody. membership brings them to members; preflight reads and reports them.
package guard
