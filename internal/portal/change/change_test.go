package change

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

const (
	app   = "trnv1:rsc:trip-com:iam:sa:app/888"
	redis = "trnv1:rsc:trip-com:redis:clusters:bobs-cluster"
)

var at = time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)

func input() policy.Input {
	return policy.Input{
		ResourceClasses: []*v1alpha1.ResourceClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "redis"}, Spec: v1alpha1.ResourceClassSpec{
				Pattern:   "trnv1:rsc:trip-com:redis:clusters:*",
				LabelKey:  "com.trip/redis-cluster",
				Actions:   []v1alpha1.ClassAction{{Name: "redis:connect", Ports: []v1alpha1.Port{{Port: 6379, Protocol: "TCP"}}}},
				Placement: v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}},
				Enforcers: []v1alpha1.EnforcerName{v1alpha1.EnforcerCilium},
			}},
		},
		SubjectClasses: []*v1alpha1.SubjectClass{
			{
				ObjectMeta: metav1.ObjectMeta{Name: "application"},
				Spec:       v1alpha1.SubjectClassSpec{Pattern: "trnv1:rsc:trip-com:iam:sa:app/*", LabelKey: "com.trip/appid"},
			},
		},
		Resources: []*v1alpha1.ProtectedResource{
			{ObjectMeta: metav1.ObjectMeta{Name: "bobs-cluster"}, Spec: v1alpha1.ProtectedResourceSpec{Resource: redis, Mode: v1alpha1.ModeEnforce}},
		},
	}
}

func grant(sid string) approval.Item {
	return approval.Item{
		Application:     "app-888",
		ApplicationName: app,
		Resource:        "bobs-cluster",
		ResourceName:    redis,
		Actions:         []string{"redis:connect"},
		SID:             sid,
	}
}

func view(in policy.Input, kind approval.Kind, items ...approval.Item) View {
	return Of(policy.NewSnapshot(in), in, nil, kind, items, at)
}

func raw(t *testing.T, v any) json.RawMessage {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func kinds(v View) string {
	var out []string
	for _, o := range v.Objects {
		out = append(out, o.Layer+"/"+o.Kind)
	}
	return strings.Join(out, " ")
}

func TestGrant(t *testing.T) {
	in := input()
	v := view(in, approval.KindGrant, grant("t-1-1"))
	if kinds(v) != "acp/AccessControlPolicy dataplane/CiliumClusterwideNetworkPolicy" || len(v.Refused) != 0 || len(v.Notes) != 0 {
		t.Fatalf("%s %v %s", kinds(v), v.Refused, v.Notes)
	}
	if o := v.Objects[0]; o.Before != "" || !strings.Contains(o.After, app) {
		t.Errorf("the policy is new: %+v", o)
	}
	if o := v.Objects[1]; o.Enforcer != "cilium" || strings.Contains(o.Before, "888") || !strings.Contains(o.Before, "ingress") ||
		!strings.Contains(o.After, `"888"`) {
		t.Errorf("the enforced resource is closed before, and lets the application in after:\n%s\n%s", o.Before, o.After)
	}
	if len(in.Policies) != 0 {
		t.Error("the input is not changed")
	}

	// The view of a ticket that is in force is the same, and that of its revocation is the opposite.
	in.Policies = []*v1alpha1.AccessControlPolicy{{ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyNameFor(redis)},
		Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{approval.Statement(grant("t-1-1"))}}}}
	again := view(in, approval.KindGrant, grant("t-1-1"))
	if fmt.Sprint(again) != fmt.Sprint(v) {
		t.Errorf("once it is written:\n%+v\nbefore that:\n%+v", again, v)
	}
	end := grant("t-2-1")
	end.Target = &approval.Target{Ticket: 1, Item: 0}
	revoke := view(in, approval.KindRevoke, end)
	for i, o := range revoke.Objects {
		if o.Before != v.Objects[i].After || o.After != v.Objects[i].Before {
			t.Errorf("revoking is the opposite of granting: %+v", o)
		}
	}
	if len(revoke.Objects) != 2 {
		t.Errorf("%s", kinds(revoke))
	}
}

