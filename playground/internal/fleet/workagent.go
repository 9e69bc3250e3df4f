package fleet

import (
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/deploy/rbac/ocm"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

// agentOnHost is the user of the work agents on the host.
const agentOnHost = "system:open-cluster-management:work-agents"

// AgentOf returns the name of the process of the work agent of a member.
func AgentOf(member string) string { return "agent-" + member }

// workAgent returns the process of the real work agent of a member. It reports every second, and never removes an object because its
// ManifestWork is missing.
func (f *Fleet) workAgent(member string) supervisor.Spec {
	return supervisor.Spec{
		Name: AgentOf(member), Layer: LayerFederation, Path: f.Built.Path(parts.OCM, parts.OCMWorkAgent),
		Args: []string{"--cluster-name=" + member, "--member-kubeconfig=" + f.Layout.Kubeconfig(AgentOf(member)),
			"--host-kubeconfig=" + f.Layout.Kubeconfig(AgentOf(member)+"-host"), "--status-sync-interval=1s", "--eviction-grace-period=876000h"},
	}
}

// workObjects returns what the host needs for the members into which work agents write: the kind of ManifestWorks, the members' namespaces,
// the rights of the agents there as OCM v1.0.0 grants them, those of the adapter, and the policy for the adapter's ManifestWorks.
func (f *Fleet) workObjects() ([]*unstructured.Unstructured, error) {
	if len(f.pull) == 0 {
		return nil, nil
	}
	out, err := ParseDir(filepath.Join(f.Repo, "internal/propagation/ocm/testdata/host"))
	if err != nil {
		return nil, err
	}
	for _, m := range f.pull {
		rights, err := Parse("host.yaml", ocm.Host)
		if err != nil {
			return nil, err
		}
		for _, o := range rights {
			o.SetNamespace(m)
			if o.GetKind() == "RoleBinding" {
				o.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "namespace": ACPNamespace, "name": Adapter}}
			}
		}
		manifest, err := Parse("the rights of the agent of "+m, fmt.Appendf(nil, agentRights, m, agentOnHost))
		if err != nil {
			return nil, err
		}
		out = append(append(out, manifest...), rights...)
	}
	restricted, err := guard.WorksObjects(users(Host)[Adapter].name)
	if err != nil {
		return nil, fmt.Errorf("render the policy for ManifestWorks: %w", err)
	}
	return append(out, restricted...), nil
}

// agentRights are the namespace of a member on the host, and the rights of its work agent there (OCM v1.0.0,
// manifests/hub/managedcluster/work).
const agentRights = `apiVersion: v1
kind: Namespace
metadata:
  name: %[1]s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  namespace: %[1]s
  name: work-agent
rules:
  - apiGroups: [work.open-cluster-management.io]
    resources: [manifestworks]
    verbs: [get, list, watch, update, patch]
  - apiGroups: [work.open-cluster-management.io]
    resources: [manifestworks/status]
    verbs: [patch, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  namespace: %[1]s
  name: work-agent
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: work-agent
subjects:
  - kind: User
    apiGroup: rbac.authorization.k8s.io
    name: %[2]s
`

// agentObjects returns what a member needs for its work agent: the kind of its records, the rights that OCM grants it, and those that ACP
// grants it.
func (f *Fleet) agentObjects() ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, dir := range []string{"internal/propagation/ocm/testdata/member", "internal/propagation/ocm/testdata/agent"} {
		more, err := ParseDir(filepath.Join(f.Repo, dir))
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	for file, data := range map[string][]byte{"roles.yaml": ocm.Roles, "istio.yaml": ocm.Istio} {
		more, err := Parse(file, data)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}
