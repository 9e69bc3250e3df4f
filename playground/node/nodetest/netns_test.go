package nodetest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/ciliumtest"
)

// namespace is a network namespace in which this process creates sockets. A socket stays in the namespace in which it was created,
// whichever thread uses it afterwards.
type namespace struct{ jobs chan func() }

// enterNamespace starts a thread in the network namespace of a file. The thread ends with the test.
func enterNamespace(t *testing.T, path string) *namespace {
	t.Helper()
	ns := &namespace{jobs: make(chan func())}
	entered := make(chan error)
	go func() {
		runtime.LockOSThread() // without unlocking it, so that the runtime ends the thread with the goroutine
		handle, err := netns.GetFromPath(path)
		if err == nil {
			err = errors.Join(netns.Set(handle), handle.Close())
		}
		entered <- err
		for job := range ns.jobs {
			job()
		}
	}()
	t.Cleanup(func() { close(ns.jobs) })
	if err := <-entered; err != nil {
		t.Fatalf("enter the network namespace %s: %v", path, err)
	}
	return ns
}

// do runs f on the thread of the namespace.
func (n *namespace) do(f func()) {
	done := make(chan struct{})
	n.jobs <- func() {
		f()
		close(done)
	}
	<-done
}

// serve accepts connections and returns datagrams on the ports in the namespace until the test ends. ICMP is the kernel's.
func (n *namespace) serve(t *testing.T, ports []ciliumtest.Port) {
	t.Helper()
	for _, p := range ports {
		var closer interface{ Close() error }
		var err error
		address := fmt.Sprintf("0.0.0.0:%d", p.Number)
		switch p.Protocol {
		case v1alpha1.ProtocolTCP:
			var l net.Listener
			n.do(func() { l, err = net.Listen("tcp4", address) })
			if err == nil {
				closer = l
				go acceptAll(l)
			}
		case v1alpha1.ProtocolUDP:
			var c net.PacketConn
			n.do(func() { c, err = net.ListenPacket("udp4", address) })
			if err == nil {
				closer = c
				go returnAll(c)
			}
		default:
			continue
		}
		if err != nil {
			t.Fatalf("serve on %s %s: %v", p.Protocol, address, err)
		}
		t.Cleanup(func() { closer.Close() })
	}
}

func acceptAll(l net.Listener) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			c.Close()
		}
	}
}

func returnAll(c net.PacketConn) {
	buffer := make([]byte, 64)
	for {
		n, from, err := c.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_, _ = c.WriteTo(buffer[:n], from) // the client sends again if the answer is lost
		}
	}
}

// attempt is a connection to open, a datagram to be answered, or an ICMP echo request.
type attempt struct {
	from *namespace
	// local is the source address; invalid selects the namespace's own.
	local netip.Addr
	to    netip.Addr
	port  ciliumtest.Port

	fd      int
	decided bool
	// err is nil if the attempt was answered, and errNoAnswer if there was no answer.
	err error
}

// errNoAnswer is the result of an attempt whose packets were dropped.
var errNoAnswer = errors.New("no answer")

const (
	// attemptsAtOnce bounds the number of open sockets.
	attemptsAtOnce = 2500
	// answerTimeout is shorter than the second after which the kernel repeats a SYN.
	answerTimeout = 500 * time.Millisecond
	// sends is how often a datagram or an echo request is sent within the timeout.
	sends = 3
)

// connectAll makes the attempts and sets their results.
func connectAll(t *testing.T, all []*attempt) {
	t.Helper()
	for begin := 0; begin < len(all); begin += attemptsAtOnce {
		if err := connectBatch(all[begin:min(begin+attemptsAtOnce, len(all))]); err != nil {
			t.Fatal(err)
		}
	}
}

func connectBatch(batch []*attempt) error {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("create an epoll instance: %w", err)
	}
	defer unix.Close(poll)
	byNamespace := map[*namespace][]*attempt{}
	for _, a := range batch {
		byNamespace[a.from] = append(byNamespace[a.from], a)
		a.decided, a.err = false, errNoAnswer
	}
	var opened sync.WaitGroup
	for ns, list := range byNamespace {
		opened.Go(func() {
			ns.do(func() {
				for _, a := range list {
					a.open()
				}
			})
		})
	}
	opened.Wait()
	byFD := make(map[int32]*attempt, len(batch))
	defer func() {
		for _, a := range byFD {
			unix.Close(a.fd)
		}
	}()
	var failed error
	for _, a := range batch {
		if a.fd < 0 {
			failed = errors.Join(failed, a.err)
			continue
		}
		byFD[int32(a.fd)] = a
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(a.fd)}
		if a.port.Protocol == v1alpha1.ProtocolTCP {
			event.Events = unix.EPOLLOUT
		}
		if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, a.fd, &event); err != nil {
			return fmt.Errorf("wait for a socket: %w", err)
		}
	}
	if failed != nil {
		return failed
	}
	return await(poll, byFD)
}

