package controllers_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
)

// TestHostNetworkPodsAreReported checks that a member with a pod of an enforced resource on its node's network, which no policy selects, is
// not realized, and that the message names the pod.
func TestHostNetworkPodsAreReported(t *testing.T) {
	s := enforced(t, "hostpods")
	pod := func(name string, host bool) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"com.trip/hostpods": "bobs"}},
			Spec: corev1.PodSpec{HostNetwork: host, Containers: []corev1.Container{{Name: "redis", Image: "redis"}}}}
	}
	for _, p := range []*corev1.Pod{pod("hosted", true), pod("ordinary", false)} {
		p.Labels["com.trip/hostpods"] = strings.TrimPrefix(string(s.resource()), "trnv1:rsc:trip-com:hostpods:clusters:")
		if err := s.members["m2"].client.Create(s.ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	s.untilStates("one pod is open", map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized, "m2": v1alpha1.MemberPending})
	if m := s.message("m2"); !strings.Contains(m, "default/hosted") || strings.Contains(m, "ordinary") {
		t.Errorf("%q", m)
	}
	if err := s.members["m2"].client.Delete(s.ctx, pod("hosted", true)); err != nil {
		t.Fatal(err)
	}
	s.untilStates("it is gone", bothRealized)
}
