package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// lifeline is a file descriptor that reaches its end when the program that started the sandbox ends.
const lifeline = 3

// Init is the first process of a sandbox. It waits until the cgroups and the network were created, prepares the filesystem, starts the
// sandbox's program, and then reaps processes whose parents have ended. It returns the exit status of the program.
func Init(configPath string) (int, error) {
	// A cgroup namespace applies to the thread that creates it, and to the processes that this thread starts.
	runtime.LockOSThread()
	data, err := os.ReadFile(configPath)
	if err != nil {
		return 0, err
	}
	var c Config
	if err := json.Unmarshal(data, &c); err != nil {
		return 0, fmt.Errorf("read the configuration: %w", err)
	}
	if n, err := unix.Read(lifeline, make([]byte, 1)); err != nil {
		return 0, fmt.Errorf("read from the program that started the node: %w", err)
	} else if n != 1 {
		return 0, errors.New("the program that started the node is gone")
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return 0, fmt.Errorf("make a cgroup namespace: %w", err)
	}
	if err := unix.Sethostname([]byte(c.Name)); err != nil {
		return 0, fmt.Errorf("set the host name: %w", err)
	}
	if err := layOut(c); err != nil {
		return 0, fmt.Errorf("lay out the filesystem of the node: %w", err)
	}
	return runAndReap(c)
}

func runAndReap(c Config) (int, error) {
	fds := []uintptr{0, 1, 2}
	for n := range 1 + c.Files { // the lifeline and the files that were passed to Start
		fds = append(fds, uintptr(lifeline+n))
	}
	pid, err := syscall.ForkExec(c.Path, append([]string{c.Path}, c.Args...), &syscall.ProcAttr{Dir: "/", Env: c.Env, Files: fds})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", c.Path, err)
	}
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for %s: %w", c.Path, err)
		case ended == pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		case ended == pid:
			return status.ExitStatus(), nil
		}
	}
}

// mount is one mount, below the new root.
type mount struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

// layOut replaces the root of the process by an empty filesystem in memory, in which the machine's programs are mounted read-only.
// Writes go to memory or to the node's folder.
func layOut(c Config) error {
	root := filepath.Join(c.Dir, "root")
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", root, "tmpfs", unix.MS_NOSUID, "mode=755,size=1g"); err != nil {
		return fmt.Errorf("mount a filesystem in memory: %w", err)
	}
	if err := layOutPrograms(root, c); err != nil {
		return err
	}
	if err := layOutKernel(root); err != nil {
		return err
	}
	if err := layOutDevices(root); err != nil {
		return err
	}
	if err := layOutFiles(root, c); err != nil {
		return err
	}
	if err := layOutCgroups(root); err != nil {
		return err
	}
	// The old root is mounted over the new one and then unmounted.
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the machine's root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	if err := shieldTunables(); err != nil {
		return err
	}
	// kubelet and Cilium propagate mounts to pods.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share mounts: %w", err)
	}
	return nil
}

func layOutPrograms(root string, c Config) error {
	// If /bin is a link to /usr/bin on the machine, it is one in the node.
	for _, dir := range []string{"bin", "sbin", "lib", "lib32", "lib64"} {
		if target, err := os.Readlink("/" + dir); err == nil {
			if err := os.Symlink(target, filepath.Join(root, dir)); err != nil {
				return err
			}
		} else if exists("/" + dir) {
			if err := bind("/"+dir, filepath.Join(root, dir), true); err != nil {
				return err
			}
		}
	}
	usr := filepath.Join(root, "usr")
	if err := os.MkdirAll(usr, 0o755); err != nil {
		return err
	}
	// Folders with a colon or a comma in their names cannot be named in these options.
	lower := "lowerdir=" + filepath.Join(c.Packages, "usr") + ":/usr"
	if err := unix.Mount("overlay", usr, "overlay", unix.MS_RDONLY, lower); err != nil {
		return fmt.Errorf("mount the unpacked packages over /usr (does this kernel have overlayfs?): %w", err)
	}
	for inside, outside := range c.Folders {
		if err := bind(outside, filepath.Join(root, inside), true); err != nil {
			return err
		}
	}
	return nil
}

