package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/node/internal/image"
	"github.com/acp-io/acp/playground/node/internal/sandbox"
)

// Layout returns the paths of the files of a cluster in the folder of its state. One run of the program uses the folder.
type Layout struct{ Dir string }

// Node returns the folder that the node sees as /node.
func (l Layout) Node() string { return filepath.Join(l.Dir, "node") }

// Kubeconfig returns the kubeconfig with which programs on the machine reach the API server as an administrator.
func (l Layout) Kubeconfig() string { return filepath.Join(l.Dir, "kubeconfig") }

// Logs returns the folder with a log of each process of the node.
func (l Layout) Logs() string { return filepath.Join(l.Node(), "log") }

// Cluster is a running cluster.
type Cluster struct {
	Config  Config
	Layout  Layout
	sandbox *sandbox.Sandbox
	events  chan Event
}

// Up starts a node in the folder dir and returns when its first process runs; see Wait. Images are files to import beside the node's own;
// others are all nodes at the same switch. The first node of a cluster, whose folder is next to dir, has to be started before the others.
func Up(c Config, dir string, built parts.Built, images []string, connect *sandbox.Switch, others []Config) (_ *Cluster, err error) {
	l := Layout{Dir: dir}
	if err := removeState(l, c.Name); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(l.Node(), "images"), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the node: %w", err)
	}
	sockets, err := listen(&c)
	defer closeAll(sockets) // the node uses duplicates of the descriptors
	if err != nil {
		return nil, err
	}
	if c.Join != nil {
		pki := filepath.Join(Layout{Dir: filepath.Join(filepath.Dir(dir), c.Join.Name)}.Node(), "pki")
		c.Authority = &Pair{Cert: filepath.Join(pki, "ca.crt"), Key: filepath.Join(pki, "ca.key")}
	}
	if err := writePKI(filepath.Join(l.Node(), "pki"), c); err != nil {
		return nil, fmt.Errorf("make the keys of %s: %w", c.Name, err)
	}
	if err := copyGiven(filepath.Join(l.Node(), "pki"), c); err != nil {
		return nil, err
	}
	if err := os.Rename(filepath.Join(l.Node(), "pki", "machine.kubeconfig"), l.Kubeconfig()); err != nil {
		return nil, err
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(l.Node(), filepath.Base(configFile)), data, 0o600); err != nil {
		return nil, err
	}
	if err := writeImages(filepath.Join(l.Node(), "images"), built, images); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	folders := map[string]string{"/acp": filepath.Dir(self)}
	for name, folder := range built {
		if name != parts.NodePackages {
			folders[filepath.Join(PartsDir, name)] = folder
		}
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	s, err := sandbox.Start(sandbox.Config{
		Name: c.Name, Dir: l.Node(), Packages: built[parts.NodePackages], Folders: folders,
		Path: filepath.Join("/acp", filepath.Base(self)), Args: []string{ManageCommand, strconv.Itoa(len(sockets))}, Env: Environment(),
		// Names outside of the cluster are not resolved.
		Resolver: "nameserver " + c.DNS() + "\n",
	}, func(pid int) error {
		return connect.Connect(pid, fmt.Sprintf("port%d", c.Number), c.NodeNet(), routes(c, others)...)
	}, append([]*os.File{write}, sockets...)...)
	if err != nil {
		read.Close()
		return nil, fmt.Errorf("start the node of %s: %w", c.Name, err)
	}
	running := &Cluster{Config: c, Layout: l, sandbox: s, events: make(chan Event, 100)}
	go running.readEvents(read)
	return running, nil
}

