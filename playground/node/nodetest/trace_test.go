package nodetest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// machine is what a node could leave on the machine. Each entry has a sentence that names it.
type machine map[string]bool

// takeMachine lists the machine's mounts, links, routes, cgroups, kernel settings and the files at the places where nodes elsewhere keep
// theirs.
func takeMachine(t *testing.T) machine {
	t.Helper()
	m := machine{}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			m["mount on "+fields[4]+" of "+fields[2]] = true
		}
	}
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		m["link "+l.Attrs().Name] = true
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range routes {
		m["route "+r.String()] = true
	}
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/bpf", "/run/netns", "/etc/cni", "/opt/cni", "/var/lib/kubelet", "/var/lib/cni",
		"/var/lib/containerd", "/var/lib/cilium", "/var/lib/etcd", "/var/log/pods", "/var/log/containers", "/run/containerd", "/run/cilium"} {
		walk(root, func(path string, d fs.DirEntry) {
			if d.IsDir() || root != "/sys/fs/cgroup" {
				m["file "+path] = true
			}
		})
	}
	for setting, value := range settings() {
		m["setting "+setting+" = "+value] = true
	}
	return m
}

// walk visits a tree that others change meanwhile.
func walk(root string, visit func(string, fs.DirEntry)) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			visit(path, d)
		}
		return nil
	})
}

// settings returns the settings of the kernel, apart from those that count something.
func settings() map[string]string {
	out := map[string]string{}
	walk("/proc/sys", func(path string, d fs.DirEntry) {
		switch name := strings.TrimPrefix(path, "/proc/sys/"); {
		case d.IsDir(), strings.HasPrefix(name, "fs/dentry-state"), strings.HasPrefix(name, "fs/inode-"), strings.HasPrefix(name, "fs/file-nr"),
			strings.HasPrefix(name, "fs/quota/"), strings.HasPrefix(name, "kernel/random/"), strings.HasPrefix(name, "kernel/ns_last_pid"),
			strings.HasPrefix(name, "kernel/pty/nr"), strings.HasPrefix(name, "fs/aio-nr"), strings.HasSuffix(name, "nf_conntrack_count"),
			strings.HasPrefix(name, "net/ipv6/conf/"), strings.HasPrefix(name, "vm/stat_refresh"), strings.HasPrefix(name, "net/ipv4/route/flush"):
		default:
			if value, err := os.ReadFile(path); err == nil {
				out[name] = strings.Join(strings.Fields(string(value)), " ")
			}
		}
	})
	return out
}

// differences lists what only one of two states of the machine has, apart from cgroups that are gone: other programs remove their own, and
// a cgroup with processes cannot be removed.
func differences(before, after machine) []string {
	var out []string
	for _, entry := range slices.Sorted(maps.Keys(after)) {
		if !before[entry] {
			out = append(out, "left behind: "+entry)
		}
	}
	for _, entry := range slices.Sorted(maps.Keys(before)) {
		if !after[entry] && !strings.HasPrefix(entry, "file /sys/fs/cgroup/") {
			out = append(out, "gone: "+entry)
		}
	}
	return out
}

// belongings are what belongs to a running node, by names that are not used again: processes, namespaces and BPF programs.
type belongings struct {
	processes  map[string]string // pid and start time: command
	namespaces map[string]bool
	programs   map[uint32]bool
	// memory is the resident memory of the processes, in bytes; of a page that several share, each has a part.
	memory int64
}

// belongingsOf lists what belongs to the nodes of a state folder. Their cgroups are read from the records there.
func belongingsOf(t *testing.T, state string, programsBefore map[uint32]bool) belongings {
	t.Helper()
	records, err := filepath.Glob(filepath.Join(state, "*", "node", "sandbox.json"))
	if err != nil || len(records) == 0 {
		t.Fatalf("there is no record of a node below %s (%v)", state, err)
	}
	var cgroups []string
	for _, file := range records {
		var record struct{ Cgroups []string }
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &record)
		}
		if err != nil {
			t.Fatal(err)
		}
		cgroups = append(cgroups, record.Cgroups...)
	}
	b := belongings{processes: map[string]string{}, namespaces: map[string]bool{}, programs: map[uint32]bool{}}
	own := namespacesOf("self")
	walk("/sys/fs/cgroup", func(path string, d fs.DirEntry) {
		within := func(cgroup string) bool { return strings.HasPrefix(path, cgroup+"/") }
		if d.Name() != "cgroup.procs" || !slices.ContainsFunc(cgroups, within) {
			return
		}
		members, err := os.ReadFile(path)
		if err != nil {
			return
		}
		for _, pid := range strings.Fields(string(members)) {
			command, err := os.ReadFile(filepath.Join("/proc", pid, "comm"))
			if err != nil {
				continue
			}
			process := pid + " " + startTime(pid)
			if _, seen := b.processes[process]; !seen {
				b.memory += memoryOf(pid)
			}
			b.processes[process] = strings.TrimSpace(string(command))
			for _, ns := range namespacesOf(pid) {
				if !slices.Contains(own, ns) {
					b.namespaces[ns] = true
				}
			}
		}
	})
	for id := range bpfPrograms() {
		if !programsBefore[id] {
			b.programs[id] = true
		}
	}
	return b
}

// still lists what of a node's belongings is there now.
func (b belongings) still() []string {
	var out []string
	for process, command := range b.processes {
		pid, started, _ := strings.Cut(process, " ")
		if startTime(pid) == started {
			out = append(out, "process "+pid+" "+command)
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return []string{err.Error()}
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		for _, ns := range namespacesOf(e.Name()) {
			if b.namespaces[ns] {
				out = append(out, "namespace "+ns+" of process "+e.Name())
			}
		}
	}
	now := bpfPrograms()
	for id := range b.programs {
		if now[id] {
			out = append(out, fmt.Sprintf("BPF program %d", id))
		}
	}
	slices.Sort(out)
	return out
}

func namespacesOf(pid string) []string {
	var out []string
	for _, kind := range []string{"mnt", "net", "pid", "uts", "ipc", "cgroup"} {
		if ns, err := os.Readlink(filepath.Join("/proc", pid, "ns", kind)); err == nil {
			out = append(out, ns)
		}
	}
	return out
}

// memoryOf returns the resident memory of a process in bytes, zero when it has ended.
func memoryOf(pid string) int64 {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "smaps_rollup"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Pss:" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return 0
			}
			return kilobytes << 10
		}
	}
	return 0
}

// startTime distinguishes processes that had the same id; it is empty for one that has ended.
func startTime(pid string) string {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19]
}

// bpfPrograms lists the BPF programs that the kernel holds.
func bpfPrograms() map[uint32]bool {
	out := map[uint32]bool{}
	attr := struct{ start, next, flags uint32 }{}
	for {
		const progGetNextID = 11
		if _, _, errno := unix.Syscall(unix.SYS_BPF, progGetNextID, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr)); errno != 0 {
			return out
		}
		out[attr.next] = true
		attr.start = attr.next
	}
}
