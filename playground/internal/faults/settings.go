package faults

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// unsafeSettings are agent settings with which Cilium enforces nothing, or something other than the policies specify. The empty key
// deletes the whole ConfigMap, and the key "-" deletes the DaemonSet of the agents; in both cases the configuration is unknown.
var unsafeSettings = []struct{ key, value string }{
	{"policy-audit-mode", "true"}, {"enable-policy", "never"}, {"enable-cilium-clusterwide-network-policy", "false"},
	{"enable-non-default-deny-policies", "false"}, {"policy-cidr-match-mode", "nodes"}, {"", ""}, {"-", ""},
}

// changeSettings changes the configuration of the agents of a member. The dataplane of the drill does not read the configuration
// and continues to enforce, as agents do until they restart, but no resource may be reported as Realized in the member.
func changeSettings(ctx context.Context, d *drill) (*outage, string, error) {
	m, s := pick(d.Rand, fleet.Members()), pick(d.Rand, unsafeSettings)
	o := &outage{misconfigured: m, remaining: 1 + d.IntN(2), end: func(ctx context.Context) error {
		// The ConfigMap is created again, so that it does not keep the added setting.
		if err := d.deleteAgentObject(ctx, m, configMaps, agentsConfig); err != nil {
			return err
		}
		return d.Fleet.SetUpMember(ctx, m)
	}}
	switch s.key {
	case "":
		return o, "ConfigMap deleted in " + m, d.deleteAgentObject(ctx, m, configMaps, agentsConfig)
	case "-":
		return o, "DaemonSet deleted in " + m, d.deleteAgentObject(ctx, m, daemonSets, agentsName)
	}
	return o, fmt.Sprintf("%s=%s in %s", s.key, s.value, m), d.setAgentSetting(ctx, m, s.key, s.value)
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
