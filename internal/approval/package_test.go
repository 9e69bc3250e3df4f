package approval_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/approval"
)

// packageCompany adds the team pub (pat, quinn and ray, led by lee), and the resource mid of mia.
const packageCompany = modelCompany + `---
{kind: Group, metadata: {name: pub, annotations: {acp.io/lead: lee}}, spec: {members: [pat, quinn, ray]}}
---
{kind: User, metadata: {name: lee}}
---
{kind: User, metadata: {name: mia}}
---
{kind: User, metadata: {name: pat}}
---
{kind: User, metadata: {name: quinn}}
---
{kind: User, metadata: {name: ray}}
---
{kind: Resource, metadata: {name: mid, annotations: {acp.io/resource-name: "trnv1:rsc:o:redis:clusters:mid"}}, spec: {owner: "user:mia"}}
`

const nameMid = "trnv1:rsc:o:redis:clusters:mid"

// packages is a store of packages in memory.
type packages struct {
	all map[string]accesspackage.Package
	// crash is returned after the next publication, as if the program had ended then.
	crash error
}

func (p *packages) Package(_ context.Context, name string) (accesspackage.Package, error) {
	if x, ok := p.all[name]; ok {
		return x, nil
	}
	return accesspackage.Package{}, accesspackage.ErrUnknown
}

func (p *packages) Publish(_ context.Context, x accesspackage.Publication) error {
	had := p.all[x.Name]
	if had.Current.Ticket == x.Ticket {
		return nil
	}
	if had.Current.Number != x.Base || had.Archived() {
		return accesspackage.ErrStale
	}
	p.all[x.Name] = accesspackage.Package{Name: x.Name, Current: accesspackage.Version{Number: x.Base + 1, Content: x.Content,
		Digest: accesspackage.Digest(x.Content), Ticket: x.Ticket, PublishedBy: x.By, PublishedAt: x.At}}
	err := p.crash
	p.crash = nil
	return err
}

func packageCatalog(change ...string) string {
	return strings.NewReplacer(append([]string{"SECURITY", "erin, frank", "OWNER", "user:bob"}, change...)...).Replace(packageCompany)
}

func withPackages(t *testing.T, policies ...*v1alpha1.ApprovalPolicy) (*model, *packages) {
	t.Helper()
	m, p := quiet(t, policies...), &packages{all: map[string]accesspackage.Package{}}
	m.svc.Packages, m.catalog = p, readCatalog(t, packageCatalog())
	return m, p
}

// publishes returns a request to publish a version of the package pay with resources.
func publishes(chain accesspackage.Chain, resources ...string) approval.Request {
	d := &approval.PackageDraft{Name: "pay", Spec: accesspackage.Spec{Title: "Payments", Team: "pub", Chain: chain, DurationSeconds: 86400}}
	for _, r := range resources {
		d.Resources = append(d.Resources, approval.PackageResource{ID: r, Actions: []string{"x:read"}})
	}
	return approval.Request{Kind: approval.KindPackage, Reason: "a bundle", Items: []approval.RequestItem{{Package: d}}}
}

func wantsPackage(version int) approval.Request {
	return approval.Request{Reason: "all of it", Package: &approval.PackageChoice{Name: "pay", Version: version},
		Items: []approval.RequestItem{{Application: "a"}}}
}

// publish publishes a version with mid and low; mia owns the first, and dan is one of the owners of the other.
func (m *model) publish(chain accesspackage.Chain) {
	m.t.Helper()
	x := m.submit("pat", publishes(chain, "mid", "low"))
	m.approve(x.Number, "lee", "dan", "mia")
	m.settle()
	m.is(x.Number, approval.StateEffective)
}

