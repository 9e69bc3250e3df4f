package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/acp-io/acp/playground/internal/supervisor"
)

// ManageCommand is the argument with which the running program has to call Manage in the sandbox; the number of listeners follows.
const ManageCommand = "manage"

// Event is a report of the program in the sandbox. Events are written as one JSON object per line.
type Event struct {
	// Step describes the step of the start that was completed.
	Step string `json:"step,omitempty"`
	// Ready reports whether every process runs.
	Ready bool `json:"ready,omitempty"`
	// Error is the reason why the start failed.
	Error string `json:"error,omitempty"`
	// Process describes what happened to a process of the node after the cluster was ready.
	Process string `json:"process,omitempty"`
}

// configFile is the file from which Manage reads its Config.
const configFile = "/node/cluster.json"

// startTimeout bounds the start of a cluster. It is long enough for a slow machine.
const startTimeout = 5 * time.Minute

// Manage starts the cluster, and keeps it until the lifeline ends. Connections that the listeners accept are passed on to the API
// server and, when there is a second one, to Hubble.
func Manage(lifeline io.Reader, events io.Writer, listeners []net.Listener) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, lifeline) // returns when the parent process ends
		cancel(errors.New("the node is stopped"))
	}()
	var c Config
	data, err := os.ReadFile(configFile)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", configFile, err)
	}
	report := json.NewEncoder(events)
	send := make(chan Event, 100)
	go func() {
		for e := range send {
			_ = report.Encode(e) // the parent process has ended if this fails
		}
	}()
	began := time.Now()
	m := &manager{config: c, step: func(format string, args ...any) {
		send <- Event{Step: fmt.Sprintf("%6.1fs  %s", time.Since(began).Seconds(), fmt.Sprintf(format, args...))}
	}}
	start, stop := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("it took longer than %s", startTimeout))
	defer stop()
	for i, port := range []string{apiPort, hubblePort} {
		if i < len(listeners) {
			go forward(listeners[i], net.JoinHostPort(c.NodeIP(), port))
		}
	}
	if err := m.start(start, func(e supervisor.Event) { send <- Event{Process: e.Name + ": " + e.Text} }); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		send <- Event{Error: err.Error()}
		<-ctx.Done() // keeps the logs and namespaces for examination until the user stops the cluster
		return nil
	}
	send <- Event{Ready: true}
	<-ctx.Done()
	// The first process of the PID namespace waits for this process. When it ends, the kernel kills every program of the node.
	return nil
}

type manager struct {
	config Config
	step   func(format string, args ...any)
	client kubernetes.Interface
}

func (m *manager) start(ctx context.Context, report func(supervisor.Event)) error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("let the node forward packets: %w", err)
	}
	if err := writeFiles(m.config); err != nil {
		return fmt.Errorf("write the configuration of the node: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", adminKubeconfig)
	if err != nil {
		return err
	}
	if m.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	const runDir = "/run/processes"
	if err := os.MkdirAll(runDir, 0o700); err != nil {
		return err
	}
	sup := supervisor.New(supervisor.Config{RunDir: runDir, LogDir: "/var/log", Report: report})
	for _, s := range specs(m.config, m.client) {
		if err := sup.Add(s); err != nil {
			return err
		}
	}
	if err := sup.StartAndWait(ctx, etcdProcess, containerd); err != nil {
		return err
	}
	return m.inParallel(ctx,
		func(ctx context.Context) error {
			if err := importImages(ctx); err != nil {
				return err
			}
			m.step("images are imported")
			return nil
		},
		func(ctx context.Context) error {
			if err := sup.StartAndWait(ctx, apiServer); err != nil {
				return err
			}
			m.step("the API server is ready")
			return m.inParallel(ctx,
				func(ctx context.Context) error {
					if err := sup.StartAndWait(ctx, controllerManager, scheduler, kubelet); err != nil {
						return err
					}
					m.step("kubelet runs")
					return nil
				},
				func(ctx context.Context) error {
					if err := sup.StartAndWait(ctx, ciliumOperator, ciliumAgent); err != nil {
						return err
					}
					m.step("Cilium is ready")
					return copyCNIConfig(ctx)
				},
				m.applyManifests,
				func(ctx context.Context) error {
					if err := m.until(ctx, "the node is not Ready", m.nodeReady); err != nil {
						return err
					}
					m.step("the node is Ready")
					return nil
				},
				func(ctx context.Context) error {
					if err := m.until(ctx, "CoreDNS is not ready", m.dnsReady); err != nil {
						return err
					}
					m.step("CoreDNS is ready")
					return nil
				},
				func(ctx context.Context) error {
					// Pods of the namespace default cannot be created before.
					return m.until(ctx, "the namespace default has no ServiceAccount", func(ctx context.Context) error {
						_, err := m.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
						return err
					})
				},
			)
		},
	)
}

// inParallel runs all functions concurrently and returns the first error.
func (m *manager) inParallel(ctx context.Context, all ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, len(all))
	for _, f := range all {
		go func() { errs <- f(ctx) }()
	}
	for range all {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

// until repeats check until it returns nil.
func (m *manager) until(ctx context.Context, what string, check func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := check(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s (%w; last answer: %w)", what, context.Cause(ctx), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (m *manager) nodeReady(ctx context.Context) error {
	node, err := m.client.CoreV1().Nodes().Get(ctx, m.config.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			if c.Status == corev1.ConditionTrue {
				return nil
			}
			return errors.New(c.Message)
		}
	}
	return errors.New("it has no condition Ready")
}

func (m *manager) dnsReady(ctx context.Context) error {
	d, err := m.client.AppsV1().Deployments(metav1.NamespaceSystem).Get(ctx, "coredns", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if d.Status.ReadyReplicas < 1 {
		return fmt.Errorf("%d of its pods are ready", d.Status.ReadyReplicas)
	}
	return nil
}

// applyManifests creates the objects that every cluster has.
func (m *manager) applyManifests(ctx context.Context) error {
	for n := range volumes {
		if err := os.MkdirAll(volumeDir(n), 0o755); err != nil {
			return fmt.Errorf("make the folder of a volume: %w", err)
		}
	}
	text, err := manifests(m.config)
	if err != nil {
		return err
	}
	file := filepath.Join(configDir, "cluster.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	if err := output(ctx, "kubectl", "apply", "--server-side", "-f", file); err != nil {
		return fmt.Errorf("apply the objects of the cluster: %w", err)
	}
	return nil
}

// forward copies data between the connections of the listener, which is in the machine's network, and an address of the node.
func forward(listener net.Listener, address string) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // the node ends
		}
		go func() {
			defer conn.Close()
			target, err := net.DialTimeout("tcp", address, 5*time.Second)
			if err != nil {
				return
			}
			defer target.Close()
			done := make(chan struct{}, 2)
			pass := func(to, from net.Conn) {
				_, _ = io.Copy(to, from)
				if half, ok := to.(*net.TCPConn); ok {
					_ = half.CloseWrite()
				}
				done <- struct{}{}
			}
			go pass(target, conn)
			go pass(conn, target)
			<-done
			<-done
		}()
	}
}
