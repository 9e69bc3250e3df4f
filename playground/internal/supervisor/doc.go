// Package supervisor starts, watches, restarts and ends the processes of one playground run.
//
// It owns the state folder's lock, the pid files, the log files of the processes and the control socket. It knows
// nothing of what the processes do: that is told to it in a Spec. It runs on Linux only, because it relies on the
// parent-death signal and on /proc to leave nothing behind.
package supervisor
