package freeport

import "testing"

func TestPortsAreNotAssignedByTheKernel(t *testing.T) {
	found := map[int]bool{}
	for range 1000 {
		port, err := Find()
		if err != nil {
			t.Fatal(err)
		}
		if port < lowest || port >= FirstAssigned() {
			t.Fatalf("the kernel may assign port %d, from %d on", port, FirstAssigned())
		}
		if found[port] {
			t.Fatalf("port %d was found twice, before a program could listen on it", port)
		}
		found[port] = true
	}
}