func TestModes(t *testing.T) {
	in := input()
	in.Resources[0].Spec.Mode = v1alpha1.ModeAudit
	base := in.Resources[0].Spec
	enforce := base
	enforce.Mode = v1alpha1.ModeEnforce
	enforce.ClusterModes = []v1alpha1.ClusterMode{{Cluster: "m2", Mode: v1alpha1.ModeAudit}}
	for name, tc := range map[string]struct {
		reason        string
		before, after any
		want          string
	}{
		"stricter":  {"but for one member, which gets a spec of its own", base, enforce, "acp/ProtectedResource dataplane/CiliumClusterwideNetworkPolicy"},
		"offboard":  {"the dataplane's object goes", base, nil, "acp/ProtectedResource dataplane/CiliumClusterwideNetworkPolicy"},
		"unchanged": {"nothing reaches a dataplane", base, base, "acp/ProtectedResource"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &approval.Change{Kind: "ProtectedResource", Name: "bobs-cluster", Before: raw(t, tc.before)}
			if tc.after != nil {
				c.After = raw(t, tc.after)
			}
			v := view(in, approval.KindMode, approval.Item{ResourceName: redis, Change: c})
			if !strings.HasPrefix(kinds(v), tc.want) || len(v.Notes) != 0 {
				t.Errorf("%s: %s %s", tc.reason, kinds(v), v.Notes)
			}
			if last := v.Objects[len(v.Objects)-1]; name == "offboard" && (last.Before == "" || last.After != "") {
				t.Errorf("%s: %+v", tc.reason, last)
			}
		})
	}
}

func TestClassesAndOthers(t *testing.T) {
	in := input()
	for i := range mostUnits + 5 {
		name := fmt.Sprintf("r%03d", i)
		in.Resources = append(in.Resources, &v1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName("trnv1:rsc:trip-com:redis:clusters:" + name), Mode: v1alpha1.ModeEnforce}})
	}
	wide := in.ResourceClasses[0].Spec
	wide.OtherPorts = v1alpha1.OtherPortsAllow
	v := view(
		in,
		approval.KindClass,
		approval.Item{Change: &approval.Change{Kind: "ResourceClass", Name: "redis", Before: raw(t, in.ResourceClasses[0].Spec), After: raw(t, wide)}},
	)
	if len(v.Objects) != 1+mostUnits || !slices.Contains(v.Notes, message.ChangeResourcesNotShown(36, mostUnits)) {
		t.Errorf("a class changes all its resources, of which some are shown: %d, %s", len(v.Objects), v.Notes)
	}
	v = view(
		in,
		approval.KindApprovalPolicy,
		approval.Item{Change: &approval.Change{Kind: "ApprovalPolicy", Name: "p", After: raw(t, map[string]any{"priority": 1})}},
	)
	if kinds(v) != "acp/ApprovalPolicy" {
		t.Errorf("an approval policy reaches no dataplane: %s", kinds(v))
	}
	v = view(in, approval.KindClass, approval.Item{Change: &approval.Change{Kind: "ResourceClass", Name: "redis", After: json.RawMessage(`{"actions":7}`)}})
	if len(v.Notes) == 0 {
		t.Error("a spec that cannot be read is said")
	}
	bad := grant("t-1-1")
	bad.ApplicationName = "trnv1:rsc:trip-com:iam:sa:robot/1"
	if v := view(input(), approval.KindGrant, bad); len(v.Refused) == 0 {
		t.Error("what no dataplane could enforce is said")
	}
}

