package sandbox

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cgroupRoot is the mount point of cgroups.
const cgroupRoot = "/sys/fs/cgroup"

// CgroupPrefix is the prefix of the name of every cgroup that this package creates.
const CgroupPrefix = "acp-node-"

// cgroupName returns the name of the cgroups of a sandbox. It contains a hash of the sandbox's folder, so that leftovers are recognized
// without a record, and sandboxes of one name in two folders have different cgroups.
func cgroupName(dir, name string) string {
	sum := sha256.Sum256([]byte(dir))
	return CgroupPrefix + name + "-" + hex.EncodeToString(sum[:4])
}

// hierarchy is a cgroup hierarchy of the machine.
type hierarchy struct {
	// controllers are the controllers of a tree of version 1, or the tree's name ("name=systemd"); empty for version 2.
	controllers string
	// parent is the folder in which the node's cgroup is created.
	parent string
}

func (h hierarchy) v2() bool { return h.controllers == "" }

// hierarchies lists the mounted trees in which this process may make cgroups.
func hierarchies() ([]hierarchy, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	own, err := ownCgroups()
	if err != nil {
		return nil, err
	}
	var out []hierarchy
	for line := range strings.Lines(string(mounts)) {
		before, after, found := strings.Cut(line, " - ")
		fields, rest := strings.Fields(before), strings.Fields(after)
		if !found || len(fields) < 5 || len(rest) < 3 || !strings.HasPrefix(fields[4], cgroupRoot) {
			continue
		}
		switch point, kind := fields[4], rest[0]; kind {
		case "cgroup2":
			// Version 2 allows no processes in a cgroup that gives controllers to its children, apart from the root. So the node's
			// cgroup is a child of the root, and not of the cgroup of whoever calls.
			out = append(out, hierarchy{parent: point})
		case "cgroup":
			names := superOptions(rest[2])
			if path, ok := own[names]; ok {
				out = append(out, hierarchy{controllers: names, parent: filepath.Join(point, path)})
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no cgroups are mounted below %s", cgroupRoot)
	}
	return out, nil
}

// superOptions returns the controllers of a mounted tree of version 1, in the form of /proc/self/cgroup.
func superOptions(options string) string {
	var names []string
	for _, o := range strings.Split(options, ",") {
		switch o {
		case "rw", "ro", "xattr", "clone_children", "cpuset_v2_mode", "noprefix", "favordynmods":
		default:
			if !strings.HasPrefix(o, "release_agent=") {
				names = append(names, o)
			}
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// ownCgroups returns this process's cgroup in each tree, by the tree's controllers; that of version 2 has none.
func ownCgroups() (map[string]string, error) {
	f, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) == 3 {
			names := strings.Split(parts[1], ",")
			slices.Sort(names)
			out[strings.Join(names, ",")] = parts[2]
		}
	}
	return out, lines.Err()
}

// cgroups are a node's cgroups: one folder in each tree.
type cgroups []string

// initCgroup is the cgroup, below the node's own, of the processes that are in no pod; see makeRoomForPods.
const initCgroup = "init"

// neededControllers are the controllers of version 2 that kubelet insists on.
var neededControllers = []string{"cpu", "cpuset", "memory", "pids"}

// makeCgroups creates cgroups with a name. On a machine with version 2 only, it enables the controllers that kubelet
// needs and that the root does not give to its children; they are returned, to be disabled again.
func makeCgroups(name string) (made cgroups, enabled []string, err error) {
	trees, err := hierarchies()
	if err != nil {
		return nil, nil, fmt.Errorf("find the cgroups of this machine: %w", err)
	}
	for _, h := range trees {
		dir := filepath.Join(h.parent, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return made, enabled, fmt.Errorf("make a cgroup: %w", err)
		}
		made = append(made, dir)
		if h.v2() && len(trees) == 1 {
			if enabled, err = enableControllers(h.parent, dir); err != nil {
				return made, enabled, err
			}
		}
		// No process can run in a new cpuset, because it is empty.
		if slices.Contains(strings.Split(h.controllers, ","), "cpuset") {
			if err := fillCpuset(h.parent, dir); err != nil {
				return made, enabled, err
			}
		}
	}
	return made, enabled, nil
}

func enableControllers(parent, dir string) (enabled []string, err error) {
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return nil, fmt.Errorf("read the controllers of a cgroup: %w", err)
	}
	for _, c := range neededControllers {
		if slices.Contains(strings.Fields(string(available)), c) {
			continue
		}
		if err := os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+c), 0o644); err != nil {
			return enabled, fmt.Errorf("enable the cgroup controller %s for the node: %w", c, err)
		}
		enabled = append(enabled, c)
	}
	return enabled, nil
}

// disableControllers reverts enableControllers. The kernel refuses to disable a controller that others use by now.
func disableControllers(enabled []string) {
	for _, c := range enabled {
		_ = os.WriteFile(filepath.Join(cgroupRoot, "cgroup.subtree_control"), []byte("-"+c), 0o644)
	}
}

func fillCpuset(parent, dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), value, 0o644)
		}
		if err != nil {
			return fmt.Errorf("set up a cpuset: %w", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.clone_children"), []byte("1"), 0o644); err != nil {
		return fmt.Errorf("set up a cpuset: %w", err)
	}
	return nil
}

// add moves a process into the cgroups.
func (c cgroups) add(pid int) error {
	for _, dir := range c {
		if leaf := filepath.Join(dir, initCgroup); exists(leaf) {
			dir = leaf
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("move the node into its cgroup: %w", err)
		}
	}
	return nil
}

// leftoverCgroups returns the existing cgroups with a name: those at the paths that makeCgroups would use, and the recorded ones,
// because an earlier run may have been started from another cgroup.
func leftoverCgroups(name string, recorded []string) (cgroups, error) {
	trees, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var out cgroups
	for _, h := range trees {
		recorded = append(recorded, filepath.Join(h.parent, name))
	}
	slices.Sort(recorded)
	for _, dir := range slices.Compact(recorded) {
		// A damaged record must not make this remove another program's cgroup.
		if filepath.Base(dir) != name || !strings.HasPrefix(dir, cgroupRoot+"/") {
			continue
		}
		if _, err := os.Stat(dir); err == nil {
			out = append(out, dir)
		}
	}
	return out, nil
}

// remove kills the processes in the cgroups and removes the cgroups with those below them.
func (c cgroups) remove(within time.Duration) error {
	deadline := time.Now().Add(within)
	for {
		var last error
		for _, dir := range c {
			if err := removeTree(dir); err != nil {
				last = err
			}
		}
		if last == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("remove the cgroups of the node: %w", last)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func removeTree(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Reverse(dirs) // children first
	var last error
	for _, dir := range dirs {
		killMembers(dir)
		if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			last = fmt.Errorf("%s: %w", dir, err)
		}
	}
	return last
}

func killMembers(dir string) {
	members, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return // the cgroup was removed
	}
	for _, line := range strings.Fields(string(members)) {
		if pid, err := strconv.Atoi(line); err == nil && pid > 1 && pid != os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the process may have ended meanwhile
		}
	}
}
