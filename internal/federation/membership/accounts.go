package membership

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/deploy/rbac/direct"
	"github.com/acp-io/acp/deploy/rbac/member"
	"github.com/acp-io/acp/deploy/rbac/ocm"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/tokens"
)

// accounts creates the accounts of the engine and the adapter in the member, with their roles.
func (j *Join) accounts(ctx context.Context, objects dynamic.Interface) error {
	all, err := accounts(j.Cluster.Engine)
	if err != nil {
		return err
	}
	if j.Cluster.Locations != (federation.Locations{}) {
		if err := j.mayRead(all); err != nil {
			return err
		}
	}
	for _, o := range all {
		if err := j.step(applyObject(ctx, objects, j.Cluster.Name, o, j.DryRun)); err != nil {
			return err
		}
	}
	return nil
}

// mayRead lets the adapter read the parts of the dataplane at their places.
func (j *Join) mayRead(objects []*unstructured.Unstructured) error {
	at := j.Cluster.Locations
	names := map[string][]string{"configmaps": {at.CiliumConfig.Name}, "daemonsets": {at.CiliumAgents.Name, at.CiliumEnvoy.Name}}
	for _, o := range objects {
		if o.GetKind() != "ClusterRole" || o.GetName() != readerRole {
			continue
		}
		rules, _, err := unstructured.NestedSlice(o.Object, "rules")
		if err != nil {
			return fmt.Errorf("read the rules of ClusterRole %s: %w", readerRole, err)
		}
		for _, r := range rules {
			rule, _ := r.(map[string]any)
			resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
			may, _, _ := unstructured.NestedStringSlice(rule, "resourceNames")
			if len(resources) != 1 || names[resources[0]] == nil || len(may) == 0 {
				continue
			}
			may = append(may, names[resources[0]]...)
			slices.Sort(may)
			if err := unstructured.SetNestedStringSlice(rule, slices.Compact(may), "resourceNames"); err != nil {
				return fmt.Errorf("write the rules of ClusterRole %s: %w", readerRole, err)
			}
		}
		if err := unstructured.SetNestedSlice(o.Object, rules, "rules"); err != nil {
			return fmt.Errorf("write the rules of ClusterRole %s: %w", readerRole, err)
		}
	}
	return nil
}

// readerRole is the ClusterRole of the adapter in a member.
const readerRole = "acp-adapter"

// accounts returns the objects of a member, in the order in which they are needed: the accounts of the adapter and of some engines,
// with their roles.
func accounts(engines ...federation.Engine) ([]*unstructured.Unstructured, error) {
	out := []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": tokens.Namespace}}}}
	others := map[string]bool{}
	for _, e := range federation.Engines() {
		others[e.Account()] = !slices.Contains(engines, e)
	}
	for _, account := range []string{tokens.Pusher, tokens.Direct, tokens.Reader} {
		if others[account] {
			continue
		}
		out = append(out, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount",
			"metadata": map[string]any{"namespace": tokens.Namespace, "name": account}}})
	}
	roles, err := manifests(member.Files)
	if err != nil {
		return nil, err
	}
	own, err := rolesOf(engines, func(r engineRoles) []byte { return r.always })
	if err != nil {
		return nil, err
	}
	for _, o := range append(roles, own...) {
		if !others[o.GetName()] {
			out = append(out, o)
		}
	}
	return out, nil
}

// engineRoles are the roles that only the members of one engine have: always, and for Istio's policies.
type engineRoles struct {
	engine        federation.Engine
	always, istio []byte
}

// rolesOf returns some of the roles of some engines.
func rolesOf(engines []federation.Engine, which func(engineRoles) []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, r := range []engineRoles{{federation.EngineDirect, direct.Roles, direct.Istio}, {federation.EngineOCM, ocm.Roles, ocm.Istio}} {
		if !slices.Contains(engines, r.engine) {
			continue
		}
		own, err := documents("the roles of the engine "+string(r.engine), which(r))
		if err != nil {
			return nil, err
		}
		out = append(out, own...)
	}
	return out, nil
}
