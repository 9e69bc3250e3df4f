package controllers

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/acp-io/acp/controllers/membercluster"
	"github.com/acp-io/acp/internal/federation"
)

// setUpMemberClusters adds the writer of MemberClusters.
func setUpMemberClusters(mgr manager.Manager, config Config, w *triggers, ready func(context.Context) error) (*membercluster.Writer, error) {
	writer := &membercluster.Writer{
		Client: mgr.GetClient(), Fleet: w.fleet, LastCheck: w.inspector.LastResult, Board: w.reports, Complete: w.complete, Ready: ready,
		Identities: w.names.counted.Count, Labels: w.names.counted.Labels, Values: w.names.valuesIn, NoHTTP: w.inspector.NoHTTP, SupportsGroups: w.cache.GroupsSupported, Orphans: w.orphans, Clock: config.Clock, Interval: config.StatusInterval, Log: mgr.GetLogger().WithName("memberclusters"),
	}
	if err := writer.Prepare(); err != nil {
		return nil, err
	}
	if config.Metrics != nil {
		if err := config.Metrics.Register(writer); err != nil {
			return nil, fmt.Errorf("register the metrics of members: %w", err)
		}
	}
	return writer, mgr.Add(writer)
}

// complete reports whether everything that is, or was, placed has been decided since the start. A count of units before
// that would be too low.
func (w *triggers) complete() bool {
	for _, r := range w.cache.Resources() {
		if !w.reports.Decided(r) {
			return false
		}
	}
	for _, o := range w.kinds.List() {
		if r := o.Resource(); r != "" && !w.reports.Decided(r) {
			return false
		}
	}
	return true
}

// orphans returns the objects of a member with ACP's reserved name or label that nothing on the host wants.
func (w *triggers) orphans(cluster string) []string {
	if listed, _ := w.objects.State(); !listed {
		return nil // without the list of wanted objects, nothing counts as an orphan
	}
	reserved := w.fleet.Reserved(cluster)
	if w.istio.carries() {
		for _, name := range w.istio.fleet.Reserved(cluster) {
			reserved = append(reserved, federation.IstioPolicy.Key(name))
		}
	}
	return slices.DeleteFunc(reserved, func(key string) bool {
		_, asked := w.kinds.Get(key)
		_, told := w.reports.ResourceOf(key)
		return asked || told
	})
}
