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

// Where a member keeps what configures its agents.
var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	daemonSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
)

const (
	agentsNamespace = "kube-system"
	agentsConfig    = "cilium-config"
	agentsName      = "cilium"
)

// voidSettings make agents enforce nothing, or something else than policies say. The empty key takes the whole configuration away,
// and the key "-" the agents' DaemonSet: then it is unknown how they are configured.
var voidSettings = []struct{ key, value string }{
	{"policy-audit-mode", "true"}, {"enable-policy", "never"}, {"enable-cilium-clusterwide-network-policy", "false"},
	{"enable-non-default-deny-policies", "false"}, {"policy-cidr-match-mode", "nodes"}, {"", ""}, {"-", ""},
}

// changeSettings changes how the agents of a member are configured. The dataplane here reads nothing of it and goes on enforcing, as
// agents do until they are restarted; but the member must not be called realized.
func changeSettings(ctx context.Context, d *drill) (*outage, string, error) {
	m, s := pick(d.Rand, fleet.Members()), pick(d.Rand, voidSettings)
	o := &outage{void: m, lasts: 1 + d.IntN(2), end: func(ctx context.Context) error {
		// Anew, without what was added.
		if err := d.deleteSetting(ctx, m, configMaps, agentsConfig); err != nil {
			return err
		}
		return d.Fleet.SetUpMember(ctx, m)
	}}
	switch s.key {
	case "":
		return o, "none in " + m, d.deleteSetting(ctx, m, configMaps, agentsConfig)
	case "-":
		return o, "no agents in " + m, d.deleteSetting(ctx, m, daemonSets, agentsName)
	}
	return o, fmt.Sprintf("%s=%s in %s", s.key, s.value, m), d.set(ctx, m, s.key, s.value)
}

// set changes one setting of the agents of a member.
func (d *drill) set(ctx context.Context, member, key, value string) error {
	return d.patiently(ctx, "change "+key, func(ctx context.Context) error {
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

func (d *drill) deleteSetting(ctx context.Context, member string, kind schema.GroupVersionResource, name string) error {
	return d.patiently(ctx, "delete "+name, func(ctx context.Context) error {
		err := d.members[member].Resource(kind).Namespace(agentsNamespace).Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}
