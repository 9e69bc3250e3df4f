package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/inventory"
)

// listFlags are the flags of cluster list.
type listFlags struct {
	hostFlags
	output
}

// Fleet is the output of "cluster list".
type Fleet struct {
	Members []FleetMember `json:"members"`
	// Unregistered are the ClusterProfiles that no registration names.
	Unregistered []FleetProfile `json:"unregistered"`
	// Unknown is why the ClusterProfiles are not known.
	Unknown string `json:"unknown,omitempty"`
}

// FleetMember is a registered member.
type FleetMember struct {
	Name     string `json:"name"`
	Engine   string `json:"engine"`
	Endpoint string `json:"endpoint"`
	// ClusterProfile is the ClusterProfile that the registration names, NAMESPACE/NAME. It may not exist.
	ClusterProfile string `json:"clusterProfile,omitempty"`
	Leaving        bool   `json:"leaving,omitempty"`
	Quarantined    bool   `json:"quarantined,omitempty"`
}

// FleetProfile is a cluster of the inventory that is not registered under its ClusterProfile.
type FleetProfile struct {
	ClusterProfile string   `json:"clusterProfile"`
	Manager        string   `json:"manager"`
	Healthy        string   `json:"healthy"`
	Endpoints      []string `json:"endpoints"`
	// Member is a member that is registered with one of the addresses.
	Member string `json:"member,omitempty"`
}

func newClusterList(s Streams) *cobra.Command {
	l := &listFlags{hostFlags: hostFlags{streams: s}}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the registered members, and the clusters of the inventory that are not registered",
		Long: `Lists the KubeFedClusters of the host, each with the ClusterProfile from which it was registered, and the ClusterProfiles
(multicluster.x-k8s.io) that no registration names. "kubectl get memberclusters" shows the states of the members.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return l.run(cmd) },
	}
	l.flags(cmd)
	l.flag(cmd, asTable)
	return cmd
}

func (l *listFlags) run(cmd *cobra.Command) error {
	if err := l.check(); err != nil {
		return err
	}
	host, _, err := l.host()
	if err != nil {
		return err
	}
	members, err := host.Members(cmd.Context())
	if err != nil {
		return invalid(err)
	}
	profiles, err := host.Profiles(cmd.Context())
	fleet := newFleet(members, profiles)
	if err != nil {
		fleet.Unknown = err.Error()
	}
	if l.format != asTable {
		return l.document(l.streams.Out, fleet)
	}
	if fleet.Unknown != "" {
		fmt.Fprintf(l.streams.Err, "it is not known which clusters of the inventory are not registered: %s\n", fleet.Unknown)
	}
	return table(l.streams.Out, fleet.rows())
}

func newFleet(members []federation.Cluster, profiles []inventory.Profile) Fleet {
	out := Fleet{Members: []FleetMember{}, Unregistered: []FleetProfile{}}
	named := map[string]bool{}
	for _, c := range members {
		named[c.Profile] = true
		out.Members = append(out.Members, FleetMember{Name: c.Name, Engine: string(c.Engine), Endpoint: c.Endpoint, ClusterProfile: c.Profile,
			Leaving: c.Leaving, Quarantined: c.Quarantined})
	}
	for _, p := range profiles {
		if named[p.Name.String()] {
			continue
		}
		f := FleetProfile{ClusterProfile: p.Name.String(), Manager: p.Manager, Healthy: string(p.Healthy), Endpoints: []string{}}
		for _, a := range p.Access {
			f.Endpoints = append(f.Endpoints, a.Endpoint)
		}
		slices.Sort(f.Endpoints)
		f.Endpoints = slices.Compact(f.Endpoints)
		if i := slices.IndexFunc(members, p.Has); i >= 0 {
			f.Member = members[i].Name
		}
		out.Unregistered = append(out.Unregistered, f)
	}
	slices.SortFunc(out.Members, func(a, b FleetMember) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Unregistered, func(a, b FleetProfile) int { return cmp.Compare(a.ClusterProfile, b.ClusterProfile) })
	return out
}

func (f Fleet) rows() [][]string {
	rows := [][]string{{"MEMBER", "ENGINE", "ADDRESS", "SOURCE", "NOTE"}}
	for _, m := range f.Members {
		source := "KubeFedCluster"
		if m.ClusterProfile != "" {
			source = "ClusterProfile " + m.ClusterProfile
		}
		var notes []string
		if m.Leaving {
			notes = append(notes, "leaving")
		}
		if m.Quarantined {
			notes = append(notes, "quarantined")
		}
		rows = append(rows, []string{m.Name, m.Engine, m.Endpoint, source, strings.Join(notes, ", ")})
	}
	for _, p := range f.Unregistered {
		note := "not registered"
		if p.Member != "" {
			note = "has the address of " + p.Member + ", whose registration does not name it"
		}
		if p.Healthy != "True" {
			note += "; healthy: " + p.Healthy
		}
		rows = append(rows, []string{"-", "-", cmp.Or(strings.Join(p.Endpoints, ", "), "-"), "ClusterProfile " + p.ClusterProfile, note})
	}
	return rows
}
