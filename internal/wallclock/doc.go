// Package wallclock is the clock of ACP's programs. It contains the only difference between a released program and one
// that is built for the fault drill: only the latter (build tag "drill") can be given an offset. A released program has
// no flag and no environment variable for it, so no one can move the end of a grant by changing the clock. The package
// imports nothing of ACP.
package wallclock
