package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/acp-io/acp/internal/configuration"
	"github.com/acp-io/acp/internal/nodereport"
	"github.com/acp-io/acp/internal/nodereport/ciliumagent"
	"github.com/acp-io/acp/internal/serving"
	"github.com/acp-io/acp/internal/version"
)

// options are the settings of acp-node.
type options struct {
	kubeconfig          string
	node                string
	socket              string
	interval, heartbeat time.Duration
	healthAddress       string
	metricsAddress      string
	logFormat           string
	logLevel            slog.Level
	// explain adds to an error where the values of the settings that it names come from.
	explain func(error) error
}

// settings defines the settings of acp-node.
func settings(o *options) *configuration.Settings {
	s := configuration.New("acp-node", "acp-node reports which revision of ACP's policies the Cilium agent of its node enforces.", version.String)

	f := s.Group("Node")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` of the member cluster; empty: the service account of the pod it runs in")
	f.StringVar(&o.node, "node", "", "`name` of the node that it runs on; required")
	f.StringVar(&o.socket, "cilium-socket", ciliumagent.DefaultSocket, "Unix socket `file` of the Cilium agent's API")
	f.DurationVar(&o.interval, "interval", 5*time.Second, "`duration` between two requests to the agent; at least 1s")
	f.DurationVar(
		&o.heartbeat,
		"heartbeat",
		30*time.Second,
		"`duration` after which the report is written although nothing changed; at most 1m, because a report says nothing after two",
	)

	f = s.Group("Listening")
	f.StringVar(
		&o.healthAddress,
		"health-address",
		"127.0.0.1:8081",
		"`address` of /livez, /readyz and /startupz, without TLS; and of /metrics where --metrics-address is empty",
	)
	f.StringVar(&o.metricsAddress, "metrics-address", "", "`address` of /metrics, without login; empty: beside the probes")
	s.Logging(&o.logFormat, &o.logLevel, "text")
	return s
}

// parse parses the settings. It returns configuration.ErrAnswered if the command line requested the help or the version,
// which it has then written.
func parse(args []string, out io.Writer) (options, error) {
	var o options
	s := settings(&o)
	o.explain = s.Explain
	if err := s.ParseProcess(args, out); err != nil {
		return o, err
	}
	if err := o.validate(); err != nil {
		return o, s.Explain(err)
	}
	return o, s.Print(out)
}

func (o *options) validate() error {
	switch {
	case o.node == "":
		return errors.New("--node is required: the name of the node that it runs on")
	case len(validation.IsDNS1123Subdomain(o.node)) > 0:
		return fmt.Errorf("--node %q is not the name of a node", o.node)
	case o.socket == "":
		return errors.New("--cilium-socket must not be empty")
	case o.interval < time.Second:
		return fmt.Errorf("--interval %s is less than a second", o.interval)
	case o.heartbeat < o.interval || o.heartbeat > nodereport.StaleAfter/2:
		return fmt.Errorf("--heartbeat %s is not between --interval %s and %s", o.heartbeat, o.interval, nodereport.StaleAfter/2)
	}
	if err := serving.CheckAddress("health-address", o.healthAddress); err != nil {
		return err
	}
	if o.metricsAddress != "" {
		return serving.CheckAddress("metrics-address", o.metricsAddress)
	}
	return nil
}
