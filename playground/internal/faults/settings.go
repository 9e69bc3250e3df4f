package faults

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/playground/internal/fleet"
)

// These resources of a member hold the configuration and the DaemonSet of its Cilium agents.
var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	daemonSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
)

const (
	agentsNamespace = "kube-system"
	agentsConfig    = "cilium-config"
	agentsName      = "cilium"
)

// agentSetting is a change of the settings of the agents of a member.
type agentSetting struct {
	where settingChange
	// key and value are the setting. They are empty where a whole object is deleted.
	key, value string
	// invalidates contains the modes in which no resource may be reported as Realized with this setting.
	invalidates []v1alpha1.Mode
	// finding is the code of the finding that the adapter must report for the member.
	finding string
}

// settingChange is how a setting is changed.
type settingChange string

const (
	inConfigMap     settingChange = "the ConfigMap"
	inNodeConfig    settingChange = "a CiliumNodeConfig" // for some nodes; the ConfigMap stays the same
	deleteConfigMap settingChange = "delete the ConfigMap"
	deleteDaemonSet settingChange = "delete the DaemonSet"
)

var (
	bothModes   = []v1alpha1.Mode{v1alpha1.ModeEnforce, v1alpha1.ModeAudit}
	enforceOnly = []v1alpha1.Mode{v1alpha1.ModeEnforce}
	auditOnly   = []v1alpha1.Mode{v1alpha1.ModeAudit}
)

// agentSettings are the changes of settings. With most of them Cilium enforces nothing, or something other than the policies specify;
// the last ones change what can be enforced, but nothing that the drill's policies need.
var agentSettings = []agentSetting{
	{inConfigMap, "policy-audit-mode", "true", bothModes, "AuditMode"},
	{inConfigMap, "enable-policy", "never", bothModes, "NotEnforcing"},
	{inConfigMap, "enable-policy", "always", auditOnly, "AlwaysEnforcing"},
	{inConfigMap, "enable-cilium-clusterwide-network-policy", "false", bothModes, "PoliciesIgnored"},
	{inConfigMap, "enable-non-default-deny-policies", "false", bothModes, "AuditCloses"},
	{inConfigMap, "policy-cidr-match-mode", "nodes", bothModes, "RangesMatchPods"},
	{inConfigMap, "allow-localhost", "policy", enforceOnly, "NodeRefused"},
	{inConfigMap, "static-cnp-path", "/policies", bothModes, "PoliciesFromFiles"},
	{inConfigMap, "fixed-identity-mapping", "128=kv-store", bothModes, "FixedIdentities"},
	{inNodeConfig, "policy-audit-mode", "true", bothModes, "AuditMode"},
	{inNodeConfig, "allow-localhost", "policy", enforceOnly, "NodeRefused"},
	{deleteConfigMap, "", "", bothModes, "CiliumConfigUnread"},
	{deleteDaemonSet, "", "", bothModes, "CiliumConfigUnread"},
	{inConfigMap, "enable-l7-proxy", "false", nil, "NoHTTP"},
	{inConfigMap, "bpf-policy-map-max", "512", nil, "SmallPolicyMaps"},
	{inNodeConfig, "bpf-policy-map-max", "512", nil, "SmallPolicyMaps"},
}

