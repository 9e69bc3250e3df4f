package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrNotRunning means that a sandbox does not run.
var ErrNotRunning = errors.New("the node does not run")

// Run runs a program in the sandbox whose folder is dir, with this process's standard files, and returns its exit status.
func Run(dir string, env []string, args []string) (int, error) {
	data, err := os.ReadFile(recordPath(dir))
	if errors.Is(err, os.ErrNotExist) {
		return 0, ErrNotRunning
	}
	if err != nil {
		return 0, err
	}
	var rec record
	if err := json.Unmarshal(data, &rec); err != nil {
		return 0, fmt.Errorf("read %s: %w", recordPath(dir), err)
	}
	if rec.PID == 0 || syscall.Kill(rec.PID, 0) != nil {
		return 0, ErrNotRunning
	}
	status := 0
	err = onOwnThread(func() error {
		if err := cgroups(rec.Cgroups).add(0); err != nil { // this process itself, which only waits from now on
			return err
		}
		// The kernel lets a thread change its mount namespace only if it shares its root with no other thread.
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return err
		}
		for _, kind := range []string{"cgroup", "ipc", "uts", "net", "pid", "mnt"} {
			fd, err := unix.Open(filepath.Join("/proc", fmt.Sprint(rec.PID), "ns", kind), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return fmt.Errorf("find the %s namespace of the node: %w", kind, err)
			}
			err = unix.Setns(fd, 0)
			unix.Close(fd)
			if err != nil {
				return fmt.Errorf("enter the %s namespace of the node: %w", kind, err)
			}
		}
		path, err := lookIn(env, args[0])
		if err != nil {
			return err
		}
		pid, err := syscall.ForkExec(path, args, &syscall.ProcAttr{Dir: "/", Env: env, Files: []uintptr{0, 1, 2}})
		if err != nil {
			return fmt.Errorf("start %s: %w", path, err)
		}
		var ended syscall.WaitStatus
		for {
			if _, err := syscall.Wait4(pid, &ended, 0, nil); !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		if status = ended.ExitStatus(); ended.Signaled() {
			status = 128 + int(ended.Signal())
		}
		return nil
	})
	return status, err
}

// lookIn searches a program in the PATH of an environment, in the filesystem of the calling thread.
func lookIn(env []string, name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	for _, e := range env {
		if len(e) < 5 || e[:5] != "PATH=" {
			continue
		}
		for _, dir := range filepath.SplitList(e[5:]) {
			path := filepath.Join(dir, name)
			if st, err := os.Stat(path); err == nil && !st.IsDir() && st.Mode()&0o111 != 0 {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("the node has no program %s", name)
}
