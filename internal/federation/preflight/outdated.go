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

// Outdated are the agents that are older than their configuration. Agents read most settings only when they start, so that these may use
// other settings than those that were read.
type Outdated struct {
	// Agents is their number.
	Agents int
	// Changed is the time of the last change of the configuration.
	Changed time.Time
	// Known reports whether the settings which they may use are known: they are in Sources, too, or change no meaning.
	Known bool
}

// AgentPods are the pods of the agents that are not being deleted. A container that was restarted in its pod counts as old, because only the
// metadata of pods is read.
type AgentPods struct {
	// Unread is the reason why they are not known, or zero.
	Unread message.Message
	// Created are the times of their creation, sorted.
	Created []time.Time
	// Template is the newest creation of a pod with an earlier template than the present one of the DaemonSet; zero if there is none.
	Template time.Time
}

// Annotation and label by which the controller of DaemonSets records of which template a pod was made.
const (
	templateGeneration      = "deprecated.daemonset.template.generation"
	labelTemplateGeneration = "pod-template-generation"
)

// listAgentPods lists the metadata of the agents' pods. The API server answers from its cache.
func listAgentPods(ctx context.Context, pods metadata.Interface, agents *appsv1.DaemonSet, at federation.Locations) AgentPods {
	if agents.Spec.Selector == nil {
		return AgentPods{} // the API server accepts no such DaemonSet
	}
	selector, err := metav1.LabelSelectorAsSelector(agents.Spec.Selector)
	if err != nil {
		return AgentPods{Unread: message.Of(err)}
	}
	list, err := pods.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(at.CiliumAgents.Namespace).
		List(ctx, metav1.ListOptions{LabelSelector: selector.String(), ResourceVersion: "0"})
	if err != nil {
		return AgentPods{Unread: unread(err, "pods of DaemonSet "+at.CiliumAgents.String())}
	}
	var out AgentPods
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.DeletionTimestamp != nil {
			continue // its node may be gone
		}
		created := pod.CreationTimestamp.Time
		out.Created = append(out.Created, created)
		present, of := agents.Annotations[templateGeneration], pod.Labels[labelTemplateGeneration]
		if present != "" && of != "" && of != present && created.After(out.Template) {
			out.Template = created
		}
	}
	slices.SortFunc(out.Created, time.Time.Compare)
	return out
}

// lastChange returns the time at which an object's content was changed last, as the API server recorded it for each writer, or the time of
// its creation. Changes of a subresource, as of a status, do not count.
func lastChange(o metav1.Object) time.Time {
	last := o.GetCreationTimestamp().Time
	for _, by := range o.GetManagedFields() {
		if by.Subresource == "" && by.Time != nil {
			last = latest(last, by.Time.Time)
		}
	}
	return last
}

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// installing is how long after the DaemonSet its ConfigMap may be created by the same installation, which need not order them.
const installing = 10 * time.Minute

// configChange returns the time at which the ConfigMap was changed last after agents could start; zero if it is as it was installed. Agents
// cannot start before it exists.
func configChange(config, agents metav1.Object) time.Time {
	last, created := lastChange(config), config.GetCreationTimestamp().Time
	if after := created.Sub(agents.GetCreationTimestamp().Time); !last.After(created) && after >= 0 && after < installing {
		return time.Time{}
	}
	return last
}

// ChangedAt records that the configuration was changed at a time, and which agents are older.
func (c *Cilium) ChangedAt(changed time.Time) {
	if template := c.Pods.Template; !template.IsZero() && !template.Before(changed) {
		changed = template.Add(time.Second) // the times of the API server have no fractions
	}
	older, _ := slices.BinarySearchFunc(c.Pods.Created, changed, time.Time.Compare)
	c.Outdated = Outdated{Agents: older, Changed: changed}
}

// maxEarlier bounds the earlier settings that are stored.
const maxEarlier = 16

// After returns the configuration with the settings of an earlier one that was read completely at a time, because agents that did not start
// since use them. A source that is missing or differs was changed after that time, also if the API server recorded no change of it.
func (c Cilium) After(before Cilium, read time.Time) Cilium {
	current := slices.Clone(c.Sources)
	same := func(a Source) func(Source) bool {
		return func(b Source) bool {
			return a.Base == b.Base && a.Earlier == b.Earlier && a.Where == b.Where && maps.Equal(a.Settings, b.Settings)
		}
	}
	var earlier []Source
	changed := latest(c.Outdated.Changed, before.Outdated.Changed)
	for _, s := range before.Sources {
		switch {
		case s.Earlier:
			earlier = append(earlier, s)
		case !slices.ContainsFunc(current, same(s)):
			changed = latest(changed, read)
			s.Earlier = true
			earlier = append(earlier, s)
		}
	}
	c.ChangedAt(changed)
	if c.Outdated.Agents == 0 {
		return c
	}
	c.Sources = current
	for _, s := range earlier {
		if !slices.ContainsFunc(c.Sources, same(s)) {
			c.Sources = append(c.Sources, s)
		}
	}
	// An agent that started after the earlier read may have found settings that were never read.
	seen := !c.Pods.Created[c.Outdated.Agents-1].After(read)
	c.Outdated.Known = seen && len(c.Sources) <= len(current)+maxEarlier && (before.Outdated.Agents == 0 || before.Outdated.Known)
	c.Sources = c.Sources[:min(len(c.Sources), len(current)+maxEarlier)]
	return c
}

// Complete reports whether the configuration was read completely.
func (c Cilium) Complete() bool { return c.unread().IsZero() }

// ChangesMeaning reports whether findings with a code may be about settings that change the meaning of policies, or that are not known.
func ChangesMeaning(code string) bool {
	return slices.Contains([]string{ConfigUnread, AgentSettingsUnknown, LabelNotIdentity, LabelsUnreadable, Unreachable}, code) ||
		slices.ContainsFunc(checkedSettings, func(s setting) bool { return s.code == code })
}
