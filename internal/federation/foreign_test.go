package federation

import (
	"errors"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/internal/federation/foreignpolicy"
)

// A kind that the member does not serve has no objects there; of one that it does not let be listed nothing is known.
func TestPresent(t *testing.T) {
	resource := clusterNetworkPolicy.TargetResource.GroupResource()
	for _, c := range []struct {
		reason           string
		alive            bool
		why              error
		reachable, known bool
	}{
		{"it is not served", false, apierrors.NewNotFound(resource, ""), true, true},
		{"it is forbidden", false, apierrors.NewForbidden(resource, "", errors.New("no")), false, true},
		{"the member is gone", false, errors.New("connection refused"), false, true},
		{"the member was not asked yet", false, errNotProbed, false, false},
		{"it is being listed", true, nil, false, false},
	} {
		m := &member[*foreignpolicy.Policy]{cluster: Cluster{Name: "m1"}, kind: clusterNetworkPolicy, alive: c.alive, why: c.why}
		m.watch = NewWatch(
			nil,
			"clusternetworkpolicies",
			logr.Discard(),
			func(u *unstructured.Unstructured) (*foreignpolicy.Policy, error) { return foreignpolicy.Parse(u), nil },
			func(string) {},
		)
		f := &fleet[*foreignpolicy.Policy]{members: map[string]*member[*foreignpolicy.Policy]{"m1": m}}
		o, _ := f.present("m1")
		if o.Reachable != c.reachable || o.Unknown == c.known || !o.Reachable && o.Message.IsZero() {
			t.Errorf("%s: %+v", c.reason, o)
		}
	}
}

func TestParseGroup(t *testing.T) {
	group := func(name string, cidrs ...any) foreignpolicy.Group {
		g, err := parseGroup(
			&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"externalCIDRs": cidrs}}},
		)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	if g := group("theirs", "10.0.0.0/8", "10.1.1.1"); len(g.Prefixes) != 2 || g.Prefixes[1].Bits() != 32 {
		t.Errorf("%v", g.Prefixes)
	}
	if g := group("theirs", "ten"); len(g.Prefixes) != 2 || g.Prefixes[0].Bits() != 0 {
		t.Errorf("of others, and unreadable: %v", g.Prefixes)
	}
	if g := group("acp-888", "ten"); len(g.Prefixes) != 0 {
		t.Errorf("ACP's, and unreadable: %v", g.Prefixes)
	}
}