// nodeConfigs is the kind of objects that change settings for some nodes. No schema is installed for it.
var nodeConfigs = objectKind{kind: "CiliumNodeConfig", namespaced: true, foreign: true,
	target: schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumnodeconfigs"}}

const nodeConfigName = "drill"

// changeSettings changes the configuration of the agents of a member. The dataplane of the drill does not read the configuration
// and continues to enforce, as agents do until they restart, but no resource in a mode that has another meaning with the setting may
// be reported as Realized in the member. Each change is made once before any is repeated.
func changeSettings(ctx context.Context, d *drill) (*outage, string, error) {
	if len(d.settingOrder) == 0 {
		d.settingOrder = d.Perm(len(agentSettings))
	}
	m, s := pick(d.Rand, fleet.Members()), agentSettings[d.settingOrder[0]]
	d.settingOrder = d.settingOrder[1:]
	o := &outage{misconfigured: m, invalidates: s.invalidates, finding: s.finding, remaining: 1 + d.IntN(2), end: func(ctx context.Context) error {
		if s.where == inNodeConfig {
			return d.deleteAgentObject(ctx, m, nodeConfigs.target, nodeConfigName)
		}
		// The ConfigMap is created again, so that it does not keep the added setting.
		if err := d.deleteAgentObject(ctx, m, configMaps, agentsConfig); err != nil {
			return err
		}
		return d.Fleet.SetUpMember(ctx, m)
	}}
	did := fmt.Sprintf("%s=%s in %s of %s", s.key, s.value, s.where, m)
	switch s.where {
	case deleteConfigMap:
		return o, "ConfigMap deleted in " + m, d.deleteAgentObject(ctx, m, configMaps, agentsConfig)
	case deleteDaemonSet:
		return o, "DaemonSet deleted in " + m, d.deleteAgentObject(ctx, m, daemonSets, agentsName)
	case inNodeConfig:
		return o, did, d.createNodeConfig(ctx, m, s.key, s.value)
	case inConfigMap:
	}
	return o, did, d.setAgentSetting(ctx, m, s.key, s.value)
}

// createNodeConfig overrides one setting of the agents of a member on nodes that a label selects.
func (d *drill) createNodeConfig(ctx context.Context, member, key, value string) error {
	if err := d.serveKind(ctx, member, nodeConfigs, true); err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": nodeConfigs.kind, "spec": map[string]any{
		"nodeSelector": map[string]any{"matchLabels": map[string]any{"pool": "drill"}}, "defaults": map[string]any{key: value},
	}}}
	u.SetNamespace(agentsNamespace)
	u.SetName(nodeConfigName)
	return d.retry(ctx, "create a CiliumNodeConfig", func(ctx context.Context) error {
		_, err := d.members[member].Resource(nodeConfigs.target).Namespace(agentsNamespace).Create(ctx, u, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// checkFinding returns an error unless the adapter reports the finding about the changed settings of a member.
func (d *drill) checkFinding(ctx context.Context) error {
	if d.outage == nil || d.outage.finding == "" {
		return nil
	}
	member := d.outage.misconfigured
	u, err := d.host.Resource(v1alpha1.GroupVersion.WithResource("memberclusters")).Get(ctx, member, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the MemberCluster: %w", err)
	}
	all := map[string]*v1alpha1.MemberCluster{}
	if err := decodeInto(all, u); err != nil {
		return err
	}
	findings := all[member].Status.Findings
	if !slices.ContainsFunc(findings, func(f v1alpha1.MemberFinding) bool { return f.Code == d.outage.finding }) {
		return fmt.Errorf("%s is not reported for member %s, but %+v", d.outage.finding, member, findings)
	}
	return nil
}

// setAgentSetting changes one key of the ConfigMap of the agents of a member.
func (d *drill) setAgentSetting(ctx context.Context, member, key, value string) error {
	return d.retry(ctx, "change "+key, func(ctx context.Context) error {
		configs := d.members[member].Resource(configMaps).Namespace(agentsNamespace)
		u, err := configs.Get(ctx, agentsConfig, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedField(u.Object, value, "data", key); err != nil {
			return err
		}
		_, err = configs.Update(ctx, u, metav1.UpdateOptions{})
		return err
	})
}

// deleteAgentObject deletes an object from the namespace of the agents of a member. An absent object is not an error.
func (d *drill) deleteAgentObject(ctx context.Context, member string, kind schema.GroupVersionResource, name string) error {
	return d.retry(ctx, "delete "+name, func(ctx context.Context) error {
		err := d.members[member].Resource(kind).Namespace(agentsNamespace).Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}
