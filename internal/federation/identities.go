package federation

import (
	"fmt"
	"slices"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/internal/federation/foreignpolicy"
)

// Label is a pod label in the form that the dataplane's identities use.
type Label = foreignpolicy.Label

// Handle is an interned Label, which is stored once for all identities.
type Handle = foreignpolicy.Handle

// Identities are the labels of the pods in each member, read from the dataplane's identities. There may be tens of
// thousands of identities with mostly the same labels, so only interned labels are stored.
type Identities struct{ *fleet[[]Handle] }

// NewIdentities returns Identities that are idle until Run. The config needs no Kind and Revision.
func NewIdentities(config FleetConfig) (*Identities, error) {
	config.Kind = ciliumIdentity
	f, err := newFleet(config, identityLabels)
	if err != nil {
		return nil, err
	}
	return &Identities{f}, nil
}

// identityLabels returns the labels of an identity; labels of pods and of Kubernetes are without their source. They are
// not in the object's own labels, of which agents write only the namespace.
func identityLabels(u *unstructured.Unstructured) ([]Handle, error) {
	const source = "k8s:"
	all, _, err := unstructured.NestedStringMap(u.Object, "security-labels")
	if err != nil {
		return nil, fmt.Errorf("read the labels of identity %s: %w", u.GetName(), err)
	}
	out := make([]Handle, 0, len(all))
	for k, v := range all {
		out = append(out, unique.Make(Label{Key: strings.TrimPrefix(k, source), Value: v}))
	}
	return slices.Clip(out), nil
}

// Labels returns the distinct labels in all registered members. For a member that cannot be read, the last known labels
// are used. listed are the members that were read at least once, and missing the others, both sorted.
func (i *Identities) Labels() (labels map[Label]struct{}, listed, missing []string) {
	seen := map[Handle]struct{}{}
	for _, c := range i.Clusters() {
		i.mu.RLock()
		m := i.members[c.Name]
		i.mu.RUnlock()
		if m == nil || !m.watch.everListed() {
			missing = append(missing, c.Name)
			continue
		}
		listed = append(listed, c.Name)
		m.watch.each(func(labels []Handle) {
			for _, l := range labels {
				seen[l] = struct{}{}
			}
		})
	}
	labels = make(map[Label]struct{}, len(seen))
	for h := range seen {
		if l := h.Value(); l.Value != "" && !strings.Contains(l.Key, ":") { // other labels cannot carry a name
			labels[l] = struct{}{}
		}
	}
	return labels, listed, missing
}

// Each calls do with the labels of every identity of a member, as last seen.
func (i *Identities) Each(cluster string, do func(labels []Handle)) {
	i.mu.RLock()
	m := i.members[cluster]
	i.mu.RUnlock()
	if m != nil {
		m.watch.each(do)
	}
}

// Observe reports whether the identities of a member can be read. A member that does not serve the kind has none.
func (i *Identities) Observe(cluster string) Observation {
	o, _ := i.present(cluster)
	return o
}

// Of returns the distinct labels of the given keys in a member, as last seen. It returns false if the member was never
// read.
func (i *Identities) Of(cluster string, keys map[string]bool) (map[Label]struct{}, bool) {
	i.mu.RLock()
	m := i.members[cluster]
	i.mu.RUnlock()
	if m == nil || !m.watch.everListed() {
		return nil, false
	}
	out := map[Label]struct{}{}
	m.watch.each(func(labels []Handle) {
		for _, h := range labels {
			if l := h.Value(); keys[l.Key] {
				out[l] = struct{}{}
			}
		}
	})
	return out, true
}

// Pending reports whether a registered member has neither been read nor found unreadable.
func (i *Identities) Pending() bool {
	for _, c := range i.Clusters() {
		if o, m := i.observe(c.Name); o.Unknown && (m == nil || !m.watch.everListed()) {
			return true
		}
	}
	return false
}
