// Package freeport finds free ports of 127.0.0.1 for programs that the playground and tests start.
//
// A port that the kernel assigns may be assigned again, to a connection of any program, before the program that it was found for listens on it.
// Therefore the ports are below those that the kernel assigns.
package freeport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync/atomic"
)

const (
	lowest   = 16_000
	attempts = 100
)

// A process gets each port once, beginning anywhere: a port that was found is free until its program listens on it.
var (
	start = rand.Uint32N(1 << 16)
	calls atomic.Uint32
)

// Listen listens on a free port.
func Listen() (net.Listener, error) {
	if first := FirstAssigned(); first > lowest+attempts {
		for range attempts {
			if l, err := listen(lowest + int((start+calls.Add(1))%uint32(first-lowest))); err == nil {
				return l, nil
			}
		}
	}
	l, err := listen(0)
	if err != nil {
		return nil, fmt.Errorf("find a free port on 127.0.0.1: %w", err)
	}
	return l, nil
}

func listen(port int) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// Find returns a port on which nothing listens.
func Find() (int, error) {
	l, err := Listen()
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("release a port of 127.0.0.1: %w", err)
	}
	return port, nil
}

// FirstAssigned returns the lowest port that the kernel assigns by itself. Where it cannot be read, that is the first dynamic port of IANA.
func FirstAssigned() int {
	const dynamic = 49_152
	data, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return dynamic
	}
	var first, last int
	if _, err := fmt.Sscan(string(data), &first, &last); err != nil {
		return dynamic
	}
	return first
}
