// Package wallclock is the clock that ACP's programs live by. It owns the one difference between a program that is shipped and
// one that is built for the fault drill: only the latter (build tag "drill") can be told that its clock is wrong. There is no
// flag and no variable in what is shipped, so nobody can move the end of a grant by one. It may import nothing of ACP.
package wallclock
