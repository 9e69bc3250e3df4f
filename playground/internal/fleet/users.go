package fleet

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/federation/guard"
)

// These are the namespaces of the control planes in the host cluster.
const (
	// KubeFedNamespace is the namespace of KubeFed.
	KubeFedNamespace = "kube-federation-system"
	// ACPNamespace is the namespace of ACP.
	ACPNamespace = "acp-system"
)

// user is a user of a cluster who authenticates with a token. No controller issues service account tokens here, so the users have
// the names and groups of service accounts and the RBAC of deploy/ applies unchanged.
type user struct {
	name   string
	groups []string
}

func serviceAccount(namespace, name string) user {
	return user{
		name:   "system:serviceaccount:" + namespace + ":" + name,
		groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}
}

// These are the short names of users in kubeconfigs and token files.
const (
	// Admin is a user with all rights.
	Admin = "admin"
	// KubeFed is the account of KubeFed's controller-manager.
	KubeFed = "kubefed"
	// Direct is the account of the direct engine, with which acp-adapter writes into a member.
	Direct = "acp-direct"
	// WorkAgent is the account of the work agent of Open Cluster Management, in a member and on the host.
	WorkAgent = "work-agent"
	// Adapter is the account of acp-adapter.
	Adapter = "acp-adapter"
	// Portal is the account of the portal.
	Portal = "acp-portal"
	// FlowCollector is the account of flow-collector.
	FlowCollector = "acp-flow-collector"
	// Dataplane is the account of the dataplane emulator.
	Dataplane = "dataplane"
)

// users returns the users of a cluster by short name.
func users(cluster string) map[string]user {
	admin := user{name: "playground-admin", groups: []string{"system:masters"}}
	if cluster == Host {
		return map[string]user{
			Admin:         admin,
			KubeFed:       serviceAccount(KubeFedNamespace, "kubefed-controller"),
			Adapter:       serviceAccount(ACPNamespace, "acp-adapter"),
			Portal:        serviceAccount(ACPNamespace, "acp-portal"),
			FlowCollector: serviceAccount(ACPNamespace, "acp-flow-collector"),
			WorkAgent:     {name: agentOnHost},
		}
	}
	return map[string]user{
		Admin:     admin,
		KubeFed:   serviceAccount(ACPNamespace, "acp-pusher"), // the guard allows this user
		Direct:    serviceAccount(ACPNamespace, "acp-direct"),
		WorkAgent: {name: guard.WorkAgent, groups: []string{"system:serviceaccounts"}},
		Adapter:   serviceAccount(ACPNamespace, "acp-adapter"),
		Dataplane: serviceAccount("kube-system", "acp-dataplane"),
	}
}

// Tokens maps cluster and short user name to a token.
type Tokens map[string]map[string]string

// EnsureTokens loads the tokens of a state folder, creates the missing ones, and writes the token file of each cluster.
func EnsureTokens(l Layout) (Tokens, error) {
	file := l.File("tokens.json")
	tokens := Tokens{}
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &tokens)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read the tokens (remove the state folder with `clean` if it is damaged): %w", err)
	}
	for _, cluster := range Clusters() {
		if tokens[cluster] == nil {
			tokens[cluster] = map[string]string{}
		}
		for short := range users(cluster) {
			if tokens[cluster][short] == "" {
				tokens[cluster][short] = rand.Text()
			}
		}
		if err := tokens.write(l, cluster); err != nil {
			return nil, err
		}
	}
	if data, err = json.Marshal(tokens); err != nil {
		return nil, err
	}
	if err := writeAtomically(file, data); err != nil {
		return nil, fmt.Errorf("write the tokens: %w", err)
	}
	return tokens, nil
}

// write writes the token file of a cluster without the tokens of the revoked users.
func (t Tokens) write(l Layout, cluster string, without ...string) error {
	var csv strings.Builder
	for short, u := range users(cluster) {
		if !slices.Contains(without, short) {
			fmt.Fprintf(&csv, "%s,%s,%s,%q\n", t[cluster][short], u.name, short, strings.Join(u.groups, ","))
		}
	}
	if err := writeAtomically(l.tokenFile(cluster), []byte(csv.String())); err != nil {
		return fmt.Errorf("write the token file of %s: %w", cluster, err)
	}
	return nil
}

// Revoke revokes the tokens of some users of a cluster, by their short names, and restores those of all others. It restarts the API
// server, which reads its tokens only at the start.
func (f *Fleet) Revoke(ctx context.Context, cluster string, users ...string) error {
	if err := f.Tokens.write(f.Layout, cluster, users...); err != nil {
		return err
	}
	name := "apiserver-" + cluster
	if err := f.supervisor.Stop(name); err != nil {
		return err
	}
	return f.supervisor.StartAndWait(ctx, name)
}

func (l Layout) tokenFile(cluster string) string { return l.File("tokens-" + cluster + ".csv") }
