package dataplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/controllers/policycache"
	"github.com/acp-io/acp/internal/enforcer"
	"github.com/acp-io/acp/internal/enforcer/cilium"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// Enforcers provides the enforcers that the adapter uses.
type Enforcers struct {
	// IstioSupport reports whether the host can distribute Istio's policies to the members. why is the reason if not, or zero.
	IstioSupport func() (supported bool, why message.Message)
	// NoHTTP returns the reason why a member cannot enforce Cilium's HTTP rules, or zero.
	NoHTTP func(cluster string) message.Message
	// Changed is called when what an enforcer uses of other units changed, so that every unit may render differently.
	Changed func()

	mu sync.Mutex
	// istio is the enforcer that was built last, and builtFrom is its input.
	istio     istio.Enforcer
	builtFrom istioInput
	// denies contains the denies that it considers, as text; built reports whether there is such an enforcer.
	denies string
	built  bool
	// settled are the enforcers for members in which earlier rules of a class count, built from the same input.
	settled map[*policy.Snapshot]istio.Enforcer
	// config contains the declarations of the members, and text is its serialized form.
	config istio.Config
	text   string
}

// istioInput is the input of Istio's enforcer.
type istioInput struct {
	version  uint64
	second   int64
	declared string
}

// Reason is the reason why there is no enforcer. Absent reports whether the host distributes nothing of it, so no member
// has objects of it.
type Reason struct {
	Absent  bool
	Message message.Message
}

// Of returns the enforcer with a name, or the reason why there is none. Cilium's and Istio's depend on what the adapter reads from the
// members. Every other enforcer is used as it is registered.
func (d *Enforcers) Of(name v1alpha1.EnforcerName, v *policycache.View, clusters []federation.Cluster, now time.Time) (enforcer.Enforcer, *Reason) {
	switch name {
	case v1alpha1.EnforcerCilium:
		return d.forCilium(clusters), nil
	case v1alpha1.EnforcerIstio:
		if supported, why := d.IstioSupport(); !supported || !why.IsZero() {
			return nil, &Reason{Absent: !supported, Message: why}
		}
		e, err := d.forIstio(v, clusters, now)
		if err != nil {
			return nil, &Reason{Message: message.Of(err)}
		}
		return e, nil
	}
	plan, err := registry.Prepare(name, registry.Job{Snapshot: v.Snapshot, At: now})
	switch {
	case errors.Is(err, registry.ErrUnknown):
		return nil, &Reason{Absent: true, Message: message.EnforcerNotDriven()}
	case err != nil:
		return nil, &Reason{Message: message.Of(err)}
	}
	return plan.Enforcer, nil
}

// forCilium returns Cilium's enforcer for the capabilities of the agents in each member.
func (d *Enforcers) forCilium(clusters []federation.Cluster) cilium.Enforcer {
	out := cilium.Enforcer{Members: make(map[string]cilium.Member, len(clusters))}
	for i := range clusters {
		out.Members[clusters[i].Name] = cilium.Member{NoHTTP: d.NoHTTP(clusters[i].Name)}
	}
	return out
}

// NotEnforcing returns, by member, the reason why it enforces nothing that an enforcer renders. Members that are not listed
// do enforce it, as far as they declare.
func (d *Enforcers) NotEnforcing(name v1alpha1.EnforcerName, clusters []federation.Cluster) map[string]message.Message {
	if name != v1alpha1.EnforcerIstio {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c, _ := d.declared(clusters)
	out := map[string]message.Message{}
	for i := range clusters {
		if why := c.UnsupportedReason(clusters[i].Name); !why.IsZero() {
			out[clusters[i].Name] = why
		}
	}
	return out
}

// Dedications returns what members declare about the waypoint of a resource, by member. Members that declare nothing about it are not listed.
func (d *Enforcers) Dedications(resource string, clusters []federation.Cluster) map[string]istio.Dedication {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, _ := d.declared(clusters)
	return c.Dedications(resource)
}

// declared returns what the members declare, and its text. The caller must hold the lock.
func (d *Enforcers) declared(clusters []federation.Cluster) (istio.Config, string) {
	members := map[string]istio.Declaration{}
	for i := range clusters {
		members[clusters[i].Name] = istio.Declaration{Text: clusters[i].Istio, OtherRoot: clusters[i].Locations.NonDefaultIstioRoot()}
	}
	text := fmt.Sprintf("%q", members) // sorted
	if text != d.text || d.config.Members == nil {
		d.text, d.config = text, istio.Declared(members)
	}
	return d.config, text
}

// forIstio makes the enforcer again when its input changed, and once a second, because denies begin and end.
func (d *Enforcers) forIstio(v *policycache.View, clusters []federation.Cluster, now time.Time) (enforcer.Enforcer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	config, text := d.declared(clusters)
	from := istioInput{version: v.Version, second: now.Unix(), declared: text}
	if d.built && d.builtFrom == from {
		if !v.Settled {
			return d.istio, nil
		}
		if e, ok := d.settled[v.Snapshot]; ok {
			return e, nil
		}
	}
	e, err := istio.New(config)
	if err != nil {
		return nil, message.EnforcerMembersIstio(message.Of(err)).WithKind(err)
	}
	units := v.DenyingUnits(v1alpha1.EnforcerIstio, now)
	if v.Settled {
		e = e.WithUnits(units)
		if d.built && d.builtFrom == from {
			if d.settled == nil {
				d.settled = map[*policy.Snapshot]istio.Enforcer{}
			}
			d.settled[v.Snapshot] = e
		}
		return e, nil
	}
	denies, err := denyText(units)
	if err != nil {
		return nil, err
	}
	changed := d.built && (denies != d.denies || from.declared != d.builtFrom.declared)
	d.istio, d.builtFrom, d.denies, d.built, d.settled = e.WithUnits(units), from, denies, true, nil
	if changed {
		d.Changed()
	}
	return d.istio, nil
}

// denyText returns the denies of units as text.
func denyText(units []policy.Unit) (string, error) {
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
