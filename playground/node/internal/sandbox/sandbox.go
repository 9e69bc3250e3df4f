package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// InitCommand is the argument with which the running program has to call Init.
const InitCommand = "init"

// Config describes a sandbox.
type Config struct {
	// Name is the host name.
	Name string
	// Dir is a folder of the machine that the sandbox sees, writable, as /node. Its folders log and var become /var/log and /var/lib.
	Dir string
	// Packages is a tree of unpacked packages, which the sandbox sees below /usr together with the machine's own.
	Packages string
	// Folders are folders of the machine that the sandbox sees, read-only: path inside to path of the machine.
	Folders map[string]string
	// Path is the program, as seen inside, that runs in the sandbox; when it ends, the sandbox ends.
	Path string
	Args []string
	Env  []string
	// Resolver is the content of /etc/resolv.conf.
	Resolver string
	// Files is the number of files that Start passes to the program. Start sets it.
	Files int
}

// Sandbox is a running sandbox.
type Sandbox struct {
	config   Config
	process  *os.Process
	lifeline *os.File // closing it ends the sandbox
	ended    chan struct{}
	state    *os.ProcessState
	log      string
}

// record contains the information that a later run needs to remove the sandbox of this run.
type record struct {
	Name    string   `json:"name"`
	Cgroups []string `json:"cgroups"`
	// Controllers are those that were enabled for the node in the root cgroup.
	Controllers []string `json:"controllers,omitempty"`
	// PID is that of the sandbox's first process, with the clock tick at which it started.
	PID int `json:"pid"`
}

func recordPath(dir string) string { return filepath.Join(dir, "sandbox.json") }

// Start starts a sandbox, removing what an earlier one in the same folder left. Connect is called with the process id of its first process, before its program
// starts, to connect its network. Files are passed to the program from descriptor 4 on; descriptor 3 reaches its end when the program has to end.
func Start(c Config, connect func(pid int) error, files ...*os.File) (_ *Sandbox, err error) {
	if err := Remove(c.Dir, c.Name); err != nil {
		return nil, err
	}
	for _, dir := range []string{"log", "var", "root"} {
		if err := os.MkdirAll(filepath.Join(c.Dir, dir), 0o755); err != nil {
			return nil, fmt.Errorf("make the folder of the node: %w", err)
		}
	}
	made, enabled, err := makeCgroups(cgroupName(c.Dir, c.Name))
	rec := record{Name: c.Name, Cgroups: made, Controllers: enabled}
	if writeErr := writeJSON(recordPath(c.Dir), rec); err == nil {
		err = writeErr
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, Remove(c.Dir, c.Name))
		}
	}()
	if err != nil {
		return nil, err
	}
	c.Files = len(files)
	if err := writeJSON(filepath.Join(c.Dir, "config.json"), c); err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	logPath := filepath.Join(c.Dir, "log", "sandbox.log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		write.Close()
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command("/proc/self/exe", InitCommand, filepath.Join(c.Dir, "config.json"))
	cmd.ExtraFiles = append([]*os.File{read}, files...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		// When the first process of a PID namespace ends, the kernel kills all others, so no process outlives this program. Go
		// also sends the signal at once to a child that does not see this process as its parent; the kernel ignores it for the
		// first process of a namespace.
		Pdeathsig: syscall.SIGKILL,
		Setsid:    true,
	}
	if err := startOnLastingThread(cmd); err != nil {
		write.Close()
		return nil, fmt.Errorf("make namespaces: %w", err)
	}
	s := &Sandbox{config: c, process: cmd.Process, lifeline: write, ended: make(chan struct{}), log: logPath}
	go func() {
		_ = cmd.Wait() // the state contains the exit status
		s.state = cmd.ProcessState
		close(s.ended)
	}()
	defer func() {
		if err != nil {
			_ = s.end()
		}
	}()
	rec.PID = cmd.Process.Pid
	if err := writeJSON(recordPath(c.Dir), rec); err != nil {
		return nil, err
	}
	if err := made.add(cmd.Process.Pid); err != nil {
		return nil, err
	}
	if err := connect(cmd.Process.Pid); err != nil {
		return nil, err
	}
	if _, err := write.Write([]byte{1}); err != nil { // lets Init continue
		return nil, fmt.Errorf("start the node: %w", err)
	}
	return s, nil
}

// PID returns the process ID of the sandbox's first process.
func (s *Sandbox) PID() int { return s.process.Pid }

// Ended is closed when the sandbox has ended.
func (s *Sandbox) Ended() <-chan struct{} { return s.ended }

// Failure returns how a sandbox ended that was not stopped; nil otherwise.
func (s *Sandbox) Failure() error {
	<-s.ended
	return fmt.Errorf("the node %s ended unexpectedly (%s); the logs are in %s", s.config.Name, s.state, filepath.Dir(s.log))
}

// Stop ends the sandbox and removes its resources outside of its folder.
func (s *Sandbox) Stop() error {
	return errors.Join(s.end(), Remove(s.config.Dir, s.config.Name))
}

func (s *Sandbox) end() error {
	_ = s.lifeline.Close()
	select {
	case <-s.ended:
		return nil
	case <-time.After(5 * time.Second):
	}
	_ = s.process.Kill() // the process may have ended meanwhile
	select {
	case <-s.ended:
		return nil
	case <-time.After(20 * time.Second):
		return fmt.Errorf("the first process of the node %s (%d) does not end", s.config.Name, s.process.Pid)
	}
}

// removeTimeout bounds how long the kernel may take to release a cgroup whose processes were killed.
const removeTimeout = 20 * time.Second

// Remove removes the resources, outside of its folder, of a sandbox whose program has ended.
func Remove(dir, name string) error {
	var rec record
	data, err := os.ReadFile(recordPath(dir))
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("read what an earlier run left: %w", err)
	default:
		// A damaged record counts as empty, because cgroups are also found by the name of the node.
		_ = json.Unmarshal(data, &rec)
	}
	left, err := leftoverCgroups(cgroupName(dir, name), rec.Cgroups)
	if err != nil {
		return err
	}
	if err := left.remove(removeTimeout); err != nil {
		return err
	}
	disableControllers(rec.Controllers)
	if err := os.Remove(recordPath(dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	temp := path + ".new"
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// lastingThread starts all sandboxes on one thread that never ends, because the kernel sends the parent-death signal when the thread
// that forked ends.
var lastingThread = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func startOnLastingThread(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	lastingThread() <- func() { done <- cmd.Start() }
	return <-done
}
