package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"slices"

	"github.com/cilium/cilium/pkg/identity"
	"github.com/cilium/cilium/pkg/u8proto"

	"github.com/acp-io/acp/playground/dataplane/internal/engine"
	"github.com/acp-io/acp/playground/dataplane/internal/mesh"
	"github.com/acp-io/acp/playground/dataplane/internal/watch"
)

// A question is one line of JSON, and so is its answer. A question without connections repeats those of the previous one.
type question struct {
	Connections []connection `json:"connections"`
}

// connection is a TCP connection. From is a pod as cluster/namespace/name, or an address outside the fleet; To is a pod of the
// member as namespace/name.
type connection struct {
	From string `json:"from"`
	To   string `json:"to"`
	Port uint16 `json:"port"`
}

// answer contains one outcome per connection: no-policy, allowed, default-denied or denied.
type answer struct {
	Outcomes []string `json:"outcomes"`
	Error    string   `json:"error,omitempty"`
}

var outcomes = map[engine.Outcome]string{
	engine.NoPolicy: "no-policy", engine.Allowed: "allowed", engine.DefaultDenied: "default-denied", engine.Denied: "denied",
}

// ask answers questions about the verdicts of a member. It enforces and writes nothing. While its member cannot be reached it uses
// its cache, as an agent does.
func ask(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("ask", flag.ContinueOnError)
	cluster := flags.String("cluster", "", "name of the member, which is a context of the kubeconfig")
	kubeconfig := flags.String("kubeconfig", "", "file with one context per member of the mesh")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *cluster == "" || *kubeconfig == "" {
		return errors.New("ask needs --cluster and --kubeconfig")
	}
	configs, err := members(*kubeconfig)
	if err != nil {
		return err
	}
	if configs[*cluster] == nil {
		return fmt.Errorf("the kubeconfig has no context %q", *cluster)
	}
	m, err := mesh.New(slices.Collect(maps.Keys(configs)))
	if err != nil {
		return err
	}
	e := engine.New(*cluster)
	w := &watch.Watcher{Cluster: *cluster, Configs: configs, Mesh: m, Engine: e, Silent: true, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if err := w.Start(ctx); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	answers := json.NewEncoder(out)
	var q question
	for lines.Scan() {
		var next question
		if err := json.Unmarshal(lines.Bytes(), &next); err != nil {
			return fmt.Errorf("read a question: %w", err)
		}
		if len(next.Connections) > 0 {
			q = next
		}
		if err := answers.Encode(reply(e, m, *cluster, q)); err != nil {
			return fmt.Errorf("answer: %w", err)
		}
	}
	return lines.Err()
}

func reply(e *engine.Engine, m *mesh.Mesh, cluster string, q question) answer {
	pods := map[string]*identity.Identity{}
	for _, ep := range m.Select(func(mesh.Endpoint) bool { return true }) {
		pods[ep.Cluster+"/"+ep.Namespace+"/"+ep.Name] = ep.Identity
	}
	var a answer
	for _, c := range q.Connections {
		outcome, err := decide(e, pods, cluster, c)
		if err != nil {
			return answer{Error: fmt.Sprintf("from %s to %s: %s", c.From, c.To, err)}
		}
		a.Outcomes = append(a.Outcomes, outcome)
	}
	return a
}

func decide(e *engine.Engine, pods map[string]*identity.Identity, cluster string, c connection) (string, error) {
	from, to := pods[c.From], pods[cluster+"/"+c.To]
	if _, err := netip.ParseAddr(c.From); err == nil {
		if from, err = e.External(c.From); err != nil {
			return "", err
		}
	}
	if from == nil || to == nil {
		return "", errors.New("no such pod")
	}
	d, err := e.Decide(engine.Connection{From: from, To: to, Protocol: u8proto.TCP, Port: c.Port})
	return outcomes[d.Outcome], err
}
