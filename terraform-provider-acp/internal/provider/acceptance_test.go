package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

var request = values{
	"application": "app-888",
	"resource":    "bobs-cluster",
	"actions":     []string{"redis:connect"},
	"duration":    "30d",
	"reason":      "checkout reads carts",
}

// statements returns the number of statements that the portal wrote about the resource of the tests.
func (x *site) statements() int {
	var p v1alpha1.AccessControlPolicy
	if err := x.host.Get(x.t.Context(), client.ObjectKey{Name: policy.PolicyNameFor(portaltest.BobsCluster)}, &p); err != nil {
		return 0
	}
	return len(p.Spec.Statements)
}

// TestAgainstThePortal runs the resources and data sources of the provider against the real portal, one after another.
func TestAgainstThePortal(t *testing.T) {
	x := newSite(t)
	alice := x.core("alice", "read", "tickets:write", "workloads:write")
	t.Run("access", func(t *testing.T) { testAccess(t, x, alice) })
	t.Run("refusals", func(t *testing.T) { testRefusals(t, x, alice) })
	t.Run("hours", func(t *testing.T) { testHours(t, x, alice) })
	t.Run("organization", func(t *testing.T) { testOrganization(t, x) })
	t.Run("import", func(t *testing.T) { testImport(t, x, alice) })
	t.Run("class", func(t *testing.T) { testClass(t, x) })
	t.Run("workload", func(t *testing.T) { testWorkload(t, x, alice) })
	t.Run("approval policy", func(t *testing.T) { testApprovalPolicy(t, x) })
}

func testAccess(t *testing.T, x *site, alice *core) {
	r := alice.resource("acp_access_request")
	must(t, "create", r.apply(request))
	id := r.get("id")
	if r.get("state") != "pending" || r.get("waiting_for") != "[carol]" || r.get("url") != x.base+"/tickets/"+id || x.statements() != 0 {
		t.Errorf("after the submission: %s %s %s", r.get("state"), r.get("waiting_for"), r.get("url"))
	}
	must(t, "refresh", r.refresh())
	if p := r.plan(request); p.failed || p.change {
		t.Errorf("the plan of an unchanged configuration is not empty: %s", p.text)
	}
	if p := r.plan(with(request, values{"duration": "720h"})); p.replaces {
		t.Error("the same time in another form must not request access anew")
	}
	if s := r.apply(with(request, values{"wait_for": "realized", "timeout": "1s"})); !s.failed {
		t.Error("a ticket that waits for people is not realized")
	} else {
		contains(t, "timeout", s.text, id+" is still pending after 1s", "waits for carol", x.base+"/tickets/"+id)
	}
	done := x.meanwhile("alice", "approve", "carol", "bob")
	must(t, "wait", r.apply(with(request, values{"wait_for": "realized"})))
	done()
	if r.get("state") != "effective" || r.get("clusters") != "{m1:Realized}" || r.get("expires_at") == "" || x.statements() != 1 {
		t.Errorf("after the approval: %s %s %s", r.get("state"), r.get("clusters"), r.get("expires_at"))
	}
	p := r.plan(with(request, values{"duration": "60d"}))
	if contains(t, "plan of a longer access", p.text, "The access ends before it is granted again", id); !p.replaces || p.failed {
		t.Errorf("another duration is another request: %+v", p)
	}
	got, s := alice.data("acp_ticket", values{"id": id, "wait_for": "realized"})
	if must(t, "ticket", s); got["state"] != "effective" || got["requester"] != "alice" || got["kind"] != "grant" || got["clusters"] != "{m1:Realized}" {
		t.Errorf("acp_ticket: %v", got)
	}
	if got, s = alice.data(
		"acp_application",
		values{"id": "app-888"},
	); s.failed || got["name"] != portaltest.App888 || got["owners"] != "[user:alice]" ||
		got["mine"] != "true" {
		t.Errorf("acp_application: %v %s", got, s.text)
	}
	got, s = alice.data("acp_resource", values{"id": "bobs-cluster"})
	if must(t, "resource", s); got["mode"] != "Enforce" || got["class"] != "redis" || got["actions"] != "[redis:connect]" || got["protected"] != "true" ||
		!strings.Contains(got["access"], "subject:app-888") || !strings.Contains(got["access"], "ticket:"+id) {
		t.Errorf("acp_resource: %v", got)
	}
	if got, s = x.core("dave", "read").data("acp_decision", values{"from": "app-888", "to": "bobs-cluster"}); s.failed || got["allowed"] != "true" ||
		!strings.Contains(got["decisions"], "decision:allowed") {
		t.Errorf("acp_decision: %v %s", got, s.text)
	}
	if got, s = x.core("dave", "read").data("acp_decision", values{"from": "app-889", "to": "bobs-cluster"}); s.failed || got["allowed"] != "false" {
		t.Errorf("acp_decision without access: %v %s", got, s.text)
	}
	if _, s = alice.data("acp_decision", values{"from": "app-888", "to": "bobs-cluster"}); !s.failed {
		t.Error("decisions are for the security team and auditors")
	}
	must(t, "destroy", r.destroy())
	if got := x.ticket("alice", id); got.State != "revoked" || x.statements() != 0 {
		t.Errorf("after the destruction: %s, %d statements", got.State, x.statements())
	}
}