// A statement that goes with a refused deny is reported, although others go with it already, and although the deny is hidden.
func TestRefusedWithOthers(t *testing.T) {
	in := input()
	team := v1alpha1.Subject("trnv1:rsc:trip-com:iam:team:blue") // in no class
	statement := func(sid string, effect v1alpha1.Effect, subject v1alpha1.Subject) v1alpha1.Statement {
		return v1alpha1.Statement{
			SID:       sid,
			Effect:    effect,
			Subjects:  []v1alpha1.Subject{subject},
			Actions:   []v1alpha1.Action{"redis:connect"},
			Resources: []v1alpha1.ResourceName{redis},
		}
	}
	in.Policies = []*v1alpha1.AccessControlPolicy{
		{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{
			statement("deny", v1alpha1.EffectDeny, team), statement("goes", v1alpha1.EffectAllow, "trnv1:rsc:trip-com:iam:sa:app/1")}}},
	}
	told := func(v View) bool {
		return slices.ContainsFunc(v.Refused, func(why message.Message) bool { return strings.Contains(why.Text, "theirs/deny") })
	}
	if v := view(in, approval.KindGrant, grant("t-1-1")); !told(v) {
		t.Errorf("another statement goes for the same reason; refused: %q", v.Refused)
	}
	hidden := Hide(in, redis, func(subject string) bool { return subject == app })
	v := view(hidden, approval.KindGrant, grant("t-1-1"))
	if told(v) {
		t.Fatal("the hidden deny is in the view: the test shows nothing")
	}
	v.Refuse(policy.NewSnapshot(in), in, nil, approval.KindGrant, []approval.Item{grant("t-1-1")}, at)
	if !told(v) {
		t.Errorf("the deny is hidden, and what it removes is not reported; refused: %q", v.Refused)
	}
	// The first policy is full, so that the portal writes the statement to the second one.
	full := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyNameFor(redis)}}
	for i := range v1alpha1.MaxStatements {
		full.Spec.Statements = append(full.Spec.Statements, approval.Statement(grant(fmt.Sprintf("s-%d", i))))
	}
	in.Policies = append(in.Policies, full)
	v = view(Hide(in, redis, func(subject string) bool { return subject == app }), approval.KindGrant, grant("t-1-1"))
	v.Refuse(policy.NewSnapshot(in), in, nil, approval.KindGrant, []approval.Item{grant("t-1-1")}, at)
	if !told(v) {
		t.Errorf("the statement is in a further policy, and what removes it is not reported; refused: %q", v.Refused)
	}
}

func TestLargePolicy(t *testing.T) {
	in := input()
	p := &v1alpha1.AccessControlPolicy{ObjectMeta: metav1.ObjectMeta{Name: policy.PolicyNameFor(redis)}}
	for i := range mostStatements + 10 {
		p.Spec.Statements = append(p.Spec.Statements, approval.Statement(grant(fmt.Sprintf("s-%d", i))))
	}
	in.Policies = []*v1alpha1.AccessControlPolicy{p}
	o := view(in, approval.KindGrant, grant("t-1-1")).Objects[0]
	if strings.Count(o.After, "sid:") != 1 || !strings.Contains(o.After, "beside 50 statements") || strings.Count(o.Before, "sid:") != 0 {
		t.Errorf("of a large policy only what changes is shown:\n%s\n%s", o.Before, o.After)
	}
	if len(p.Spec.Statements) != mostStatements+10 {
		t.Error("the input is not changed")
	}
}

const able = `{"dataplane": "sidecar", "version": "1.31.1", "strictMTLS": true}`

func meshed() policy.Input {
	in := input()
	in.ResourceClasses[0].Spec.Enforcers = append(in.ResourceClasses[0].Spec.Enforcers, v1alpha1.EnforcerIstio)
	in.SubjectClasses[0].Spec.ServiceAccountTemplate = "app-{id}"
	return in
}

// joined is a member with what it declares about its Istio.
type joined struct {
	Member
	declares string
}