// await collects answers until every attempt was answered or the timeout is over, and repeats datagrams meanwhile.
func await(poll int, byFD map[int32]*attempt) error {
	open, began, sent := len(byFD), time.Now(), 1
	events := make([]unix.EpollEvent, 512)
	for open > 0 {
		next := began.Add(answerTimeout * time.Duration(sent) / sends)
		left := time.Until(next)
		if left <= 0 {
			if sent == sends {
				return nil
			}
			sent++
			for _, a := range byFD {
				if !a.decided && a.port.Protocol != v1alpha1.ProtocolTCP {
					a.send()
				}
			}
			continue
		}
		n, err := unix.EpollWait(poll, events, int(left.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for answers: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			a := byFD[e.Fd]
			if a.decided || !a.answered() {
				continue
			}
			a.decided = true
			open--
			if err := unix.EpollCtl(poll, unix.EPOLL_CTL_DEL, a.fd, nil); err != nil {
				return fmt.Errorf("wait for a socket: %w", err)
			}
		}
	}
	return nil
}

// open creates the socket and sends the first packet. It runs on the thread of the namespace.
func (a *attempt) open() {
	kind, protocol := unix.SOCK_STREAM, 0
	switch a.port.Protocol {
	case v1alpha1.ProtocolUDP:
		kind = unix.SOCK_DGRAM
	case ciliumtest.ICMP:
		kind, protocol = unix.SOCK_RAW, unix.IPPROTO_ICMP
	}
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		a.fd, a.err = -1, fmt.Errorf("create a socket: %w", err)
		return
	}
	a.fd = fd
	if a.port.Protocol == v1alpha1.ProtocolTCP {
		// Closing resets the connection, so that no port stays occupied.
		err = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	if err == nil && a.local.IsValid() {
		if err = unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1); err == nil {
			err = unix.Bind(fd, &unix.SockaddrInet4{Addr: a.local.As4()})
		}
	}
	if err == nil {
		to := &unix.SockaddrInet4{Addr: a.to.As4(), Port: int(a.port.Number)}
		if a.port.Protocol == ciliumtest.ICMP {
			to.Port = 0
		}
		if err = unix.Connect(fd, to); errors.Is(err, unix.EINPROGRESS) {
			err = nil
		}
	}
	if err != nil {
		unix.Close(fd)
		a.fd, a.err = -1, fmt.Errorf("open a socket from %s to %s: %w", a.local, a.to, err)
		return
	}
	if a.port.Protocol != v1alpha1.ProtocolTCP {
		a.send()
	}
}

// send sends a datagram or an echo request. A failure shows as a missing answer.
func (a *attempt) send() {
	packet := []byte("question")
	if a.port.Protocol == ciliumtest.ICMP {
		packet = echoRequest(byte(a.port.Number), uint16(a.fd))
	}
	_, _ = unix.Write(a.fd, packet)
}

// answered reports whether the socket has an answer, and sets the result.
func (a *attempt) answered() bool {
	if a.port.Protocol == v1alpha1.ProtocolTCP {
		code, err := unix.GetsockoptInt(a.fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && code != 0 {
			err = unix.Errno(code)
		}
		a.err = err
		return true
	}
	buffer := make([]byte, 128)
	for {
		n, err := unix.Read(a.fd, buffer)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return false
		case err != nil:
			a.err = err
			return true
		case a.port.Protocol == ciliumtest.ICMP && !isEchoReply(buffer[:n], uint16(a.fd)):
			continue // a raw socket gets every ICMP message of the address
		}
		a.err = nil
		return true
	}
}

const icmpHeader = 8

// echoRequest returns an ICMP message of type 8 with a checksum.
func echoRequest(kind byte, id uint16) []byte {
	m := make([]byte, icmpHeader)
	m[0] = kind
	binary.BigEndian.PutUint16(m[4:], id)
	sum := uint32(kind)<<8 + uint32(id)
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(m[2:], ^uint16(sum))
	return m
}

func isEchoReply(packet []byte, id uint16) bool {
	if len(packet) == 0 {
		return false
	}
	header := int(packet[0]&15) * 4
	return len(packet) >= header+icmpHeader && packet[header] == 0 && binary.BigEndian.Uint16(packet[header+4:]) == id
}

// podProcesses returns a process of each pod, by the UIDs of pods.
func podProcesses() (map[string]int, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		_, rest, found := strings.Cut(string(data), "/pod")
		if !found || len(rest) < 36 {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(file, "/proc/%d/cgroup", &pid); err == nil {
			out[rest[:36]] = pid
		}
	}
	return out, nil
}

func netnsOf(pid int) string { return fmt.Sprintf("/proc/%d/ns/net", pid) }
