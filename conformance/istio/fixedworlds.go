package istio

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/istiotest"
	"github.com/acp-io/acp/internal/policy"
)

// soon is a time at which what is valid at istiotest.Noon ends.
func soon() *metav1.Time {
	t := metav1.NewTime(istiotest.Noon.Add(time.Hour))
	return &t
}

// withOpenPorts returns a random world with the class of sites alone, whose other ports are open, and one statement about connections, which allows
// anyone for a limited time. The site is in temporary audit, with a mode of its own in one member. Random worlds hardly ever have these features together
// without a statement that is refused for ztunnel.
func withOpenPorts(random policy.Input, suffix string, member v1alpha1.ClusterName) policy.Input {
	out := random
	out.ResourceClasses = nil
	for _, c := range random.ResourceClasses {
		if c.Name == "web" {
			c = c.DeepCopy()
			c.Spec.OtherPorts = v1alpha1.OtherPortsAllow
			out.ResourceClasses = append(out.ResourceClasses, c)
		}
	}
	site := v1alpha1.ResourceName(istiotest.SiteHead + "shop" + suffix)
	out.Resources = changed(random.Resources, site, func(r *v1alpha1.ProtectedResourceSpec) {
		r.Mode, r.ClusterModes = v1alpha1.ModeEnforce, []v1alpha1.ClusterMode{{Cluster: member, Mode: v1alpha1.ModeEnforce}}
		r.TemporaryAudit = &v1alpha1.TemporaryAudit{Until: *soon()}
	})
	out.Policies = []*v1alpha1.AccessControlPolicy{statements("p0", v1alpha1.Statement{Effect: policy.Allow, Subjects: []v1alpha1.Subject{"*"},
		Actions: []v1alpha1.Action{"web:connect"}, Resources: []v1alpha1.ResourceName{site}, NotAfter: soon()})}
	return out
}

// withRequestsOfAnyone returns a random world with a statement about anyone's requests to the site, by a wildcard and for a limited time. The site has a
// mode of its own in one member. The statement is a deny, or an allow in temporary audit.
func withRequestsOfAnyone(random policy.Input, suffix string, member v1alpha1.ClusterName, deny bool) policy.Input {
	site := v1alpha1.ResourceName(istiotest.SiteHead + "shop" + suffix)
	added := v1alpha1.Statement{Effect: policy.Allow, Subjects: []v1alpha1.Subject{"*"}, Actions: []v1alpha1.Action{"web:read"},
		Resources: []v1alpha1.ResourceName{istiotest.SiteHead + "sh*"}, NotAfter: soon()}
	if deny {
		added.Effect = policy.Deny
	}
	out := random
	out.Resources = changed(random.Resources, site, func(r *v1alpha1.ProtectedResourceSpec) {
		r.Mode, r.ClusterModes, r.TemporaryAudit = v1alpha1.ModeEnforce, []v1alpha1.ClusterMode{{Cluster: member, Mode: v1alpha1.ModeEnforce}}, nil
		if !deny {
			r.TemporaryAudit = &v1alpha1.TemporaryAudit{Until: *soon()}
		}
	})
	out.Policies = append(slices.Clone(random.Policies), statements("anyone", added))
	return out
}

// changed returns the resources with a changed copy of one of them.
func changed(all []*v1alpha1.ProtectedResource, name v1alpha1.ResourceName, change func(*v1alpha1.ProtectedResourceSpec)) []*v1alpha1.ProtectedResource {
	out := slices.Clone(all)
	for i, r := range out {
		if r.Spec.Resource == name {
			out[i] = r.DeepCopy()
			change(&out[i].Spec)
		}
	}
	return out
}

// statements returns a policy with one statement.
func statements(name string, st v1alpha1.Statement) *v1alpha1.AccessControlPolicy {
	st.SID = "s0"
	return &v1alpha1.AccessControlPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{st}},
	}
}
