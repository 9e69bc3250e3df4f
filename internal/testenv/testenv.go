// Package testenv starts real API servers and databases for tests; an API server is an etcd and a kube-apiserver,
// started with controller-runtime's envtest. If the binaries are missing, a test fails with instructions; it never
// skips.
package testenv

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/acp-io/acp/internal/freeport"
)

const assets = "KUBEBUILDER_ASSETS"

// startTimeout bounds the start of an etcd or a kube-apiserver. On a busy machine a start exceeds envtest's 20 s.
const startTimeout = 2 * time.Minute

const howTo = "run `make test`, or set " + assets +
	" to the output of `go run ./cmd/acp-playground parts --print kubebuilder-assets` (in playground/)"

// Options configure an API server.
type Options struct {
	// CRDs are folders, relative to the repository's root.
	CRDs []string
	// Tokens maps bearer tokens to users.
	Tokens map[string]string
	// Audit keeps a log of all requests, for Requests.
	Audit bool
}

// Server is a running API server.
type Server struct {
	// Config has the rights of an administrator.
	Config *rest.Config
	env    *envtest.Environment
	dir    string
}

// Start starts an API server that stops with the test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// New starts an API server for the tests of a whole package. TestMain has to stop it.
func New(o Options) (*Server, error) {
	folder := os.Getenv(assets)
	if folder == "" {
		return nil, fmt.Errorf("%s is not set: %s", assets, howTo)
	}
	for _, binary := range []string{"etcd", "kube-apiserver"} {
		if _, err := exec.LookPath(filepath.Join(folder, binary)); err != nil {
			return nil, fmt.Errorf("%s has no %s: %s", assets, binary, howTo)
		}
	}
	dir, err := os.MkdirTemp("", "acp-testenv-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the API server: %w", err)
	}
	s := &Server{dir: dir, env: &envtest.Environment{BinaryAssetsDirectory: folder, ErrorIfCRDPathMissing: true,
		ControlPlaneStartTimeout: startTimeout}}
	for _, d := range o.CRDs {
		s.env.CRDDirectoryPaths = append(s.env.CRDDirectoryPaths, filepath.Join(Root(), d))
	}
	if len(o.Tokens) > 0 {
		var lines strings.Builder
		for token, user := range o.Tokens {
			fmt.Fprintf(&lines, "%s,%s,%s\n", token, user, user)
		}
		file := filepath.Join(dir, "tokens.csv")
		if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
			return nil, errors.Join(fmt.Errorf("write the tokens: %w", err), os.RemoveAll(dir))
		}
		s.env.ControlPlane.GetAPIServer().Configure().Set("token-auth-file", file)
	}
	if o.Audit {
		if err := s.audit(); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	if err := s.choosePorts(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if s.Config, err = s.env.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start an API server: %w", err), os.RemoveAll(dir))
	}
	return s, nil
}

// choosePorts chooses the ports of both servers. Those that envtest would choose may be taken until the servers listen on them.
func (s *Server) choosePorts() error {
	api, err := freeport.Find()
	if err != nil {
		return err
	}
	store, err := freeport.Find()
	if err != nil {
		return err
	}
	s.env.ControlPlane.GetAPIServer().ListenAddr = envtest.ListenAddr{Address: "127.0.0.1", Port: strconv.Itoa(api)}
	s.env.ControlPlane.Etcd = &envtest.Etcd{URL: &url.URL{Scheme: "http", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(store))}}
	return nil
}

// FreeAddress returns an address of 127.0.0.1 for a program that the test starts, with a port on which nothing listens.
func FreeAddress(t testing.TB) string {
	t.Helper()
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// As returns a client configuration for another user.
func (s *Server) As(user string) (*rest.Config, error) {
	u, err := s.env.AddUser(envtest.User{Name: user}, nil)
	if err != nil {
		return nil, fmt.Errorf("make a user: %w", err)
	}
	return u.Config(), nil
}

// Kubeconfig returns the text of a kubeconfig with the rights of Config.
func (s *Server) Kubeconfig() []byte { return s.env.KubeConfig }

// Stop stops the server.
func (s *Server) Stop() error {
	return errors.Join(s.env.Stop(), os.RemoveAll(s.dir))
}

// root is the root folder of the repository, in or below which a test starts.
var root = sync.OnceValue(func() string {
	start, err := os.Getwd()
	if err != nil {
		panic(fmt.Sprintf("find the root of the repository: %v", err))
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "api", "openapi.yaml")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			panic("the tests run outside of the repository, in " + start)
		}
	}
})

// Root returns the root folder of the repository. The sources' paths in the program do not lead there, because -trimpath shortens them.
func Root() string { return root() }