func layOutKernel(root string) error {
	for _, m := range []mount{
		{"proc", "proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"sysfs", "sys", "sysfs", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"bpf", "sys/fs/bpf", "bpf", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"tmpfs", "run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755,size=1g"},
		{"tmpfs", "tmp", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777,size=1g"},
	} {
		target := filepath.Join(root, m.target)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.source, target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s (does this kernel have it?): %w", m.kind, err)
		}
	}
	return nil
}

func layOutDevices(root string) error {
	dev := filepath.Join(root, "dev")
	if err := os.MkdirAll(dev, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID, "mode=755,size=64m"); err != nil {
		return err
	}
	for _, device := range []string{"null", "zero", "full", "random", "urandom", "tty", "kmsg"} {
		if !exists("/dev/" + device) {
			continue
		}
		target := filepath.Join(dev, device)
		if err := os.WriteFile(target, nil, 0o666); err != nil {
			return err
		}
		if err := unix.Mount("/dev/"+device, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("pass on /dev/%s: %w", device, err)
		}
	}
	for _, dir := range []string{"pts", "shm", "mqueue"} {
		if err := os.MkdirAll(filepath.Join(dev, dir), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount(
		"devpts",
		filepath.Join(dev, "pts"),
		"devpts",
		unix.MS_NOSUID|unix.MS_NOEXEC,
		"newinstance,ptmxmode=0666,mode=0620,gid=5",
	); err != nil {
		return fmt.Errorf("mount terminals: %w", err)
	}
	if err := unix.Mount("tmpfs", filepath.Join(dev, "shm"), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777,size=64m"); err != nil {
		return err
	}
	for link, target := range map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"} {
		if err := os.Symlink(target, filepath.Join(dev, link)); err != nil {
			return err
		}
	}
	return nil
}

func layOutFiles(root string, c Config) error {
	if err := bind(c.Dir, filepath.Join(root, "node"), false); err != nil {
		return err
	}
	for inside, dir := range map[string]string{"var/log": "log", "var/lib": "var"} {
		if err := bind(filepath.Join(c.Dir, dir), filepath.Join(root, inside), false); err != nil {
			return err
		}
	}
	for _, dir := range []string{"etc", "root", "opt/cni/bin", "run/netns", "run/lock", "var/tmp"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.Symlink("/run", filepath.Join(root, "var/run")); err != nil {
		return err
	}
	for file, content := range map[string]string{ //nolint:gosec // nobody has a password
		"etc/passwd":      "root:x:0:0:root:/root:/usr/sbin/nologin\n",
		"etc/group":       "root:x:0:\ntty:x:5:\n",
		"etc/hosts":       "127.0.0.1 localhost\n",
		"etc/hostname":    c.Name + "\n",
		"etc/resolv.conf": c.Resolver,
		"etc/os-release":  "ID=acp-node\nPRETTY_NAME=\"ACP playground node\"\n",
		"etc/machine-id":  fmt.Sprintf("%032x\n", c.Name)[:32] + "\n",
	} {
		if err := os.WriteFile(filepath.Join(root, file), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// layOutCgroups mounts the cgroup hierarchies of the machine. In the cgroup namespace, the root of each is the node's own cgroup.
func layOutCgroups(root string) error {
	trees, err := hierarchies()
	if err != nil {
		return err
	}
	base := filepath.Join(root, cgroupRoot)
	if len(trees) == 1 && trees[0].v2() {
		if err := unix.Mount("cgroup2", base, "cgroup2", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("mount cgroups: %w", err)
		}
		return makeRoomForPods(base)
	}
	if err := unix.Mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755,size=1m"); err != nil {
		return err
	}
	for _, h := range trees {
		if h.v2() {
			continue // Cilium mounts version 2 for itself; containers are in version 1 on such a machine
		}
		name, data := h.controllers, h.controllers
		if len(name) > 5 && name[:5] == "name=" {
			name, data = name[5:], "none,"+name
		}
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("cgroup", dir, "cgroup", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, data); err != nil {
			return fmt.Errorf("mount the cgroups of %s: %w", name, err)
		}
	}
	return nil
}

// makeRoomForPods moves this process to a cgroup below the node's own, because in version 2 a cgroup that enables controllers for its
// children, as kubelet requires, must not contain processes.
func makeRoomForPods(base string) error {
	leaf := filepath.Join(base, initCgroup)
	if err := os.Mkdir(leaf, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte("0"), 0o644); err != nil {
		return fmt.Errorf("make room for the cgroups of pods: %w", err)
	}
	for _, c := range neededControllers {
		if err := os.WriteFile(filepath.Join(base, "cgroup.subtree_control"), []byte("+"+c), 0o644); err != nil {
			return fmt.Errorf("enable the cgroup controller %s for pods: %w", c, err)
		}
	}
	return nil
}

// tunables contains the settings of the kernel that kubelet and Cilium would change for the whole machine. In the node, files with
// the wanted values are mounted over the real ones.
var tunables = map[string]string{
	"vm/overcommit_memory":             "1",
	"vm/panic_on_oom":                  "0",
	"kernel/panic":                     "10",
	"kernel/panic_on_oops":             "1",
	"kernel/keys/root_maxkeys":         "1000000",
	"kernel/keys/root_maxbytes":        "25000000",
	"kernel/timer_migration":           "0",
	"kernel/unprivileged_bpf_disabled": "1",
}

// shieldTunables makes the kernel's settings read-only, apart from those of the node's own network.
func shieldTunables() error {
	const sys, network = "/proc/sys", "/proc/sys/net"
	if err := unix.Mount(sys, sys, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("shield the kernel's settings: %w", err)
	}
	if err := unix.Mount(network, network, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("shield the kernel's settings: %w", err)
	}
	dir := "/run/tunables"
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for name, value := range tunables {
		if !exists(filepath.Join(sys, name)) {
			continue
		}
		file := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(file, filepath.Join(sys, name), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("shield %s: %w", name, err)
		}
	}
	if err := unix.Mount("", sys, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("shield the kernel's settings: %w", err)
	}
	return nil
}

// bind mounts a folder of the machine below the new root.
func bind(source, target string, readOnly bool) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", source, err)
	}
	if !readOnly {
		return nil
	}
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("make %s read-only: %w", source, err)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