func testRefusals(t *testing.T, x *site, alice *core) {
	r := alice.resource("acp_access_request")
	done := x.meanwhile("alice", "reject", "carol")
	s := r.apply(with(request, values{"wait_for": "approved"}))
	done()
	if !s.failed || r.exists() {
		t.Errorf("a refused request is an error and leaves nothing: %s", s.text)
	}
	contains(t, "refusal", s.text, "is rejected", "(carol)", "not for this", x.base+"/tickets/T-")

	must(t, "create", r.apply(request))
	id := r.get("id")
	x.decide(id, "reject", "carol")
	must(t, "refresh", r.refresh())
	if r.get("state") != "rejected" {
		t.Errorf("after a refusal: %s", r.get("state"))
	}
	p := r.plan(request)
	if contains(t, "plan after a refusal", p.text, "(carol)", "not for this", "is not requested again as it is"); !p.failed {
		t.Error("a refused request must not be repeated as it is")
	}
	must(t, "another reason", r.apply(with(request, values{"reason": "checkout reads carts, see issue 7"})))
	if r.get("id") == id || r.get("state") != "pending" {
		t.Errorf("another reason makes a new request: %s %s", r.get("id"), r.get("state"))
	}
	id = r.get("id")
	if a := x.as("alice").Post("/api/v1/tickets/"+id+"/withdraw", map[string]any{"reason": "not needed"}); a.Status != 200 {
		t.Fatalf("withdraw: %d %s", a.Status, a.Body)
	}
	s = r.refresh()
	if contains(t, "a ticket that was withdrawn", s.text, id+" is withdrawn"); r.state != nil {
		t.Error("a ticket that was withdrawn outside of Terraform is planned anew")
	}
	must(t, "create", r.apply(request))
	other := alice.resource("acp_access_request")
	if s := other.apply(request); !s.failed {
		t.Error("the same access cannot be requested twice")
	} else {
		contains(t, "duplicate", s.text, r.get("id"), "terraform import")
	}
	id = r.get("id")
	must(t, "destroy", r.destroy())
	if got := x.ticket("alice", id).State; got != "withdrawn" {
		t.Errorf("a destroyed request is %s", got)
	}
	if s := x.core("erin", "read", "tickets:write").resource("acp_access_request").apply(request); !s.failed {
		t.Error("only owners of the application can request access for it")
	}
	if s := x.core("alice", "read").resource("acp_access_request").apply(request); !s.failed || !strings.Contains(s.text, "Create a token with this scope") {
		t.Errorf("without the scope: %s", s.text)
	}
}

func testImport(t *testing.T, x *site, alice *core) {
	r := alice.resource("acp_access_request")
	must(t, "create", r.apply(request))
	again := alice.resource("acp_access_request")
	must(t, "import", again.imports(r.get("id")))
	if p := again.plan(request); p.failed || p.change {
		t.Errorf("the plan after an import is not empty: %s %+v", p.text, again.c.decode(again.schema(), p.resp.PlannedState))
	}
	must(t, "destroy", again.destroy())
	must(t, "destroy what is withdrawn already", r.destroy())
	if s := alice.resource("acp_access_request").imports(r.get("id") + "0"); !s.failed {
		t.Error("a ticket that does not exist cannot be imported")
	}
}

// hoursOf returns the attribute hours with one period from Monday to Friday.
func hoursOf(from, to string) tftypes.Value {
	text := func(s string) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }
	days := tftypes.Set{ElementType: tftypes.String}
	period := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"days": days, "from": tftypes.String, "to": tftypes.String}}
	periods := tftypes.List{ElementType: period}
	return tftypes.NewValue(tftypes.Object{AttributeTypes: map[string]tftypes.Type{"time_zone": tftypes.String, "periods": periods}},
		map[string]tftypes.Value{"time_zone": text("Europe/Berlin"), "periods": tftypes.NewValue(periods, []tftypes.Value{
			tftypes.NewValue(period, map[string]tftypes.Value{
				"days": tftypes.NewValue(days, []tftypes.Value{text("Mon"), text("Fri")}), "from": text(from), "to": text(to),
			}),
		})})
}