// join makes members those of the input's fleet.
func join(in *policy.Input, all ...joined) []Member {
	var reports []*v1alpha1.MemberCluster
	var out []Member
	for _, m := range all {
		out = append(out, m.Member)
		reports = append(
			reports,
			&v1alpha1.MemberCluster{
				ObjectMeta: metav1.ObjectMeta{Name: m.Name},
				Status:     v1alpha1.MemberClusterStatus{State: v1alpha1.MemberClusterReady, Labels: m.Labels, Istio: m.declares},
			},
		)
	}
	*in = policy.NewInput(in.Objects(), registry.FleetOf(reports))
	return out
}

// A class that names Istio shows what each member is given, by what the members declare.
func TestIstioIsShownAsTheMembersDeclare(t *testing.T) {
	in := meshed()
	members := join(&in, []joined{{Member{Name: "m1"}, able}, {Member{Name: "m2"}, able}, {Member{Name: "m3"}, ""}}...)
	v := Of(policy.NewSnapshot(in), in, members, approval.KindGrant, []approval.Item{grant("one")}, at)
	i := slices.IndexFunc(v.Objects, func(o Object) bool { return o.Kind == "AuthorizationPolicy" })
	if i < 0 {
		t.Fatalf("no AuthorizationPolicy in %+v", v)
	}
	o := v.Objects[i]
	if !strings.HasPrefix(o.Name, "istio-system/acp-") || strings.Contains(o.Before, "app-888") || !strings.Contains(o.After, `*/sa/app-888`) {
		t.Errorf("%+v", o)
	}
	if v = view(in, approval.KindGrant, grant("one")); !slices.Contains(v.Notes, message.ChangeMembersUnknown("istio")) {
		t.Errorf("without members: %q", v.Notes)
	}
}

// A view is about the members to which the class takes the resource.
func TestMembersOfTheClassCount(t *testing.T) {
	const none = "the member declares no Istio that enforces"
	names := func(all ...v1alpha1.ClusterName) v1alpha1.Placement { return v1alpha1.Placement{Clusters: &all} }
	chosen := v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"mesh": "yes"}}}
	everywhere := v1alpha1.Placement{ClusterSelector: &metav1.LabelSelector{}}
	yes := map[string]string{"mesh": "yes"}
	for name, c := range map[string]struct {
		reason    string
		placement v1alpha1.Placement
		members   []joined
		modes     []v1alpha1.ClusterMode
		want      []string
		// of are the members that get something of their own.
		of []string
	}{
		"Everywhere": {
			"the one that cannot is named", everywhere,
			[]joined{{Member{Name: "m1"}, able}, {Member{Name: "m2"}, able}, {Member{Name: "m3"}, ""}},
			nil, []string{"in m3: " + none}, nil,
		},
		"Elsewhere": {
			"it does not go to the one that cannot", names("m1", "m2"),
			[]joined{{Member{Name: "m1"}, able}, {Member{Name: "m2"}, able}, {Member{Name: "m3"}, ""}}, nil, nil, nil,
		},
		"OnlyThere": {
			"it goes only to the one that cannot, though most can", names("m3"),
			[]joined{{Member{Name: "m1"}, able}, {Member{Name: "m2"}, able}, {Member{Name: "m3"}, ""}}, nil, []string{none}, nil,
		},
		"ByLabel": {
			"most cannot, and are not selected", chosen,
			[]joined{{Member{Name: "m1", Labels: yes}, able}, {Member{Name: "m2"}, ""}, {Member{Name: "m3"}, ""}}, nil, nil, []string{"m1"},
		},
		"Leaving": {
			"nothing is placed any more in the one that cannot", everywhere,
			[]joined{{Member{Name: "m1"}, able}, {Member{Name: "m2", Leaving: true}, ""}}, nil, nil, nil,
		},
		"Observed": {"in the one that cannot it is not onboarded", everywhere,
			[]joined{{Member{Name: "m1"}, able}, {Member{Name: "m2"}, able}, {Member{Name: "m3"}, ""}},
			[]v1alpha1.ClusterMode{{Cluster: "m3", Mode: v1alpha1.ModeObserve}}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := meshed()
			in.ResourceClasses[0].Spec.Placement = c.placement
			in.Resources[0].Spec.ClusterModes = c.modes
			members := join(&in, c.members...)
			v := Of(policy.NewSnapshot(in), in, members, approval.KindGrant, []approval.Item{grant("one")}, at)
			var refused []string
			for _, m := range v.Refused {
				refused = append(refused, m.Text)
			}
			if diff := cmp.Diff(c.want, refused); diff != "" {
				t.Errorf("%s: -want +got\n%s", c.reason, diff)
			}
			var of []string
			for _, o := range v.Objects {
				if o.Kind == "AuthorizationPolicy" {
					of = append(of, o.Clusters...)
				}
			}
			if diff := cmp.Diff(c.of, of); diff != "" {
				t.Errorf("%s: members with an object of their own: -want +got\n%s", c.reason, diff)
			}
		})
	}
}

