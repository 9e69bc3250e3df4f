package v1alpha1_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/testenv"
)

var host client.Client

func TestMain(m *testing.M) {
	server, err := testenv.New(testenv.Options{CRDs: []string{"deploy/crds"}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	host, err = client.New(server.Config, client.Options{})
	code := 1
	if err == nil {
		code = m.Run()
	}
	for _, err := range []error{err, server.Stop()} {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// The smallest valid object of each kind.
var valid = map[string]string{
	"AccessControlPolicy": `
spec:
  statements:
    - sid: one
      effect: Allow
      subjects: ["trnv1:rsc:trip-com:iam:sa:app/888"]
      actions: ["redis:connect"]
      resources: ["trnv1:rsc:trip-com:redis:clusters:bobs"]`,
	"ResourceClass": `
spec:
  pattern: "trnv1:rsc:trip-com:redis:clusters:*"
  labelKey: com.trip/redis-cluster
  actions: [{name: "redis:connect", ports: [{port: 6379}]}]
  placement: {clusterSelector: {}}`,
	"SubjectClass": `
spec:
  pattern: "trnv1:rsc:trip-com:iam:sa:app/*"
  labelKey: com.trip/appid`,
	"ProtectedResource": `
spec:
  resource: "trnv1:rsc:trip-com:redis:clusters:bobs"
  mode: Enforce`,
	"ExternalWorkload": `
spec:
  subject: "trnv1:rsc:trip-com:iam:sa:app/888"
  addresses: ["10.0.0.1"]`,
	"ApprovalPolicy": `
spec:
  priority: 10
  steps: [{name: leader, approvers: [requester.leader]}]`,
	"MemberCluster": `
spec: {}`,
	"Organization": `
spec:
  teams: [shop]
  administrators: ["group:shop-leads"]`,
	"AccessRequest": `
spec:
  access: [{resource: "trnv1:rsc:trip-com:redis:clusters:bobs", actions: ["redis:connect"]}]
  duration: 720h
  reason: the shop caches carts`,
}

// object returns a valid object with changes: dotted path (list items by number) to YAML; "" removes the field.
func object(t *testing.T, kind string, changes map[string]string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(valid[kind]), &u.Object); err != nil {
		t.Fatal(err)
	}
	change(t, u, changes)
	u.SetAPIVersion("acp.io/v1alpha1")
	u.SetKind(kind)
	u.SetName(strings.ToLower(kind))
	if kind == "AccessRequest" {
		u.SetNamespace("default")
	}
	return u
}

func change(t *testing.T, u *unstructured.Unstructured, changes map[string]string) {
	t.Helper()
	for path, text := range changes {
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		keys := strings.Split(path, ".")
		var at any = u.Object
		for _, k := range keys[:len(keys)-1] {
			if list, ok := at.([]any); ok {
				i, err := strconv.Atoi(k)
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				at = list[i]
				continue
			}
			at = at.(map[string]any)[k]
		}
		last := keys[len(keys)-1]
		switch parent := at.(type) {
		case []any:
			i, err := strconv.Atoi(last)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			parent[i] = value
		case map[string]any:
			if text == "" {
				delete(parent, last)
			} else {
				parent[last] = value
			}
		default:
			t.Fatalf("%s leads nowhere", path)
		}
	}
}

// verdict checks the API server's answer: want "" is acceptance, otherwise a part of the refusal.
func verdict(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && err == nil:
		t.Errorf("accepted; want a refusal with %q", want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("refused with %v; want %q", err, want)
	}
}

type creation struct {
	reason  string
	kind    string
	changes map[string]string
	want    string
}

func TestCreate(t *testing.T) {
	for _, cases := range [][]creation{names, policies, classes, resources, workloads, approvals, members, requests, organizations} {
		for _, c := range cases {
			t.Run(c.kind+"/"+c.reason, func(t *testing.T) {
				verdict(t, host.Create(context.Background(), object(t, c.kind, c.changes), client.DryRunAll), c.want)
			})
		}
	}
}

func TestUpdate(t *testing.T) {
	for _, c := range []creation{
		{"a class may get more actions", "ResourceClass", map[string]string{"spec.actions": `[{name: "redis:connect", ports: [{port: 1}]}]`}, ""},
		{
			"a resource class keeps its pattern", "ResourceClass",
			map[string]string{"spec.pattern": `"trnv1:rsc:trip-com:redis:clusters:b*"`}, "pattern is immutable",
		},
		{"a resource class keeps its label", "ResourceClass", map[string]string{"spec.labelKey": "other"}, "labelKey is immutable"},
		{"a subject class may get a template", "SubjectClass", map[string]string{"spec.serviceAccountTemplate": "app-{id}"}, ""},
		{"a subject class keeps its pattern", "SubjectClass", map[string]string{"spec.pattern": `"trnv1:rsc:trip-com:iam:sa:*"`}, "pattern is immutable"},
		{"a subject class keeps its label", "SubjectClass", map[string]string{"spec.labelKey": "other"}, "labelKey is immutable"},
		{"a class joins no organization", "ResourceClass", map[string]string{"spec.organization": "shop"}, "organization is immutable"},
		{"an approval policy joins no organization", "ApprovalPolicy", map[string]string{"spec.organization": "shop"}, "organization is immutable"},
		{"a resource may change its mode", "ProtectedResource", map[string]string{"spec.mode": "Audit"}, ""},
		{
			"a resource keeps its name", "ProtectedResource",
			map[string]string{"spec.resource": `"trnv1:rsc:trip-com:redis:clusters:carols"`}, "resource is immutable",
		},
	} {
		t.Run(c.kind+"/"+c.reason, func(t *testing.T) {
			o := object(t, c.kind, nil)
			if err := host.Create(context.Background(), o); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := host.Delete(context.Background(), o); err != nil {
					t.Error(err)
				}
			}()
			next := o.DeepCopy()
			change(t, next, c.changes)
			verdict(t, host.Update(context.Background(), next), c.want)
		})
	}
}

func TestDefaults(t *testing.T) {
	for _, c := range []struct {
		reason, kind string
		path         []string
		want         string
	}{
		{"other ports are closed unless somebody opens them", "ResourceClass", []string{"spec", "otherPorts"}, "Deny"},
		{"cilium enforces unless somebody says otherwise", "ResourceClass", []string{"spec", "enforcers"}, "[cilium]"},
		{
			"one approver is enough unless somebody says otherwise", "ApprovalPolicy",
			[]string{"spec", "steps"}, "[map[approvers:[requester.leader] name:leader quorum:Any]]",
		},
	} {
		t.Run(c.kind+"/"+c.reason, func(t *testing.T) {
			o := object(t, c.kind, nil)
			if err := host.Create(context.Background(), o, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			got, _, err := unstructured.NestedFieldNoCopy(o.Object, c.path...)
			if err != nil || fmt.Sprint(got) != c.want {
				t.Errorf("%v (%v), want %s", got, err, c.want)
			}
		})
	}
}
