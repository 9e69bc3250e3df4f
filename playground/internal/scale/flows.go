package scale

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/hubble/relaytest"
	"github.com/acp-io/acp/internal/audit/sqlite"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/playground/internal/fleet"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

const (
	collectorProcess = "flow-collector"
	// resourcesWithFlows is the largest number of resources that have connections.
	resourcesWithFlows = 2_000
	// storeLimit is how long the collector may take to store the flows that happened.
	storeLimit = 10 * time.Minute
)

// flowStore returns the URL of the store that the collector writes and the portal reads.
func (r *run) flowStore() string { return "sqlite:" + r.flowFile() }

func (r *run) flowFile() string { return filepath.Join(r.fleet.Layout.Data("flows"), "flows.db") }

// collectorHealth returns the address of the collector's readiness.
func (r *run) collectorHealth() string { return r.fleet.Ports.Address(collectorProcess + "-health") }

// startCollector starts a relay for each member and the collector, and returns the relays when every one is followed and flows happen.
func (r *run) startCollector(ctx context.Context) (*relaytest.Relays, error) {
	if err := os.MkdirAll(filepath.Dir(r.flowFile()), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the flows: %w", err)
	}
	pair := r.fleet.PKI.HubbleServer[fleet.Members()[0]] // all relays are on this machine
	certificate, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, fmt.Errorf("load the certificate of the relays: %w", err)
	}
	relays, err := relaytest.Start(ctx, relaytest.Config{Certificate: certificate, Rate: r.Flows, Flows: r.flowsOfMembers()})
	if err != nil {
		return nil, err
	}
	client := r.fleet.PKI.HubbleClient
	args := []string{
		"--kubeconfig=" + r.fleet.Layout.Kubeconfig(fleet.FlowCollector), "--store=" + r.flowStore(),
		"--spool=" + filepath.Join(r.fleet.Layout.Data("flows"), "spool"), "--flows=refused", "--health-address=" + r.collectorHealth(),
		"--hubble-tls-ca=" + r.fleet.PKI.HubbleCA, "--hubble-tls-cert=" + client.Cert, "--hubble-tls-key=" + client.Key,
		"--hubble-tls-server-name=localhost",
	}
	for i, name := range r.names {
		args = append(args, "--hubble="+name+"="+relays.Address(i))
	}
	err = r.supervisor.Add(supervisor.Spec{
		Name: collectorProcess, Layer: fleet.LayerControlPlane, Path: filepath.Join(r.BinDir, "flow-collector"), Args: args,
		Ready: func(ctx context.Context) error {
			return fleet.GetOK(ctx, http.DefaultClient, "http://"+r.collectorHealth()+"/healthz", "")
		},
	})
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err == nil {
		err = r.supervisor.StartAndWait(limited, collectorProcess)
	}
	if err == nil {
		err = relays.Begin(limited)
	}
	if err != nil {
		relays.Close()
		return nil, err
	}
	return relays, nil
}

// flowsOfMembers returns the connections of the members: each has resources of its own, with the clients that have a grant on them.
func (r *run) flowsOfMembers() []*relaytest.Flows {
	each := max(1, min(r.Resources, resourcesWithFlows)/r.Members)
	var out []*relaytest.Flows
	for m, name := range r.names {
		var clients, servers []relaytest.Label
		for n := range each {
			i := (m*each + n) % r.Resources
			servers = append(servers, relaytest.Label{Key: "com.trip/redis-cluster", Value: resourceName(i)})
			for g := range r.Grants {
				clients = append(clients, relaytest.Label{Key: "com.trip/appid", Value: r.world.app(i, g)})
			}
		}
		flows := relaytest.NewFlows(name, m, clients, servers)
		flows.Stride, flows.Width = r.Grants, r.Grants
		out = append(out, flows)
	}
	return out
}

// stored lets no more flows happen, waits until the collector has stored those that did, and returns the numbers of connections that are in the
// store, and of those among them that the policies decide.
func (r *run) stored(ctx context.Context, relays *relaytest.Relays) (all, decided int64, err error) {
	relays.Stop()
	limited, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	for all < relays.Sent() {
		select {
		case <-time.After(time.Second):
		case <-limited.Done():
			return all, decided, nil // what is missing is a figure of the run
		}
		if all, decided, err = r.totals(ctx); err != nil {
			return 0, 0, err
		}
	}
	return all, decided, nil
}

// totals reads the numbers of connections in the store, and of those that the policies decide.
func (r *run) totals(ctx context.Context) (all, decided int64, err error) {
	store, err := sqlite.Open(ctx, r.flowFile())
	if err != nil {
		return 0, 0, fmt.Errorf("open the flow store: %w", err)
	}
	defer store.Close()
	err = store.Totals(ctx, audit.Filter{}, func(t audit.Total) error {
		all += t.Count
		if t.Decision != policy.Unmanaged {
			decided += t.Count
		}
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("read the flow store: %w", err)
	}
	return all, decided, nil
}

// delay returns how far the collector is behind: the time since the oldest position in the members' flows.
func (r *run) delay(ctx context.Context) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.collectorHealth()+"/readyz", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("ask the collector: %w", err)
	}
	defer answer.Body.Close()
	var body struct {
		Members []struct {
			Name     string     `json:"name"`
			Position *time.Time `json:"position"`
		} `json:"members"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return 0, fmt.Errorf("read the answer of the collector: %w", err)
	}
	if len(body.Members) != r.Members {
		return 0, fmt.Errorf("the collector follows %d of %d members", len(body.Members), r.Members)
	}
	var longest time.Duration
	for _, m := range body.Members {
		if m.Position == nil {
			return 0, fmt.Errorf("the collector has read nothing of member %s", m.Name)
		}
		longest = max(longest, time.Since(*m.Position))
	}
	return longest, nil
}
