package federation

import (
	"fmt"
	"slices"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/internal/federation/foreignpolicy"
)

// Label is one label of pods, as the dataplane's identities have it.
type Label = foreignpolicy.Label

// Handle is a label that is held once however many identities have it.
type Handle = foreignpolicy.Handle

// Identities are the labels of the pods in each member, read from the identities that the dataplane keeps of them. There
// are tens of thousands, most labels are in many of them, and nothing else of them is kept.
type Identities struct{ *fleet[[]Handle] }

// NewIdentities makes Identities that do nothing until Run. Kind and Revision of the config are not needed.
func NewIdentities(config FleetConfig) (*Identities, error) {
	config.Kind = ciliumIdentity
	f, err := newFleet(config, identityLabels)
	if err != nil {
		return nil, err
	}
	return &Identities{f}, nil
}

// identityLabels returns the labels of an identity, those that come from the pod and from Kubernetes without their source.
// They are not in the object's own labels, of which agents write only the namespace.
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

// Labels are the distinct labels in all registered members: of a member that cannot be read now, the last that were seen.
// listed are the members of which any were seen, and missing those of which none ever were, both sorted.
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
		if l := h.Value(); l.Value != "" && !strings.Contains(l.Key, ":") { // nothing else can name anybody
			labels[l] = struct{}{}
		}
	}
	return labels, listed, missing
}

// Each calls do with the labels of every identity of a member, as they were last seen.
func (i *Identities) Each(cluster string, do func(labels []Handle)) {
	i.mu.RLock()
	m := i.members[cluster]
	i.mu.RUnlock()
	if m != nil {
		m.watch.each(do)
	}
}

// Observe tells whether the identities of a member can be read. One that does not have the kind has none.
func (i *Identities) Observe(cluster string) Observation {
	o, _ := i.present(cluster)
	return o
}

// Of are the distinct labels in a member, as they were last seen, of the keys that are asked for; false: it was never read.
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

// Waits reports whether a registered member has neither been read nor found unreadable.
func (i *Identities) Waits() bool {
	for _, c := range i.Clusters() {
		if o, m := i.observe(c.Name); o.Unknown && (m == nil || !m.watch.everListed()) {
			return true
		}
	}
	return false
}