// The first grant of a resource that is not onboarded onboards it in the default mode of its class, and the change says so.
func TestGrantOnboards(t *testing.T) {
	other := []*v1alpha1.AccessControlPolicy{
		{
			ObjectMeta: metav1.ObjectMeta{Name: "by-hand"},
			Spec:       v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{approval.Statement(grant("x"))}},
		},
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*policy.Input)
		kind   approval.Kind
		want   v1alpha1.Mode
	}{
		"first": {"the portal creates a ProtectedResource", func(*policy.Input) {}, approval.KindGrant, v1alpha1.ModeEnforce},
		"observed": {
			"in the mode of the class", func(in *policy.Input) { in.ResourceClasses[0].Spec.DefaultMode = v1alpha1.ModeObserve },
			approval.KindGrant, v1alpha1.ModeObserve,
		},
		"onboarded":     {"it stays as it is", func(in *policy.Input) { in.Resources = input().Resources }, approval.KindGrant, ""},
		"not the first": {"an administrator has offboarded it", func(in *policy.Input) { in.Policies = other }, approval.KindGrant, ""},
		"no mode":       {"the class has none", func(in *policy.Input) { in.ResourceClasses[0].Spec.DefaultMode = "" }, approval.KindGrant, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := input()
			in.Resources, in.ResourceClasses[0].Spec.DefaultMode = nil, v1alpha1.ModeEnforce
			tc.change(&in)
			s := policy.NewSnapshot(in)
			if got := Onboarding(s, in.Resources, redis, "t-1-1"); got != tc.want {
				t.Errorf("%s: onboarded in %q, want %q", tc.reason, got, tc.want)
			}
			second := grant("t-1-2")
			v := Of(s, Hide(in, redis, func(string) bool { return false }), nil, tc.kind, []approval.Item{grant("t-1-1"), second}, at)
			var shown []Object
			for _, o := range v.Objects {
				if o.Kind == "ProtectedResource" {
					shown = append(shown, o)
				}
			}
			if tc.want == "" && len(shown) != 0 ||
				tc.want != "" && (len(shown) != 1 || shown[0].Before != "" || !strings.Contains(shown[0].After, "mode: "+string(tc.want))) {
				t.Errorf("%s: the change shows %+v, want %q", tc.reason, shown, tc.want)
			}
			before, after, _ := Snapshots(s, in, tc.kind, []approval.Item{grant("t-1-1")})
			q := policy.Query{Subjects: []string{"trnv1:rsc:trip-com:iam:sa:app/other"}, Resources: []string{redis}, Protocol: "TCP", Port: 6379, At: at}
			if closes := before.Decide(q).Verdict.LetsThrough() && !after.Decide(q).Verdict.LetsThrough(); closes != (tc.want == v1alpha1.ModeEnforce) {
				t.Errorf("%s: a replay shows others cut off: %v", tc.reason, closes)
			}
		})
	}
}
