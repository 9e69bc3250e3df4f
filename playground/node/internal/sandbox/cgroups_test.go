package sandbox

import (
	"path/filepath"
	"slices"
	"testing"
)

func TestControllersOfAMount(t *testing.T) {
	for _, c := range []struct{ reason, options, want string }{
		{"one controller", "rw,memory", "memory"},
		{"two together, in the order of /proc/self/cgroup", "rw,cpuacct,cpu", "cpu,cpuacct"},
		{"a tree with a name", "rw,xattr,name=systemd", "name=systemd"},
		{"what is no controller is left out", "rw,clone_children,release_agent=/bin/x,cpuset", "cpuset"},
	} {
		if got := superOptions(c.options); got != c.want {
			t.Errorf("%s: superOptions(%q) = %q, want %q", c.reason, c.options, got, c.want)
		}
	}
}

func TestCgroupNamesFollowFromTheFolder(t *testing.T) {
	name := cgroupName("/a/node", "node")
	if later := cgroupName("/a/node", "node"); later != name {
		t.Errorf("a later run looks for the cgroups %q, want those of an earlier one, %q", later, name)
	}
	if name == cgroupName("/b/node", "node") {
		t.Error("nodes of one name in two folders must not remove each other")
	}
}

// A damaged or forged record must not make this package kill and remove what is not the node's.
func TestRecordNamesNoOtherCgroups(t *testing.T) {
	name := cgroupName("/a/node", "node")
	for _, recorded := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/memory/system.slice", "/etc", filepath.Join("/tmp", name)} {
		found, err := leftoverCgroups(name, []string{recorded})
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(found, recorded) {
			t.Errorf("%s would be removed", recorded)
		}
	}
}