// testHours requests access at certain hours. The portal has the hours, and other hours are another request.
func testHours(t *testing.T, x *site, alice *core) {
	r := alice.resource("acp_access_request")
	config := with(request, values{"hours": hoursOf("08:00", "18:00")})
	must(t, "create", r.apply(config))
	items := x.ticket("alice", r.get("id")).Items
	if len(items) != 1 || items[0].Hours == nil || items[0].Hours.TimeZone != "Europe/Berlin" || items[0].Hours.Periods[0].From != "08:00" {
		t.Errorf("the ticket has no hours: %+v", items)
	}
	if p := r.plan(config); p.failed || p.change {
		t.Errorf("the plan of an unchanged configuration is not empty: %s", p.text)
	}
	if p := r.plan(with(request, values{"hours": hoursOf("08:00", "20:00")})); p.failed || !p.replaces {
		t.Errorf("other hours are another request: %+v", p)
	}
	if p := r.plan(request); p.failed || !p.replaces {
		t.Errorf("access at any hour is another request: %+v", p)
	}
	again := alice.resource("acp_access_request")
	must(t, "import", again.imports(r.get("id")))
	if p := again.plan(config); p.failed || p.change {
		t.Errorf("the plan after an import is not empty: %s", p.text)
	}
	must(t, "destroy", r.destroy())
	if s := alice.resource("acp_access_request").apply(with(request, values{"hours": hoursOf("8", "18:00")})); !s.failed {
		t.Error("the portal refuses what is no time of the day")
	}
}

// testOrganization reads an organization as an administrator, and as a person who may not see it.
func testOrganization(t *testing.T, x *site) {
	o := &v1alpha1.Organization{ObjectMeta: metav1.ObjectMeta{Name: "stores"}, Spec: v1alpha1.OrganizationSpec{
		Title: "Stores", Teams: []v1alpha1.TeamName{"storage"}, Administrators: []v1alpha1.OrganizationAdministrator{"person:bob"},
	}}
	if err := x.host.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	bob := x.core("bob", "read")
	var got map[string]string
	x.eventually("the portal reads the organization", func() bool {
		var s said
		got, s = bob.data("acp_organization", values{"id": "stores"})
		return !s.failed
	})
	if got["title"] != "Stores" || got["teams"] != "[group:storage]" || got["administrators"] != "[user:bob]" || got["mine"] != "true" ||
		got["accepted"] != "true" || got["classes"] != "[]" {
		t.Errorf("acp_organization: %v", got)
	}
	if _, s := x.core("alice", "read").data("acp_organization", values{"id": "stores"}); !s.failed {
		t.Error("organizations are for their administrators, the security team and auditors")
	}
}

const classSpec = `
pattern: trnv1:rsc:trip-com:mq:topics:*
labelKey: com.trip/topic
actions:
  - name: mq:produce
    ports: [{port: 9092}]
placement: {clusterSelector: {}}
`

func testClass(t *testing.T, x *site) {
	dave := x.core("dave", "read", "tickets:write")
	r := dave.resource("acp_resource_class")
	config := values{"name": "mq", "spec": classSpec, "reason": "message queues", "wait_for": "realized"}
	approved := func(what string, call func() said) {
		t.Helper()
		done := x.meanwhile("dave", "approve", "dora")
		must(t, what, call())
		done()
	}
	approved("create", func() said { return r.apply(config) })
	if r.get("ticket_state") != "effective" || !strings.Contains(r.get("live_spec"), `"protocol":"TCP"`) {
		t.Errorf("after the creation: %s %s", r.get("ticket_state"), r.get("live_spec"))
	}
	must(t, "refresh", r.refresh())
	if p := r.plan(config); p.failed || p.change {
		t.Errorf("defaults of the API server are no difference: %s", p.text)
	}
	// Somebody changes the object with kubectl.
	var class v1alpha1.ResourceClass
	if err := x.host.Get(t.Context(), client.ObjectKey{Name: "mq"}, &class); err != nil {
		t.Fatal(err)
	}
	class.Spec.Actions[0].Ports[0].Port = 9093
	if err := x.host.Update(t.Context(), &class); err != nil {
		t.Fatal(err)
	}
	x.eventually("the plan shows the drift", func() bool { return !r.refresh().failed && r.plan(config).change })
	approved("repair", func() said { return r.apply(config) })
	if err := x.host.Get(t.Context(), client.ObjectKey{Name: "mq"}, &class); err != nil || class.Spec.Actions[0].Ports[0].Port != 9092 {
		t.Errorf("after the repair: %+v %v", class.Spec, err)
	}
	imported := dave.resource("acp_resource_class")
	must(t, "import", imported.imports("mq"))
	must(t, "adopt the text of the configuration", imported.apply(config))
	if imported.get("ticket") != "" {
		t.Errorf("an import needs no ticket: %s", imported.get("ticket"))
	}
	if s := dave.resource("acp_resource_class").apply(config); !s.failed || !strings.Contains(s.text, "terraform import") {
		t.Errorf("an object that exists: %s", s.text)
	}
	done := x.meanwhile("dave", "reject", "dora")
	if s := r.apply(with(config, values{"spec": strings.Replace(classSpec, "9092", "9094", 1)})); !s.failed || !strings.Contains(s.text, "(dora)") {
		t.Errorf("a refused change: %s", s.text)
	}
	done()
	must(t, "refresh", r.refresh())
	if p := r.plan(with(config, values{"spec": strings.Replace(classSpec, "9092", "9094", 1)})); !p.failed {
		t.Error("a refused change must not be repeated as it is")
	}
	approved("destroy", r.destroy)
	if err := x.host.Get(t.Context(), client.ObjectKey{Name: "mq"}, &class); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the class is still there: %v", err)
	}
	if s := x.core("alice", "read", "tickets:write").resource("acp_resource_class").apply(config); !s.failed {
		t.Error("only the security team changes classes")
	}
}

