package preflight

import (
	"context"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/message"
)

// Outdated are the agents that are older than their configuration. Agents read most settings only when they start, so that it is not known
// which settings these use.
type Outdated struct {
	// Agents is their number.
	Agents int
	// Changed is the time of the last change of the configuration.
	Changed time.Time
	// Known reports that the settings which they may use are in Sources, too; see Cilium.After.
	Known bool
}

// maxEarlier bounds the earlier settings that are stored.
const maxEarlier = 16

// After returns the configuration with the settings of an earlier one, which agents use that did not start since. The earlier one was read
// completely, or is zero.
func (c Cilium) After(before Cilium) Cilium {
	if c.Outdated.Agents == 0 || len(before.Sources) == 0 || before.Outdated.Agents > 0 && !before.Outdated.Known {
		return c
	}
	current := slices.Clone(c.Sources)
	same := func(a Source) func(Source) bool {
		return func(b Source) bool {
			return a.Base == b.Base && a.Earlier == b.Earlier && a.Where == b.Where && maps.Equal(a.Settings, b.Settings)
		}
	}
	add := func(s Source) {
		if s.Earlier = true; !slices.ContainsFunc(c.Sources, same(s)) {
			c.Sources = append(c.Sources, s)
		}
	}
	c.Sources = current
	for _, s := range before.Sources {
		switch {
		case s.Earlier && before.Outdated.Agents > 0:
			add(s)
		case !s.Earlier && !slices.ContainsFunc(current, same(s)):
			s.Where += " before it was changed"
			add(s)
		}
	}
	c.Outdated.Known = len(c.Sources) <= len(current)+maxEarlier
	c.Sources = c.Sources[:min(len(c.Sources), len(current)+maxEarlier)]
	return c
}

// Complete reports whether the configuration was read completely.
func (c Cilium) Complete() bool { return c.unread().IsZero() }

// lastChange returns the time at which an object's content was changed last, as the API server recorded it for each writer, or the time of
// its creation. Changes of a subresource, as of a status, do not count.
func lastChange(o metav1.Object) time.Time {
	last := o.GetCreationTimestamp().Time
	for _, by := range o.GetManagedFields() {
		if by.Subresource == "" && by.Time != nil && by.Time.After(last) {
			last = by.Time.Time
		}
	}
	return last
}

// readOutdated counts the agents that started before the configuration was changed at a time. The agents' pods are only listed if the
// DaemonSet was not rolled out completely since. A container that was restarted in its pod counts as old, because only the metadata of pods is
// read. A pod that is being deleted does not count: its node may be gone.
func readOutdated(
	ctx context.Context,
	pods metadata.Interface,
	agents *appsv1.DaemonSet,
	at federation.Locations,
	changed time.Time,
) (Outdated, message.Message) {
	s := &agents.Status
	if s.ObservedGeneration >= agents.Generation && s.UpdatedNumberScheduled >= s.DesiredNumberScheduled && !lastChange(agents).Before(changed) {
		return Outdated{}, message.Message{}
	}
	selector, err := metav1.LabelSelectorAsSelector(agents.Spec.Selector)
	if err != nil {
		return Outdated{}, message.Of(err)
	}
	list, err := pods.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(at.CiliumAgents.Namespace).
		List(ctx, metav1.ListOptions{LabelSelector: selector.String(), ResourceVersion: "0"})
	if err != nil {
		return Outdated{}, unread(err, "pods of DaemonSet "+at.CiliumAgents.String())
	}
	out := Outdated{Changed: changed}
	for i := range list.Items {
		if pod := &list.Items[i]; pod.DeletionTimestamp == nil && pod.CreationTimestamp.Time.Before(changed) {
			out.Agents++
		}
	}
	return out, message.Message{}
}
