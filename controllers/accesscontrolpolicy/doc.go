// Package accesscontrolpolicy reports in a policy's status the state of its statements. It owns that status and writes
// nothing else; its input is the reports about units.
package accesscontrolpolicy