func testApprovalPolicy(t *testing.T, x *site) {
	r := x.core("dave", "read", "tickets:write").resource("acp_approval_policy")
	config := values{"name": "low", "reason": "fewer steps", "wait_for": "submitted",
		"spec": `{"priority": 10, "match": "request.resource.sensitivity == 'low'", "steps": [{"name": "owner", "approvers": ["resource.owner"]}]}`}
	must(t, "create", r.apply(config))
	first := r.get("ticket")
	if r.get("ticket_state") != "pending" || r.get("live_spec") != "" {
		t.Errorf("after the submission: %s %s", r.get("ticket_state"), r.get("live_spec"))
	}
	must(t, "refresh", r.refresh())
	if p := r.plan(config); p.failed || p.change {
		t.Errorf("a pending ticket is no difference: %s", p.text)
	}
	// A change while the ticket is pending replaces the ticket.
	config["spec"] = strings.Replace(config["spec"].(string), "10", "20", 1)
	must(t, "change", r.apply(config))
	if got := x.ticket("dave", first).State; got != "withdrawn" || r.get("ticket") == first {
		t.Errorf("the first ticket is %s, the second %s", got, r.get("ticket"))
	}
	x.decide(r.get("ticket"), "approve", "dora")
	x.eventually("the object is written", func() bool { return !r.refresh().failed && r.get("ticket_state") == "effective" })
	if p := r.plan(config); p.failed || p.change || !strings.Contains(r.get("live_spec"), `"priority":20`) {
		t.Errorf("after the approval: %s %s", p.text, r.get("live_spec"))
	}
	// With wait_for = "submitted", Terraform forgets the object before anybody has approved its deletion.
	s := r.destroy()
	must(t, "destroy", s)
	contains(t, "destroy", s.text, "The object still exists", "/tickets/T-")
}

func testWorkload(t *testing.T, x *site, alice *core) {
	r := alice.resource("acp_external_workload")
	config := values{"workload_id": "vm-1", "subject": portaltest.App888, "addresses": []string{"192.0.2.7"}}
	x.eventually("the portal has read the workloads", func() bool { return !r.apply(config).failed })
	if r.get("id") != "portal/vm-1" {
		t.Errorf("id: %s", r.get("id"))
	}
	x.eventually("it is accepted", func() bool { return !r.refresh().failed && r.get("accepted") == "true" })
	if p := r.plan(config); p.failed || p.change {
		t.Errorf("the plan of an unchanged configuration is not empty: %s", p.text)
	}
	must(t, "update", r.apply(with(config, values{"addresses": []string{"192.0.2.8", "192.0.2.7"}, "description": "a machine"})))
	again := alice.resource("acp_external_workload")
	x.eventually("the change is read", func() bool { return !again.imports("portal/vm-1").failed && again.get("description") == "a machine" })
	if again.get("addresses") != "[192.0.2.7 192.0.2.8]" && again.get("addresses") != "[192.0.2.8 192.0.2.7]" {
		t.Errorf("after the change: %s", again.get("addresses"))
	}
	other := alice.resource("acp_external_workload")
	if s := other.apply(config); !s.failed || !strings.Contains(s.text, "terraform import") {
		t.Errorf("a workload that exists: %s", s.text)
	}
	if s := other.apply(with(config, values{"workload_id": "net-1", "addresses": []string{"127.0.0.1"}})); !s.failed {
		t.Error("an address of the loopback cannot be registered")
	}
	must(t, "destroy", r.destroy())
	must(t, "destroy what is gone", again.destroy())
	x.eventually("it is gone", func() bool {
		gone := alice.resource("acp_external_workload")
		gone.imports("portal/vm-1")
		return gone.state == nil
	})
}