// listen opens the ports of the machine that are forwarded to the node, and sets the address of the API server.
func listen(c *Config) (sockets []*os.File, err error) {
	ports := []int{c.APIPort}
	if c.Hubble != nil {
		ports = append(ports, c.Hubble.Port)
	}
	for i, port := range ports {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return sockets, fmt.Errorf("open a port for %s: %w", c.Name, err)
		}
		defer listener.Close() // File returns a copy
		if i == 0 {
			c.Server = "https://" + listener.Addr().String()
		}
		socket, err := listener.(*net.TCPListener).File()
		if err != nil {
			return sockets, fmt.Errorf("open a port for %s: %w", c.Name, err)
		}
		sockets = append(sockets, socket)
	}
	return sockets, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// routes lead to the pods of other clusters, by way of their first nodes. Cilium sets those to other nodes of the same cluster.
func routes(c Config, others []Config) []sandbox.Route {
	var out []sandbox.Route
	for _, o := range others {
		if o.Join == nil && o.Number != c.first().Number {
			out = append(out, sandbox.Route{To: o.Pods(), Via: o.NodeNet().IP})
		}
	}
	return out
}

func writeImages(dir string, built parts.Built, images []string) error {
	own := []struct{ file, reference, program, user string }{
		{"pause.tar", pauseImage, built.Path(parts.NodeImages, parts.Pause), "65532:65532"},
		{"coredns.tar", dnsImage, built.Path(parts.CoreDNS, parts.CoreDNSServer), ""},
		{"node-probe.tar", parts.NodeProbeImage, built.Path(parts.NodeImages, parts.NodeProbe), "65532:65532"},
	}
	for _, i := range own {
		if err := image.Write(filepath.Join(dir, i.file), i.reference, i.program, i.user); err != nil {
			return err
		}
	}
	for n, file := range images {
		data, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("given-%d.tar", n)), data, 0o600)
		}
		if err != nil {
			return fmt.Errorf("take over an image: %w", err)
		}
	}
	return nil
}

func (c *Cluster) readEvents(from *os.File) {
	defer from.Close()
	defer close(c.events)
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		var e Event
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			c.events <- e
		}
	}
}

// Wait reports the cluster's steps and returns when it is ready, or cannot be.
func (c *Cluster) Wait(ctx context.Context, report func(string)) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e, open := <-c.events:
			switch {
			case !open:
				return c.sandbox.Failure()
			case e.Error != "":
				return fmt.Errorf("%s: %s", c.Config.Name, strings.ReplaceAll(e.Error, "/var/log/", c.Layout.Logs()+"/"))
			case e.Ready:
				return nil
			case e.Step != "":
				report(e.Step)
			case e.Process != "":
				report(e.Process)
			}
		}
	}
}

// Ended is closed when the node ended.
func (c *Cluster) Ended() <-chan struct{} { return c.sandbox.Ended() }

// Failure returns how a node ended unexpectedly.
func (c *Cluster) Failure() error { return c.sandbox.Failure() }

// Events returns the channel of events of a cluster that is ready.
func (c *Cluster) Events() <-chan Event { return c.events }

// PID returns the process ID, on the machine, of the node's first process.
func (c *Cluster) PID() int { return c.sandbox.PID() }

// Down stops the cluster. It removes the state unless keep is set.
func (c *Cluster) Down(keep bool) error {
	if err := c.sandbox.Stop(); err != nil {
		return err
	}
	if keep {
		return nil
	}
	return removeState(c.Layout, c.Config.Name)
}

// Remove removes everything that an earlier run left of a cluster, in the folder dir and on the machine.
func Remove(dir, name string) error { return removeState(Layout{Dir: dir}, name) }

// removeState removes the node and then the folder, which no process of the node may use any more.
func removeState(l Layout, name string) error {
	if err := sandbox.Remove(l.Node(), name); err != nil {
		return err
	}
	if err := os.RemoveAll(l.Node()); err != nil {
		return fmt.Errorf("remove the state of %s: %w", name, err)
	}
	for _, path := range []string{l.Kubeconfig(), l.Dir} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the state of %s: %w", name, err)
		}
	}
	return nil
}

// RunIn runs a program in a cluster's node, with this process's standard files, and returns its exit status.
func RunIn(dir string, args []string) (int, error) {
	return sandbox.Run(Layout{Dir: dir}.Node(), Environment(), args)
}
