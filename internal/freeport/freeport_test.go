package freeport

import "testing"

func TestPortsAreNotAssignedByTheKernel(t *testing.T) {
	for range 20 {
		port, err := Find()
		if err != nil {
			t.Fatal(err)
		}
		if port < lowest || port >= FirstAssigned() {
			t.Errorf("the kernel may assign port %d, from %d on", port, FirstAssigned())
		}
		l, err := listen(port)
		if err != nil {
			t.Fatalf("port %d is not free: %v", port, err)
		}
		if again, err := listen(port); err == nil {
			again.Close()
			t.Errorf("two listen on port %d", port)
		}
		l.Close()
	}
}
