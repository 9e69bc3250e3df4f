// Package supervisor starts, monitors, restarts and stops the processes of one playground run.
//
// The package manages the lock of the state folder, the pid files, the log files of the processes and the control socket. It does
// not depend on the purpose of the processes, which callers describe in a Spec. It runs on Linux only, because it relies on the
// parent-death signal and on /proc to leave no process behind.
package supervisor
