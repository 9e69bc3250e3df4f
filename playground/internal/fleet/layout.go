package fleet

import (
	"fmt"
	"os"
	"path/filepath"
)

// Host is the name of the cluster that runs the control plane.
const Host = "host"

// Members returns the names of the member clusters.
func Members() []string { return []string{"m1", "m2"} }

// Clusters returns the names of the host and the members.
func Clusters() []string { return append([]string{Host}, Members()...) }

// Layout locates the files in a state folder.
type Layout struct{ Dir string }

// NewLayout creates the state folder and its subfolders, readable by the user only.
func NewLayout(dir string) (Layout, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Layout{}, fmt.Errorf("resolve the state folder: %w", err)
	}
	l := Layout{Dir: abs}
	for _, d := range []string{l.Dir, l.Run(), l.Logs(), l.PKI(), l.Data("")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return Layout{}, fmt.Errorf("make the state folder: %w", err)
		}
	}
	return l, nil
}

// Run returns the folder of the pid files and the control socket.
func (l Layout) Run() string { return filepath.Join(l.Dir, "run") }

// Logs returns the folder of the logs, one per process.
func (l Layout) Logs() string { return filepath.Join(l.Dir, "logs") }

// PKI returns the folder of the keys and certificates.
func (l Layout) PKI() string { return filepath.Join(l.Dir, "pki") }

// Data returns the data folder of a process.
func (l Layout) Data(name string) string { return filepath.Join(l.Dir, "data", name) }

// File returns the path of a file in the state folder.
func (l Layout) File(name string) string { return filepath.Join(l.Dir, name) }

// Kubeconfig returns the path of the kubeconfig of a cluster's administrator (host, m1, m2) or of a program.
func (l Layout) Kubeconfig(name string) string { return filepath.Join(l.Dir, "kubeconfig-"+name) }

// Kept reports whether an earlier run left its state here.
func (l Layout) Kept() bool {
	left, err := os.ReadDir(l.Data(""))
	return err == nil && len(left) > 0
}
