package controllers

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/controllers/index"
	"github.com/acp-io/acp/internal/federation"
)

// openings knows which workloads of ACP's classes are opened by a policy in their member that is not ACP's.
//
// Where a member's identities are known it looks at the pods that are there; where they are not (agents may keep them in a
// store of their own), at what a pod with the class's label may have.
type openings struct {
	index      *index.Index
	policies   *federation.Openings
	identities *federation.Identities
	objects    *federation.Objects
	clusters   func() []federation.Cluster
	// changed is called when other workloads are opened than before.
	changed func()
	wake    chan struct{}

	mu      sync.RWMutex
	members map[string]opened
}

// opened is what is known of one member.
type opened struct {
	// Labels of classes, with a policy that opens a pod which has the label.
	Labels map[federation.Label]string
	// Unsure are all policies of a member whose identities are not known.
	Unsure []federation.Opening
}

func setUpOpenings(mgr manager.Manager, host dynamic.Interface, config Config, all *wake) (*openings, error) {
	o := &openings{index: all.index, identities: all.names.identities, objects: all.objects, clusters: all.fleet.Clusters,
		changed: all.everything, wake: make(chan struct{}, 1)}
	var err error
	if o.policies, err = federation.NewOpenings(federation.FleetConfig{
		Host: host, KubeFedNamespace: config.KubeFedNamespace, CredentialsNamespace: config.CredentialsNamespace,
		Probing: config.Probing.Seldom(), Log: mgr.GetLogger().WithName("openings"), Changed: func(_, _ string) { o.again() },
	}); err != nil {
		return nil, err
	}
	for _, run := range []manager.Runnable{always(o.policies.Run), always(o.run)} {
		if err := mgr.Add(run); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// again asks for a new look.
func (o *openings) again() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *openings) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-o.wake:
		}
		if listed, _ := o.objects.State(); listed {
			o.look()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rest):
		}
	}
}

// look finds out what is opened now. Without policies of others, which is how it should be, it costs nothing.
func (o *openings) look() {
	keys := map[string]bool{}
	for _, c := range o.index.ClassesOnly().ResourceClasses {
		keys[string(c.Spec.LabelKey)] = true
	}
	members := map[string]opened{}
	for _, c := range o.clusters() {
		if policies := o.policies.In(c.Name, o.objects.Ours); len(policies) > 0 {
			members[c.Name] = o.in(c.Name, policies, keys)
		}
	}
	o.mu.Lock()
	same := maps.EqualFunc(o.members, members, opened.equal)
	o.members = members
	o.mu.Unlock()
	if !same {
		o.changed()
	}
}

func (o *openings) in(cluster string, policies []federation.Opening, keys map[string]bool) opened {
	out, identities := opened{Labels: map[federation.Label]string{}}, 0
	o.identities.Each(cluster, func(labels []federation.Handle) {
		identities++
		var ofClasses []federation.Label
		for _, h := range labels {
			if l := h.Value(); keys[l.Key] && out.Labels[l] == "" {
				ofClasses = append(ofClasses, l)
			}
		}
		if len(ofClasses) == 0 {
			return
		}
		pod := make(map[string]string, len(labels))
		for _, h := range labels {
			pod[h.Value().Key] = h.Value().Value
		}
		i := slices.IndexFunc(policies, func(p federation.Opening) bool { return p.Selects(pod) })
		if i < 0 {
			return
		}
		for _, l := range ofClasses {
			out.Labels[l] = policies[i].String()
		}
	})
	if identities == 0 {
		out.Unsure = policies
	}
	return out
}

func (o opened) equal(p opened) bool {
	return maps.Equal(o.Labels, p.Labels) && slices.EqualFunc(o.Unsure, p.Unsure, federation.Opening.Equal)
}

// by names the policy that opens the pods with a label in a member; "": none does.
func (o *openings) by(cluster, key, value string) string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	m := o.members[cluster]
	if name := m.Labels[federation.Label{Key: key, Value: value}]; name != "" {
		return name
	}
	for _, p := range m.Unsure {
		if p.MaySelect(key, value) {
			return p.String()
		}
	}
	return ""
}
