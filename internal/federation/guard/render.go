package guard

import (
	"fmt"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Objects returns the policies and their bindings, each policy before its binding. If any credentials of workloads are
// given, it includes the policy that guards them. pushers are the users as which the member's engines write; without any,
// it is Pusher.
func Objects(c Credentials, pushers ...string) ([]*unstructured.Unstructured, error) {
	if len(pushers) == 0 {
		pushers = []string{Pusher}
	}
	type part struct {
		name  string
		spec  admission.ValidatingAdmissionPolicySpec
		param *admission.ParamRef
	}
	parts := []part{{PolicyWriters, writers(pushers), nil}, {PolicyDowngrade, downgraded(pushers), markParam()}}
	if !c.Empty() {
		parts = append(parts, part{PolicyClassLabels, credentials(c), nil})
	}
	var out []*unstructured.Unstructured
	for _, p := range parts {
		meta := metav1.TypeMeta{APIVersion: admission.SchemeGroupVersion.String()}
		meta.Kind = kindPolicy
		policy, err := toUnstructured(&admission.ValidatingAdmissionPolicy{TypeMeta: meta, ObjectMeta: metav1.ObjectMeta{Name: p.name}, Spec: p.spec})
		if err != nil {
			return nil, err
		}
		meta.Kind = kindBinding
		binding, err := toUnstructured(&admission.ValidatingAdmissionPolicyBinding{
			TypeMeta:   meta,
			ObjectMeta: metav1.ObjectMeta{Name: p.name},
			Spec: admission.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        p.name,
				ParamRef:          p.param,
				ValidationActions: []admission.ValidationAction{admission.Deny},
			},
		})
		if err != nil {
			return nil, err
		}
		out = append(out, policy, binding)
	}
	return out, nil
}

const (
	kindPolicy  = "ValidatingAdmissionPolicy"
	kindBinding = "ValidatingAdmissionPolicyBinding"
)

func toUnstructured(o runtime.Object) (*unstructured.Unstructured, error) {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", o, err)
	}
	unstructured.RemoveNestedField(m, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(m, "status")
	return &unstructured.Unstructured{Object: m}, nil
}
