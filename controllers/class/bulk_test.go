package class

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPropagated(t *testing.T) {
	waiting := func(class string, n int) []string {
		var out []string
		for i := range n {
			out = append(out, fmt.Sprintf("trnv1:rsc:trip-com:%s:clusters:r%d", class, i))
		}
		return out
	}
	for _, c := range []struct {
		reason  string
		waiting []string
		status  metav1.ConditionStatus
		message string
	}{
		{"nothing waits", nil, metav1.ConditionTrue, ""},
		{"a few are over in two seconds", waiting("redis", 40), metav1.ConditionTrue, ""},
		{"many take their time", waiting("redis", 2000), metav1.ConditionFalse,
			"up to 2000 units of the class wait to be written: about 100 s; revocations and single grants do not wait for them"},
		{"the next of them is not worth a word", waiting("redis", 1923), metav1.ConditionFalse,
			"up to 2000 units of the class wait to be written: about 100 s; revocations and single grants do not wait for them"},
		{"those of another class are not its own, but come in between", append(waiting("redis", 100), waiting("mysql", 100)...), metav1.ConditionFalse,
			"up to 100 units of the class wait to be written: about 10 s; revocations and single grants do not wait for them"},
		{"only another class changes", waiting("mysql", 100), metav1.ConditionTrue, ""},
	} {
		got := propagationEstimate("trnv1:rsc:trip-com:redis:clusters:*", c.waiting)
		if got.Status != c.status || got.Message != c.message {
			t.Errorf("%s: %s %q", c.reason, got.Status, got.Message)
		}
	}
}