// TestPublishingAPackage checks who decides about a version, what they see, and that it exists only when all of them approved.
func TestPublishingAPackage(t *testing.T) {
	m, p := withPackages(t)
	x := m.submit("pat", publishes(accesspackage.ChainOwners, "mid", "low", "high"))
	if got, want := chainOf(x.Items[0]), ": leader(lee), owner:high(bob), owner:mid(mia), security(erin frank)"; got != want {
		t.Errorf("the chain is %s, want %s", got, want)
	}
	for _, line := range []string{"create AccessPackage pay", `+ spec.title: "Payments"`, `+ spec.resources.` + nameMid + `.actions[0]: "x:read"`,
		`+ spec.resources.` + nameMid + `.owners[0]: "user:mia"`, `+ spec.chain: "owners"`, `+ spec.durationSeconds: 86400`} {
		if !slices.Contains(x.Items[0].Shown.Lines, line) {
			t.Errorf("the approvers do not see %q: %q", line, x.Items[0].Shown.Lines)
		}
	}
	if _, err := m.svc.Submit(t.Context(), m.actorOf("quinn"), func() approval.Request {
		r := publishes(accesspackage.ChainOwners, "mid")
		r.Reason = "another"
		return r
	}()); approval.CodeOf(err) != approval.CodeDuplicate {
		t.Errorf("two versions are decided at once: %v", err)
	}
	m.approve(x.Number, "lee", "bob", "mia")
	m.settle()
	if len(p.all) > 0 {
		t.Error("it is published before the last approval")
	}
	p.crash = errors.New("the connection is gone")
	m.approve(x.Number, "erin")
	m.settle()
	m.now = m.now.Add(time.Minute)
	m.settle()
	m.is(x.Number, approval.StateEffective)
	v := p.all["pay"].Current
	if v.Number != 1 || v.Ticket != x.Number || v.PublishedBy != "pat" || v.Digest != accesspackage.Digest(x.Items[0].Change.After) {
		t.Errorf("the version: %+v", v)
	}
	if m.get(x.Number).State() != approval.StateEffective {
		t.Error("the ticket is not done")
	}
}

// TestPackageRequestsAreChecked checks who may publish, and what a version may contain.
func TestPackageRequestsAreChecked(t *testing.T) {
	draft := func(change func(*approval.PackageDraft)) approval.Request {
		r := publishes(accesspackage.ChainOwners, "mid")
		change(r.Items[0].Package)
		return r
	}
	same := func(*approval.PackageDraft) {}
	for name, tc := range map[string]struct {
		who  string
		r    approval.Request
		want approval.Code
	}{
		"a member of the team":                      {"pat", draft(same), ""},
		"the security team, whom nobody leads here": {"erin", draft(same), approval.CodeNoApprover},
		"somebody else":                             {"alice", draft(same), approval.CodeForbidden},
		"a team of somebody else":                   {"pat", draft(func(d *approval.PackageDraft) { d.Spec.Team = "team" }), approval.CodeForbidden},
		"an unknown team":                           {"erin", draft(func(d *approval.PackageDraft) { d.Spec.Team = "x" }), approval.CodeInvalid},
		"an auditor":                                {"otto", draft(same), approval.CodeForbidden},
		"a name that is no name":                    {"pat", draft(func(d *approval.PackageDraft) { d.Name = "A/B" }), approval.CodeInvalid},
		"no title":                                  {"pat", draft(func(d *approval.PackageDraft) { d.Spec.Title = " " }), approval.CodeInvalid},
		"a title that changes text":                 {"pat", draft(func(d *approval.PackageDraft) { d.Spec.Title = "a\u202eb" }), approval.CodeInvalid},
		"an unknown chain":                          {"pat", draft(func(d *approval.PackageDraft) { d.Spec.Chain = "x" }), approval.CodeInvalid},
		"no resources":                              {"pat", draft(func(d *approval.PackageDraft) { d.Resources = nil }), approval.CodeInvalid},
		"a resource twice": {"pat", draft(func(d *approval.PackageDraft) { d.Resources = append(d.Resources, d.Resources[0]) }),
			approval.CodeInvalid},
		"an unknown resource": {"pat", draft(func(d *approval.PackageDraft) { d.Resources[0].ID = "x" }), approval.CodeInvalid},
		"an unknown action":   {"pat", draft(func(d *approval.PackageDraft) { d.Resources[0].Actions = []string{"y"} }), approval.CodeInvalid},
		"a duration too long": {"pat", draft(func(d *approval.PackageDraft) { d.Spec.DurationSeconds = 400 * 86400 }), approval.CodeInvalid},
		"too many resources": {"pat", draft(func(d *approval.PackageDraft) {
			d.Resources = slices.Repeat(d.Resources, accesspackage.MaxResources+1)
		}), approval.CodeInvalid},
	} {
		m, _ := withPackages(t)
		p, err := m.svc.Plan(t.Context(), m.actorOf(tc.who), tc.r)
		if err == nil {
			err = p.Items[0].Err
		}
		if approval.CodeOf(err) != tc.want {
			t.Errorf("%s: %v, want the code %q", name, err, tc.want)
		}
	}
}

