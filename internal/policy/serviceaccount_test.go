package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
)

func TestSubjectsOfServiceAccount(t *testing.T) {
	class := func(name, pattern, template string) *v1alpha1.SubjectClass {
		c := &v1alpha1.SubjectClass{Spec: v1alpha1.SubjectClassSpec{Pattern: v1alpha1.NamePattern(pattern), LabelKey: v1alpha1.LabelKey("k/" + name),
			ServiceAccountTemplate: template}}
		c.Name = name
		return c
	}
	s := NewSnapshot(Input{SubjectClasses: []*v1alpha1.SubjectClass{
		class("apps", "trnv1:rsc:trip-com:iam:sa:app/*", "app-{id}"),
		class("jobs", "trnv1:rsc:trip-com:iam:sa:job/*", "{id}-job"),
		class("users", "trnv1:rsc:trip-com:iam:user:*", ""),
	}})
	const app, job = "trnv1:rsc:trip-com:iam:sa:app/", "trnv1:rsc:trip-com:iam:sa:job/"
	for account, want := range map[string][]string{
		"app-888":     {app + "888"},
		"night-job":   {job + "night"},
		"app-n-job":   {app + "n-job", job + "app-n"},
		"default":     nil,
		"app-":        nil,
		"app":         nil,
		"-job":        nil,
		"app-a b":     nil,
		"xapp-888":    nil,
		"":            nil,
		"app-888.job": {app + "888.job"},
	} {
		if diff := cmp.Diff(want, s.SubjectsOfServiceAccount(account)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", account, diff)
		}
	}
}
