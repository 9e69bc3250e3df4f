package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/acp-io/acp/api/v1alpha1"
)

// reader lists classes, or fails.
type reader struct {
	client.Reader
	resources []v1alpha1.ResourceClass
	subjects  []v1alpha1.SubjectClass
	err       error
}

func (r *reader) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch l := into.(type) {
	case *v1alpha1.ResourceClassList:
		l.Items = r.resources
	case *v1alpha1.SubjectClassList:
		l.Items = r.subjects
	}
	return r.err
}

func review(t *testing.T, operation admissionv1.Operation, kind string, old, now any) ctrladmission.Request {
	t.Helper()
	raw := func(o any) runtime.RawExtension {
		if o == nil {
			return runtime.RawExtension{}
		}
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: text}
	}
	return ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation,
		Kind: metav1.GroupVersionKind{Kind: kind}, OldObject: raw(old), Object: raw(now)}}
}

func TestHandle(t *testing.T) {
	full := &reader{
		resources: []v1alpha1.ResourceClass{{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{
			Pattern:  "trnv1:rsc:trip-com:redis:clusters:*",
			LabelKey: "r",
			Actions:  []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379}}}},
		}}},
		subjects: []v1alpha1.SubjectClass{{ObjectMeta: metav1.ObjectMeta{Name: "application"}, Spec: v1alpha1.SubjectClassSpec{
			Pattern: "trnv1:rsc:trip-com:iam:sa:app/*", LabelKey: "s"}}},
	}
	behind, broken := &reader{}, &reader{err: errors.New("secret address refused")}
	good := grant("p", allow("s", app888, bobs))
	unknown := grant("p", allow("s", "trnv1:rsc:trip-com:iam:vm:a", bobs))
	shorter := grant("p", unknown.Spec.Statements...)
	longer := grant("p", append(unknown.DeepCopy().Spec.Statements, allow("t", app888, bobs))...)
	leaving := unknown.DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)}
	cases := map[string]struct {
		reason       string
		cached, live client.Reader
		request      ctrladmission.Request
		denied       bool
		told         string
	}{
		"Good": {"everything is known", full, full, review(t, admissionv1.Create, "AccessControlPolicy", nil, good), false, ""},
		"BehindCache": {
			"a cache that does not know the class yet is not believed",
			behind,
			full,
			review(t, admissionv1.Create, "AccessControlPolicy", nil, good),
			false,
			"",
		},
		"Unknown": {
			"neither knows the class",
			behind,
			full,
			review(t, admissionv1.Create, "AccessControlPolicy", nil, unknown),
			true,
			"no SubjectClass covers it",
		},
		"Unreadable": {
			"it fails open, and reveals nothing internal",
			broken,
			broken,
			review(t, admissionv1.Create, "AccessControlPolicy", nil, unknown),
			false,
			"not checked",
		},
		"Revocation": {
			"what was wrong before does not keep a statement from being taken away",
			full,
			full,
			review(t, admissionv1.Update, "AccessControlPolicy", longer, shorter),
			false,
			"no SubjectClass covers it",
		},
		"Unchanged": {
			"labels may change whatever the statements are",
			full,
			full,
			review(t, admissionv1.Update, "AccessControlPolicy", unknown, unknown),
			false,
			"",
		},
		"Finalizer": {
			"an object that is being deleted is let go",
			full,
			full,
			review(t, admissionv1.Update, "AccessControlPolicy", good, leaving),
			false,
			"",
		},
		"OtherKind": {"not one of ours", full, full, review(t, admissionv1.Create, "ConfigMap", nil, good), false, ""},
		"NoObject":  {"a review without object is malformed", full, full, review(t, admissionv1.Create, "AccessControlPolicy", nil, nil), true, "no object"},
		"Malformed": {"an object that is none", full, full, review(t, admissionv1.Create, "AccessControlPolicy", nil, []int{1}), true, "cannot be read"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := &Handler{Cached: tc.cached, Live: tc.live, Now: func() time.Time { return time.Unix(0, 0) }}
			got := h.Handle(context.Background(), tc.request)
			told := strings.Join(got.Warnings, "\n")
			if got.Result != nil {
				told += got.Result.Message
			}
			if got.Allowed == tc.denied || !strings.Contains(told, tc.told) || strings.Contains(told, "secret address") {
				t.Errorf("%s: allowed %v, message %q; want denied %v, %q", tc.reason, got.Allowed, told, tc.denied, tc.told)
			}
		})
	}
}

func TestWarningsAreShort(t *testing.T) {
	if got := clip(strings.Repeat("é", 200)); len(got) > maxWarning || !strings.HasSuffix(got, "...") {
		t.Errorf("clipped to %d bytes: %q", len(got), got)
	}
}