// TestRequestingAPackage checks that the items are those of the version, and that the caller cannot alter them.
func TestRequestingAPackage(t *testing.T) {
	m, p := withPackages(t)
	m.publish(accesspackage.ChainOwners)
	x := m.submit("alice", wantsPackage(1))
	if len(x.Items) != 2 || x.Kind != approval.KindGrant {
		t.Fatalf("the ticket: %+v", x)
	}
	digest := p.all["pay"].Current.Digest
	for i, want := range []struct{ resource, chain string }{{nameLow, ": leader(carol), owner(bob carol dan)"}, {nameMid, ": leader(carol), owner(mia)"}} {
		it := x.Items[i]
		if it.ResourceName != want.resource || chainOf(it) != want.chain || it.Duration != 24*time.Hour {
			t.Errorf("item %d: %s %s %s", i, it.ResourceName, chainOf(it), it.Duration)
		}
		if line := "package pay version 1: " + digest; !slices.Contains(it.Shown.Lines, line) {
			t.Errorf("the approvers do not see %q: %q", line, it.Shown.Lines)
		}
		if d := cmp.Diff(&approval.PackageRef{Name: "pay", Version: 1, Digest: digest}, it.Package); d != "" {
			t.Errorf("the package (-want +got):\n%s", d)
		}
	}
	alter := func(change func(*approval.Request)) approval.Request {
		r := wantsPackage(1)
		change(&r)
		return r
	}
	for name, tc := range map[string]struct {
		who  string
		r    approval.Request
		want approval.Code
	}{
		"a shorter duration": {"alice", alter(func(r *approval.Request) { r.Items[0].Duration = time.Hour }), ""},
		"a longer one":       {"alice", alter(func(r *approval.Request) { r.Items[0].Duration = 25 * time.Hour }), approval.CodeInvalid},
		"another resource":   {"alice", alter(func(r *approval.Request) { r.Items[0].Resource = "high" }), approval.CodeInvalid},
		"further actions":    {"alice", alter(func(r *approval.Request) { r.Items[0].Actions = []string{"x:write"} }), approval.CodeInvalid},
		"a further item":     {"alice", alter(func(r *approval.Request) { r.Items = append(r.Items, r.Items[0]) }), approval.CodeInvalid},
		"break-glass":        {"alice", alter(func(r *approval.Request) { r.BreakGlass = true }), approval.CodeInvalid},
		"another version":    {"alice", alter(func(r *approval.Request) { r.Package.Version = 2 }), approval.CodeStale},
		"an unknown package": {"alice", alter(func(r *approval.Request) { r.Package.Name = "x" }), approval.CodeNotFound},
		"not an owner":       {"zoe", wantsPackage(1), approval.CodeForbidden},
	} {
		p, err := m.svc.Plan(t.Context(), m.actorOf(tc.who), tc.r)
		if err == nil {
			err = p.Items[0].Err
		}
		if approval.CodeOf(err) != tc.want {
			t.Errorf("%s: %v, want the code %q", name, err, tc.want)
		}
	}
	m.approve(x.Number, "carol", "dan", "mia")
	m.settle()
	m.is(x.Number, approval.StateEffective)
	if found, err := m.svc.Store.List(t.Context(), approval.Filter{Package: "pay"}); err != nil || len(found) != 1 || found[0].Number != x.Number {
		t.Errorf("the tickets of the package: %+v, %v", found, err)
	}
	if _, err := m.svc.Plan(t.Context(), m.actorOf("alice"), alter(func(r *approval.Request) { r.Items[0].Duration = time.Hour })); approval.CodeOf(
		err) != approval.CodeConflict {
		t.Errorf("the application has all of it for longer: %v", err)
	}
	archived := p.all["pay"]
	archived.ArchivedAt = m.now
	p.all["pay"] = archived
	if _, err := m.svc.Plan(t.Context(), m.actorOf("alice"), wantsPackage(1)); approval.CodeOf(err) != approval.CodeConflict {
		t.Errorf("the package is archived: %v", err)
	}
}

