// Package accesscontrolpolicy tells in a policy's status what became of its statements. It owns that status and writes
// nothing else; what it tells comes from the reports about units.
package accesscontrolpolicy
