package supervisor

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// The kernel sends the parent-death signal when the thread that forked ends, not when the process does. So one
// goroutine, locked to its thread for the life of the program, starts all children.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// start starts cmd in a process group of its own. The kernel kills it when this process dies.
func start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	done := make(chan error, 1)
	spawner() <- func() { done <- cmd.Start() }
	return <-done
}

// signalGroup signals the process group that start created for pid.
func signalGroup(pid int, sig syscall.Signal) error {
	return syscall.Kill(-pid, sig)
}

// openLog opens the log of a process for appending. It renames a large log once before that.
func openLog(path string) (*os.File, error) {
	const limit = 20 << 20
	if st, err := os.Stat(path); err == nil && st.Size() > limit {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}
