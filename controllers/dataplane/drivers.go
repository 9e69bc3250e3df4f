package dataplane

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/policy"
)

// Drivers make enforcers ready.
type Drivers struct {
	Index *policycache.Cache
	// Carried tells whether the host can bring Istio's policies to the members, and why not: "" when it can.
	Carried func() (carried bool, why string)
	// NoHTTP says why a member cannot enforce Cilium's rules about requests; "": it can.
	NoHTTP func(cluster string) string
	// Changed is called when what an enforcer knows of other units changed, so that every unit may be another.
	Changed func()

	mu sync.Mutex
	// istio is the one that was made last, and made says from what.
	istio istio.Enforcer
	made  making
	// holes are the denies that it knows, as text; known: there was one before.
	holes string
	known bool
	// config is what the members declare, and text as what.
	config istio.Config
	text   string
}

// making is what Istio's enforcer is made from.
type making struct {
	version  uint64
	second   int64
	declared string
}

// Reason why there is no enforcer. Absent: the host carries nothing of it, so nothing of it is anywhere.
type Reason struct {
	Absent bool
	Why    string
}

// Of is the enforcer of a name, or why there is none.
func (d *Drivers) Of(name v1alpha1.EnforcerName, v *policycache.View, clusters []federation.Cluster, now time.Time) (enforcer.Enforcer, *Reason) {
	switch name {
	case v1alpha1.EnforcerCilium:
		return d.forCilium(clusters), nil
	case v1alpha1.EnforcerIstio:
		if carried, why := d.Carried(); !carried || why != "" {
			return nil, &Reason{Absent: !carried, Why: why}
		}
		e, err := d.forIstio(v, clusters, now)
		if err != nil {
			return nil, &Reason{Why: err.Error()}
		}
		return e, nil
	}
	return nil, &Reason{Absent: true, Why: "this adapter does not drive it: remove it from the class"}
}

// forCilium makes Cilium's enforcer for what its agents can do in each member.
func (d *Drivers) forCilium(clusters []federation.Cluster) cilium.Enforcer {
	out := cilium.Enforcer{Members: make(map[string]cilium.Member, len(clusters))}
	for i := range clusters {
		out.Members[clusters[i].Name] = cilium.Member{NoHTTP: d.NoHTTP(clusters[i].Name)}
	}
	return out
}

// Lacking says of members why they enforce nothing of what an enforcer gives them. Who is not named would, as far as it
// declares.
func (d *Drivers) Lacking(name v1alpha1.EnforcerName, clusters []federation.Cluster) map[string]string {
	if name != v1alpha1.EnforcerIstio {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c, _ := d.declared(clusters)
	out := map[string]string{}
	for i := range clusters {
		if why := c.Lacks(clusters[i].Name); why != "" {
			out[clusters[i].Name] = why
		}
	}
	return out
}

// declared is what the members declare, and its text; the caller holds the lock.
func (d *Drivers) declared(clusters []federation.Cluster) (istio.Config, string) {
	members, elsewhere := map[string]string{}, map[string]string{}
	for i := range clusters {
		members[clusters[i].Name] = clusters[i].Istio
		if root := clusters[i].Places.IstioRoot; root != "" && root != federation.IstioPolicy.Namespace {
			elsewhere[clusters[i].Name] = root
		}
	}
	text := fmt.Sprintf("%q %q", members, elsewhere) // sorted
	if text != d.text || d.config.Members == nil {
		d.text, d.config = text, istio.Declared(members)
		for name, root := range elsewhere {
			// A policy in another namespace than the root selects the pods of that namespace only.
			d.config.Members[name] = istio.Capabilities{Dataplane: istio.NoDataplane, Why: fmt.Sprintf(
				"its Istio's root namespace is %s, and policies are carried to %s only", root, federation.IstioPolicy.Namespace)}
		}
	}
	return d.config, text
}

// forIstio makes the enforcer anew when something changed that it knows, and once a second, because denies begin and end.
func (d *Drivers) forIstio(v *policycache.View, clusters []federation.Cluster, now time.Time) (enforcer.Enforcer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	config, text := d.declared(clusters)
	from := making{version: v.Version, second: now.Unix(), declared: text}
	if d.known && d.made == from {
		return d.istio, nil
	}
	e, err := istio.New(config)
	if err != nil {
		return nil, fmt.Errorf("the members' Istio: %w", err)
	}
	units := d.denying(v, now)
	holes, err := described(units)
	if err != nil {
		return nil, err
	}
	changed := d.known && (holes != d.holes || from.declared != d.made.declared)
	d.istio, d.made, d.holes, d.known = e.Knowing(units), from, holes, true
	if changed {
		d.Changed()
	}
	return d.istio, nil
}

// denying are units of Istio's classes that together have every deny which counts somewhere: of those of one class that a
// deny covers, one in Enforce says as much as all.
func (d *Drivers) denying(v *policycache.View, now time.Time) []policy.Unit {
	denied := d.Index.Denied()
	if len(denied) == 0 {
		return nil
	}
	resources := slices.Sorted(slices.Values(d.Index.Resources()))
	units := map[string]policy.Unit{}
	for _, pattern := range denied {
		told := map[string]bool{} // classes
		for _, r := range resources {
			stem, wildcard := strings.CutSuffix(pattern, "*")
			if r != pattern && (!wildcard || !strings.HasPrefix(r, stem)) {
				continue
			}
			class, ok := v.ResourceClassOf(r)
			if !ok || told[class.Name] || !slices.Contains(class.Spec.Enforcers, v1alpha1.EnforcerIstio) {
				continue
			}
			u, known := units[r]
			if !known {
				if u, ok = v.CompileResource(r, now); !ok {
					continue
				}
			}
			if u.Mode == v1alpha1.ModeEnforce || slices.Contains(slices.Collect(maps.Values(u.ClusterModes)), v1alpha1.ModeEnforce) {
				units[r], told[class.Name] = u, true
			}
		}
	}
	out := make([]policy.Unit, 0, len(units))
	for _, r := range slices.Sorted(maps.Keys(units)) {
		out = append(out, units[r])
	}
	return out
}

// described is the denies of units as text.
func described(units []policy.Unit) (string, error) {
	var out strings.Builder
	for i := range units {
		for _, st := range units[i].Statements {
			if st.Effect != policy.Deny {
				continue
			}
			text, err := json.Marshal(st)
			if err != nil {
				return "", fmt.Errorf("encode the deny %s: %w", st.Ref, err)
			}
			fmt.Fprintf(&out, "%s %s\n", units[i].LabelKey, text)
		}
	}
	return out.String(), nil
}
