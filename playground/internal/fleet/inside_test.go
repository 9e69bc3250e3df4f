package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// insideEnv is the environment variable with which the test binary runs as the first process of a separate network namespace.
const insideEnv = "ACP_TEST_INSIDE"

func TestMain(m *testing.M) {
	if text := os.Getenv(insideEnv); text != "" {
		if err := inside(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "acp-programs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs.dir, programs.built = dir, map[string]bool{}
	return m.Run()
}

// island is a network namespace whose addresses cannot be reached from outside. Its only connection to the outside is a Unix
// socket, as with a firewall that allows one outgoing connection and no incoming one.
type island struct {
	// Dir is the folder of the programs' logs.
	Dir string `json:"dir"`
	// Gate is the inner address that is forwarded to Socket.
	Gate, Socket string
	// Programs are started in this order.
	Programs []program `json:"programs"`
}

type program struct {
	Name string   `json:"name"`
	Path string   `json:"path"`
	Args []string `json:"args"`
}

// start runs the island until the test ends.
func (i island) start(t *testing.T) {
	t.Helper()
	text, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), insideEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Getuid() != 0 { // a process with its own user namespace may give it a network
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	alive, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("a network namespace is needed (as root, or with unprivileged user namespaces): %v", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(alive.Close(), cmd.Wait()); err != nil {
			t.Error(err)
		}
	})
}

// inside runs in the new network namespace until its standard input ends.
func inside(text string) error {
	runtime.LockOSThread() // the kernel ends the children with this thread
	var i island
	if err := json.Unmarshal([]byte(text), &i); err != nil {
		return err
	}
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("bring the loopback up: %w", err)
	}
	gate, err := net.Listen("tcp", i.Gate)
	if err != nil {
		return err
	}
	go relay(gate, "unix", i.Socket, nil)
	var running []*exec.Cmd
	for _, p := range i.Programs {
		log, err := os.Create(filepath.Join(i.Dir, p.Name+".log"))
		if err != nil {
			return err
		}
		cmd := exec.Command(p.Path, p.Args...)
		cmd.Stdout, cmd.Stderr = log, log
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			return err
		}
		running = append(running, cmd)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // its end is all that matters
	for _, cmd := range running {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	}
	return nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// relay forwards each connection to the address while open returns true. A nil open always allows.
func relay(l net.Listener, network, address string, open *gate) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial(network, address)
		if err != nil || !open.enter(in, out) {
			in.Close()
			if out != nil {
				out.Close()
			}
			continue
		}
		for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
			go func() {
				_, _ = io.Copy(way[0], way[1]) // either end may go at any time
				way[0].Close()
				way[1].Close()
			}()
		}
	}
}