// TestPublisherDecides checks when the team of a package decides in the place of the owners: only for resources whose owners approved the
// version and still are the owners, if they are not highly sensitive, and if no approval policy defines the steps.
func TestPublisherDecides(t *testing.T) {
	const team, owners = ": leader(carol), publisher(pat quinn ray)", ": leader(carol), owner(mia)"
	midOwner := `clusters:mid"}}, spec: {owner: "user:mia"}`
	for name, tc := range map[string]struct {
		reason string
		chain  accesspackage.Chain
		after  func(t *testing.T, m *model, p *packages)
		want   string // of mid
	}{
		"consent":      {"mia approved the version", accesspackage.ChainPublisher, nil, team},
		"chain owners": {"the package says so", accesspackage.ChainOwners, nil, owners},
		"another owner": {"zoe consented to nothing", accesspackage.ChainPublisher, func(t *testing.T, m *model, _ *packages) {
			t.Helper()
			m.catalog = readCatalog(t, packageCatalog(midOwner, `clusters:mid"}}, spec: {owner: "user:zoe"}`))
		}, ": leader(carol), owner(zoe)"},
		"sensitive now": {"the owner and the security team decide", accesspackage.ChainPublisher, func(t *testing.T, m *model, _ *packages) {
			t.Helper()
			m.catalog = readCatalog(t, packageCatalog(midOwner, `clusters:mid", acp.io/sensitivity: high}}, spec: {owner: "user:mia"}`))
		}, ": leader(carol), owner(mia), security(erin frank)"},
		"other content": {"nobody approved it", accesspackage.ChainPublisher, func(_ *testing.T, _ *model, p *packages) {
			x := p.all["pay"]
			x.Current.Content = []byte(strings.Replace(string(x.Current.Content), "Payments", "payments", 1))
			p.all["pay"] = x
		}, owners},
		"a policy": {"it defines the steps", accesspackage.ChainPublisher, func(_ *testing.T, m *model, _ *packages) {
			m.host.Policies = []*v1alpha1.ApprovalPolicy{policyOf("p", 1, "", asked("own", "resource.owner"))}
		}, "p: own(mia)"},
		"no team": {"nobody of it is left", accesspackage.ChainPublisher, func(t *testing.T, m *model, _ *packages) {
			t.Helper()
			m.catalog = readCatalog(t, packageCatalog("members: [pat, quinn, ray]", "members: []"))
		}, owners},
	} {
		t.Run(name, func(t *testing.T) {
			m, p := withPackages(t)
			m.publish(tc.chain)
			if tc.after != nil {
				tc.after(t, m, p)
			}
			plan, err := m.svc.Plan(t.Context(), m.actorOf("alice"), wantsPackage(1))
			if err != nil || plan.Items[1].Err != nil {
				t.Fatal(err, plan.Items)
			}
			if got := chainOf(plan.Items[1].Item); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestConsentOfSecurityIsNone checks that the owners decide about requests if the security team approved the version in their place.
func TestConsentOfSecurityIsNone(t *testing.T) {
	m, _ := withPackages(t)
	m.catalog = readCatalog(t, packageCatalog(`clusters:mid"}}, spec: {owner: "user:mia"}`, `clusters:mid"}}, spec: {owner: "user:pat"}`))
	x := m.submit("pat", publishes(accesspackage.ChainPublisher, "mid"))
	if got, want := chainOf(x.Items[0]), ": leader(lee), security(erin frank)"; got != want {
		t.Fatalf("pat cannot approve their own request: %s, want %s", got, want)
	}
	m.approve(x.Number, "lee", "erin")
	m.settle()
	p, err := m.svc.Plan(t.Context(), m.actorOf("alice"), wantsPackage(1))
	if err != nil || chainOf(p.Items[0].Item) != ": leader(carol), owner(pat)" {
		t.Errorf("pat consented to nothing: %v, %v", p.Items, err)
	}
}

// TestOwnerChangesAfterPackageRequest checks that the new owner has to decide, whatever the team of the package approved.
func TestOwnerChangesAfterPackageRequest(t *testing.T) {
	m, _ := withPackages(t)
	m.publish(accesspackage.ChainPublisher)
	x := m.submit("alice", wantsPackage(1))
	m.approve(x.Number, "carol")
	m.catalog = readCatalog(t, packageCatalog(`clusters:mid"}}, spec: {owner: "user:mia"}`, `clusters:mid"}}, spec: {owner: "user:zoe"}`))
	if _, err := m.svc.Decide(t.Context(), m.actorOf("pat"), x.Number, 1, m.version(x.Number), true, ""); approval.CodeOf(err) != approval.CodeStale {
		t.Fatalf("pat decides in the place of zoe: %v", err)
	}
	if got, want := chainOf(m.get(x.Number).Items[1]), ": leader(carol), owner(zoe)"; got != want {
		t.Errorf("the chain is %s, want %s", got, want)
	}
}

// TestStalePublication checks that a version that was approved for another base is not published.
func TestStalePublication(t *testing.T) {
	m, p := withPackages(t)
	x := m.submit("pat", publishes(accesspackage.ChainOwners, "mid"))
	m.approve(x.Number, "lee")
	p.all["pay"] = accesspackage.Package{Name: "pay", Current: accesspackage.Version{Number: 1, Ticket: 99}}
	m.approve(x.Number, "mia")
	m.settle()
	m.is(x.Number, approval.StateFailed)
	if p.all["pay"].Current.Ticket != 99 {
		t.Error("it replaced a version that nobody compared it with")
	}
}
