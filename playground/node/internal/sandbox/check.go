package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Check returns an error that names everything that this machine lacks for a sandbox whose folder is below dir, as far as it can be
// determined without starting one.
func Check(dir string) error {
	if runtime.GOOS != "linux" {
		return errors.New("a real node needs Linux")
	}
	if os.Geteuid() != 0 {
		return errors.New(
			"a real node needs root: it makes namespaces, cgroups and mounts, and loads BPF programs (run it with sudo, " +
				"or `make run` without REAL=1, which needs no root)",
		)
	}
	var all []error
	known, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return err
	}
	for _, kind := range []string{"overlay", "bpf", "tmpfs", "proc", "sysfs", "devpts", "cgroup2"} {
		// The module overlay may be loaded when it is first used.
		if kind != "overlay" && !slices.Contains(strings.Fields(string(known)), kind) {
			all = append(all, fmt.Errorf("this kernel has no filesystem %s", kind))
		}
	}
	for _, ns := range []string{"mnt", "net", "pid", "uts", "ipc", "cgroup"} {
		if !exists("/proc/self/ns/" + ns) {
			all = append(all, fmt.Errorf("this kernel has no %s namespaces", ns))
		}
	}
	if _, err := hierarchies(); err != nil {
		all = append(all, err)
	}
	if err := checkControllers(); err != nil {
		all = append(all, err)
	}
	if err := checkBPF(); err != nil {
		all = append(all, err)
	}
	if err := checkFolder(dir); err != nil {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// checkControllers checks that the controllers that kubelet requires exist in version 1 or 2.
func checkControllers() error {
	trees, err := hierarchies()
	if err != nil {
		return nil //nolint:nilerr // Check reports it
	}
	var have []string
	for _, h := range trees {
		if !h.v2() {
			have = append(have, strings.Split(h.controllers, ",")...)
			continue
		}
		available, err := os.ReadFile(h.parent + "/cgroup.controllers")
		if err != nil {
			return fmt.Errorf("read the cgroup controllers: %w", err)
		}
		have = append(have, strings.Fields(string(available))...)
	}
	for _, c := range neededControllers {
		if !slices.Contains(have, c) {
			return fmt.Errorf("this machine has no cgroup controller %s that a node could use", c)
		}
	}
	return nil
}

// checkBPF creates and closes a BPF map, which Cilium must be permitted to do.
func checkBPF() error {
	attr := struct{ kind, keySize, valueSize, entries, flags uint32 }{2 /* array */, 4, 4, 1, 0}
	size := unsafe.Sizeof(attr)
	fd, _, errno := unix.Syscall(unix.SYS_BPF, 0 /* BPF_MAP_CREATE */, uintptr(unsafe.Pointer(&attr)), size) //nolint:gosec // it needs an address
	if errno != 0 {
		return fmt.Errorf("this process may not use BPF, or the kernel has none: %w", errno)
	}
	return unix.Close(int(fd))
}

// checkFolder returns an error for filesystems on which containerd cannot store the layers of images.
func checkFolder(dir string) error {
	if strings.ContainsAny(dir, ":,\\") {
		return fmt.Errorf("the folder %s has a character in its name that mount options cannot have", dir)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	switch st.Type {
	case unix.OVERLAYFS_SUPER_MAGIC, unix.NFS_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC, unix.V9FS_MAGIC:
		return fmt.Errorf("%s is on a filesystem that cannot hold the layers of images; choose a folder on ext4, xfs, btrfs or tmpfs with --state-dir", dir)
	}
	const need = 2 << 30
	if free := int64(st.Bavail) * st.Bsize; free < need {
		return fmt.Errorf("%s has %d MB left; a node needs 2000", dir, free>>20)
	}
	return nil
}
