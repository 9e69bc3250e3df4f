// Package ciliumagent reads from the API of a Cilium agent on its Unix socket: whether the agent is healthy, which rules of
// ACP's policies it has, and which state of the policies each endpoint enforces. It only sends GET requests.
//
// It must not depend on Cilium's code, which has about a thousand packages. The fields are those of version 1.20.2:
// api/v1/openapi.yaml, daemon/restapi/policy.go and pkg/endpoint/api.go.
package ciliumagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer"
)

// DefaultSocket is where an agent listens if it is not configured otherwise.
const DefaultSocket = "/var/run/cilium/cilium.sock"

const (
	// maxBody bounds what an answer of the agent may contain, in bytes.
	maxBody = 64 << 20
	// requestTimeout bounds one request.
	requestTimeout = 10 * time.Second
)

// ErrTooLarge is the error for an answer that is larger than the client reads.
var ErrTooLarge = errors.New("the answer is too large")

// Client reads from one agent.
type Client struct{ http *http.Client }

// New returns a Client for the agent that listens on a socket.
func New(socket string) *Client {
	dialer := &net.Dialer{Timeout: requestTimeout}
	return &Client{&http.Client{Timeout: requestTimeout, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		},
		MaxIdleConns: 1, IdleConnTimeout: time.Minute,
	}}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Health reports whether the agent considers itself healthy, which includes its connection to the API server.
func (c *Client) Health(ctx context.Context) (Health, error) {
	body, err := c.get(ctx, "/v1/healthz", map[string]string{"brief": "true", "require-k8s-connectivity": "true"})
	if err != nil {
		return Health{}, err
	}
	return ParseHealth(body)
}

// Policies returns the rules of ACP's policies that the agent has.
func (c *Client) Policies(ctx context.Context) (Policies, error) {
	body, err := c.get(ctx, "/v1/policy", nil)
	if err != nil {
		return Policies{}, err
	}
	return ParsePolicies(body)
}

// Endpoints returns all endpoints of the node.
func (c *Client) Endpoints(ctx context.Context) ([]Endpoint, error) {
	body, err := c.get(ctx, "/v1/endpoint", nil)
	if err != nil {
		return nil, err
	}
	return ParseEndpoints(body)
}

func (c *Client) get(ctx context.Context, path string, headers map[string]string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent"+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask the agent for %s: %w", path, err)
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the agent for %s: %w", path, err)
	}
	defer func() { _ = res.Body.Close() }() // it was read
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask the agent for %s: it answers %s", path, res.Status)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask the agent for %s: %w", path, err)
	case len(body) > maxBody:
		return nil, fmt.Errorf("ask the agent for %s: %w: more than %d MiB", path, ErrTooLarge, maxBody>>20)
	}
	return body, nil
}

// Health is the state that a Cilium agent reports about itself. Message is empty if OK.
type Health struct {
	OK      bool
	Message string
}

// ParseHealth parses the answer to GET /v1/healthz.
func ParseHealth(body []byte) (Health, error) {
	var in struct {
		Cilium *struct {
			State string `json:"state"`
			Msg   string `json:"msg"`
		} `json:"cilium"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Health{}, fmt.Errorf("parse the agent's health: %w", err)
	}
	if in.Cilium == nil || in.Cilium.State == "" {
		return Health{}, errors.New("parse the agent's health: it has no state")
	}
	return Health{OK: in.Cilium.State == "Ok", Message: strings.TrimSpace(in.Cilium.State + " " + in.Cilium.Msg)}, nil
}

// Policies are ACP's policies in an agent.
type Policies struct {
	// Revision is the number of the agent's state of all policies. It begins again when the agent is restarted.
	Revision int64
	// Rules contains for each of ACP's CiliumClusterwideNetworkPolicies the revision that all of its rules have as a label;
	// empty if they have none or several.
	Rules map[string]string
}

// Labels of rules, as Cilium adds them to the rules of an object.
const (
	ruleName   = "io.cilium.k8s.policy.name"
	ruleKind   = "io.cilium.k8s.policy.derived-from"
	ruleSource = "k8s"
	policyKind = "CiliumClusterwideNetworkPolicy"
)

type label struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

// ParsePolicies parses the answer to GET /v1/policy, which contains the rules as JSON in a string.
func ParsePolicies(body []byte) (Policies, error) {
	var in struct {
		Policy   string `json:"policy"`
		Revision int64  `json:"revision"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Policies{}, fmt.Errorf("parse the agent's policies: %w", err)
	}
	if in.Revision <= 0 {
		return Policies{}, errors.New("parse the agent's policies: they have no revision")
	}
	var rules []struct {
		Labels []label `json:"labels"`
	}
	if err := json.Unmarshal([]byte(in.Policy), &rules); err != nil {
		return Policies{}, fmt.Errorf("parse the agent's rules: %w", err)
	}
	out := Policies{Revision: in.Revision, Rules: map[string]string{}}
	for i := range rules {
		name, revision := identify(rules[i].Labels)
		if name == "" {
			continue
		}
		if before, had := out.Rules[name]; had && before != revision {
			revision = ""
		}
		out.Rules[name] = revision
	}
	return out, nil
}

// identify returns the name of ACP's object that a rule is from, or "", and its revision.
func identify(labels []label) (name, revision string) {
	clusterwide, revisions := false, 0
	for _, l := range labels {
		switch {
		case l.Source == ruleSource && l.Key == ruleKind:
			clusterwide = l.Value == policyKind
		case l.Source == ruleSource && l.Key == ruleName && strings.HasPrefix(l.Value, v1alpha1.ObjectPrefix):
			name = l.Value
		case l.Source == enforcer.RuleLabelSource && l.Key == v1alpha1.LabelRevision:
			revision, revisions = l.Value, revisions+1
		}
	}
	if !clusterwide {
		return "", ""
	}
	if revisions != 1 {
		revision = ""
	}
	return name, revision
}

// Endpoint is a pod, or the node itself, whose connections the agent controls.
type Endpoint struct {
	ID    int64
	State string
	// Desired is the number of the newest state of the policies that the agent computed for the endpoint. Realized is the
	// number of the state that the endpoint enforces; 0 if the agent does not say.
	Desired, Realized int64
}

// Leaving reports whether the endpoint is being removed.
func (e Endpoint) Leaving() bool { return e.State == "disconnecting" || e.State == "disconnected" }

// ParseEndpoints parses the answer to GET /v1/endpoint.
func ParseEndpoints(body []byte) ([]Endpoint, error) {
	type revision struct {
		Revision int64 `json:"policy-revision"`
	}
	var in []struct {
		ID     int64 `json:"id"`
		Status struct {
			State  string `json:"state"`
			Policy struct {
				Spec     revision `json:"spec"`
				Realized revision `json:"realized"`
			} `json:"policy"`
		} `json:"status"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("parse the agent's endpoints: %w", err)
	}
	out := make([]Endpoint, 0, len(in))
	for i := range in {
		p := &in[i].Status.Policy
		out = append(out, Endpoint{ID: in[i].ID, State: in[i].Status.State, Desired: p.Spec.Revision, Realized: p.Realized.Revision})
	}
	return out, nil
}
