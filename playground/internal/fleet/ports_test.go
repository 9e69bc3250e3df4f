package fleet

import (
	"net"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/acp-io/acp/internal/freeport"
)

// TestChosenPortsAreNotAssigned checks that ports are free, differ, are kept for the next run, and are not among those that the kernel gives to
// other programs before the program of the fleet starts.
func TestChosenPortsAreNotAssigned(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ports.json")
	purposes := make([]string, 50)
	for i := range purposes {
		purposes[i] = "purpose " + strconv.Itoa(i)
	}
	ports, err := ChoosePorts(file, purposes)
	if err != nil {
		t.Fatal(err)
	}
	used := map[int]bool{}
	for purpose, port := range ports {
		if used[port] {
			t.Errorf("port %d was chosen twice", port)
		}
		used[port] = true
		if port >= freeport.FirstAssigned() {
			t.Errorf("the kernel may assign port %d of %s, from %d on", port, purpose, freeport.FirstAssigned())
		}
		l, err := net.Listen("tcp", ports.Address(purpose))
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
	again, err := ChoosePorts(file, purposes)
	if err != nil {
		t.Fatal(err)
	}
	for purpose, port := range ports {
		if again[purpose] != port {
			t.Errorf("%s has port %d in one run and %d in the next", purpose, port, again[purpose])
		}
	}
}
