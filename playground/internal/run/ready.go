package run

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/acp-io/acp/playground/internal/demo"
	"github.com/acp-io/acp/playground/internal/fleet"
)

// Ready is the content of the file of --json-ready, for tests and benchmarks.
type Ready struct {
	// PortalURL is empty without ACP.
	PortalURL     string            `json:"portalURL,omitempty"`
	IssuerURL     string            `json:"issuerURL"`
	StateDir      string            `json:"stateDir"`
	Kubeconfigs   map[string]string `json:"kubeconfigs"`
	Ports         map[string]int    `json:"ports"`
	Hubble        map[string]string `json:"hubble"`
	HubbleTLS     HubbleTLS         `json:"hubbleTLS"`
	PIDs          map[string]int    `json:"pids"`
	SupervisorPID int               `json:"supervisorPID"`
	Logins        []Login           `json:"logins"`
	// StartSeconds is the time in seconds from the end of all builds until ready.
	StartSeconds float64 `json:"startSeconds"`
}

// HubbleTLS contains the paths of the files with which a client connects to the flow APIs.
type HubbleTLS struct {
	CA         string `json:"ca"`
	Cert       string `json:"cert"`
	Key        string `json:"key"`
	ServerName string `json:"serverName"`
}

// Login contains the credentials of a user of the demo.
type Login struct {
	Username string   `json:"username"`
	Password string   `json:"password"`
	Name     string   `json:"name"`
	Groups   []string `json:"groups"`
}

// announce prints that everything is ready and writes the file of JSONReady.
func (r *runner) announce(took time.Duration) error {
	ready := Ready{
		IssuerURL: r.issuer(), StateDir: r.layout.Dir, Ports: r.fleet.Ports,
		Kubeconfigs: map[string]string{}, Hubble: map[string]string{}, PIDs: map[string]int{},
		HubbleTLS:     HubbleTLS{CA: r.fleet.PKI.HubbleCA, Cert: r.fleet.PKI.HubbleClient.Cert, Key: r.fleet.PKI.HubbleClient.Key, ServerName: "localhost"},
		SupervisorPID: os.Getpid(), StartSeconds: took.Seconds(),
	}
	for _, c := range fleet.Clusters() {
		ready.Kubeconfigs[c] = r.layout.Kubeconfig(c)
	}
	for _, program := range []string{fleet.Adapter, fleet.Portal, fleet.FlowCollector} {
		ready.Kubeconfigs[program] = r.layout.Kubeconfig(program)
	}
	for _, m := range fleet.Members() {
		ready.Hubble[m] = r.fleet.Ports.Address("dataplane-" + m)
	}
	for _, s := range r.supervisor.Status() {
		if s.PID != 0 {
			ready.PIDs[s.Name] = s.PID
		}
	}
	for _, person := range demo.People() {
		ready.Logins = append(ready.Logins, Login{Username: person.Username, Password: demo.Password, Name: person.Name, Groups: person.Groups})
	}
	r.printer.Line("ready after %s", took.Round(100*time.Millisecond))
	if !r.WithoutACP {
		ready.PortalURL = r.portalURL()
		r.printer.Line("")
		r.printer.Line("  Open       %s", ready.PortalURL)
		r.printer.Line("  Log in as  (password %q for everybody)", demo.Password)
		for _, person := range demo.People() {
			r.printer.Line("    %-6s  %s", person.Username, person.About)
		}
	}
	r.printer.Line("")
	r.printer.Line("  kubectl    --kubeconfig %s (or -%s)", r.layout.Kubeconfig(fleet.Host), strings.Join(fleet.Members(), ", -"))
	r.printer.Line("  Ctrl-C stops everything; the state is kept")
	r.printer.Line("")
	if r.JSONReady == "" {
		return nil
	}
	data, err := json.MarshalIndent(ready, "", "  ")
	if err != nil {
		return err
	}
	temp := r.JSONReady + ".new" // a reader must never see an incomplete file
	if err := os.WriteFile(temp, data, 0o600); err != nil {
		return fmt.Errorf("write the ready file: %w", err)
	}
	if err := os.Rename(temp, r.JSONReady); err != nil {
		return fmt.Errorf("write the ready file: %w", err)
	}
	return nil
}
