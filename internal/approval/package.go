package approval

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/accesspackage"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
)

// ObjectAccessPackage is the value of Change.Kind for a version of an access package. It is no object of the host cluster.
const ObjectAccessPackage = "AccessPackage"

// StepPublisher is decided by the team of an access package, in the place of owners who approved what is requested.
const StepPublisher = "publisher"

// Packages reads and publishes access packages; see accesspackage.Store.
type Packages interface {
	Package(ctx context.Context, name string) (accesspackage.Package, error)
	Publish(ctx context.Context, p accesspackage.Publication) error
}

// PackageRef is the version of an access package that an item is a part of.
type PackageRef struct {
	Name    string
	Version int
	Digest  string
	// Team is the group that decides in the place of the resource's owners; empty if the owners decide. Owners are those who approved
	// the version, in the form of accesspackage.Resource.
	Team   string   `json:",omitempty"`
	Owners []string `json:",omitempty"`

	// HolderUpdate reports whether the item is a part of a holder update: the application gets the version because it holds the package, as the
	// approvers of the version decided. Team is then that of the version, whose member the requester has to be. The JSON name is the one of
	// stored tickets, which keep it.
	HolderUpdate bool `json:"Given,omitempty"`
	// Ticket published the version, and Until is the latest end; zero means that there is none. Security reports whether the security team
	// approved the version, in which the resource was highly sensitive already. They are set if HolderUpdate is.
	Ticket   int64     `json:",omitempty"`
	Until    time.Time `json:",omitzero"`
	Security bool      `json:",omitempty"`
}

// PackageChoice is the version of an access package that is requested.
type PackageChoice struct {
	Name    string
	Version int
}

// PackageDraft is a version of an access package that is requested to be published. Its resources are given by their ids.
type PackageDraft struct {
	Name      string
	Spec      accesspackage.Spec // without Resources
	Resources []PackageResource
	// ToHolders gives the version to the applications that hold the package.
	ToHolders bool
}

// PackageResource is the access of a PackageDraft to one resource.
type PackageResource struct {
	ID      string
	Actions []string
}

// teamDecides reports whether the team of the package decides in the place of the owners of a resource: they approved the version, are still
// the owners, and the resource is known not to be highly sensitive.
func (p *PackageRef) teamDecides(resource catalog.Entity) bool {
	return p != nil && !p.HolderUpdate && p.Team != "" && len(p.Owners) > 0 && slices.Equal(p.Owners, ownersOf(resource)) &&
		(resource.Sensitivity == catalog.SensitivityLow || resource.Sensitivity == catalog.SensitivityMedium)
}

// ownersOf returns the owners of an entity in the form of accesspackage.Resource.
func ownersOf(e catalog.Entity) []string {
	out := entity(e).Owners
	slices.Sort(out)
	return slices.Compact(out)
}

// MayPublish reports whether a person may publish versions of a package of these teams, and archive it: a member of all of them, or the
// security team.
func MayPublish(c *catalog.Catalog, person string, teams ...string) bool {
	if c.InGroup(person, catalog.GroupAuditors) {
		return false
	}
	return c.InGroup(person, catalog.GroupSecurity) || !slices.ContainsFunc(teams, func(team string) bool { return !c.InGroup(person, team) })
}

// publication plans to publish a version of an access package.
func (x *planner) publication(r RequestItem, path string) (Item, error) {
	d := r.Package
	path += "package."
	switch {
	case x.Packages == nil:
		return Item{}, fail(CodeUnavailable, message.AccessPackageNotHere())
	case d == nil:
		return Item{}, invalid(path+"name", message.AccessPackageName())
	}
	if err := accesspackage.CheckName(d.Name); err != nil {
		return Item{}, invalidPackage(path, err)
	}
	c := &Change{Kind: ObjectAccessPackage, Name: d.Name, Verb: VerbCreate}
	teams := []string{d.Spec.Team}
	var before accesspackage.Spec
	switch had, err := x.Packages.Package(x.ctx, d.Name); {
	case errors.Is(err, accesspackage.ErrUnknown):
	case err != nil:
		return Item{}, err
	default:
		if before, err = had.Current.Spec(); err != nil {
			return Item{}, err
		}
		teams = append(teams, before.Team)
		c.Verb, c.Base, c.Before = VerbUpdate, strconv.Itoa(had.Current.Number), had.Current.Content
		if had.Archived() {
			return Item{}, fail(CodeConflict, message.AccessPackageArchived(d.Name))
		}
	}
	if _, ok := x.c.Group(d.Spec.Team); !ok {
		return Item{}, invalid(path+"team", message.AccessPackageUnknownTeam(d.Spec.Team))
	}
	if !MayPublish(x.c, x.actor.ID, teams...) {
		return Item{}, fail(CodeForbidden, message.AccessPackageNotInTeam(x.teamTitle(teams[len(teams)-1])))
	}
	spec, err := x.packageSpec(d, path)
	if err != nil {
		return Item{}, err
	}
	if d.ToHolders {
		if err := x.addHolders(&spec, d.Name, path); err != nil {
			return Item{}, err
		}
	}
	if c.After, err = spec.JSON(); err != nil {
		return Item{}, err
	}
	same, err := changesNothing(spec, before)
	switch {
	case err != nil:
		return Item{}, err
	case len(c.After) > maxSpec && d.ToHolders:
		return Item{}, invalid(path+"toHolders", message.AccessPackageHoldersTooLarge(len(c.After), maxSpec))
	case len(c.After) > maxSpec:
		return Item{}, invalid(path+"resources", message.SpecTooLarge(len(c.After), maxSpec))
	case same:
		return Item{}, invalid("items", message.RequestNoChange())
	}
	return Item{Change: c}, nil
}

// packageSpec checks the content of a draft, and adds the owners of its resources.
func (x *planner) packageSpec(d *PackageDraft, path string) (accesspackage.Spec, error) {
	spec := d.Spec
	var err error
	if spec.Hours, err = normalHours(spec.Hours, path); err != nil {
		return spec, err
	}
	if length := spec.Duration(); length != 0 && (length < MinDuration || length > MaxDuration) {
		return spec, invalid(path+"durationSeconds", message.RequestDurationRange())
	}
	if len(d.Resources) > accesspackage.MaxResources {
		return spec, invalid(path+"resources", message.FieldCount(accesspackage.MaxResources))
	}
	spec.Resources = map[string]accesspackage.Resource{}
	for i, r := range d.Resources {
		at := path + "resources[" + strconv.Itoa(i) + "]."
		res, ok := x.c.Resource(r.ID)
		if !ok {
			return spec, invalid(at+"resource", message.RequestUnknownResource(r.ID))
		}
		if _, twice := spec.Resources[res.Name]; twice {
			return spec, invalid(at+"resource", message.AccessPackageResourceTwice(res.Title))
		}
		actions, err := x.knownActions(res, r.Actions, at)
		if err != nil {
			return spec, err
		}
		spec.Resources[res.Name] = accesspackage.Resource{Actions: actions, Owners: ownersOf(res)}
	}
	if spec, err = spec.Normalize(); err != nil {
		return spec, invalidPackage(path, err)
	}
	return spec, nil
}

// invalidPackage returns the error about a field of a package.
func invalidPackage(path string, err error) error {
	var wrong *accesspackage.InvalidError
	if errors.As(err, &wrong) {
		return invalid(path+wrong.Field, wrong.Reason)
	}
	return err
}

func (x *planner) teamTitle(id string) string {
	if g, ok := x.c.Group(id); ok && g.Title != "" {
		return g.Title
	}
	return id
}

// packageItems returns the items of a request for an access package. The single item of the request names the application, and
// perhaps a shorter duration; everything else comes from the version.
func (x *planner) packageItems() ([]RequestItem, error) {
	choice, r := x.request.Package, x.request
	switch {
	case x.Packages == nil:
		return nil, fail(CodeUnavailable, message.AccessPackageNotHere())
	case r.Kind != KindGrant || r.BreakGlass || r.Adopt || len(r.Items) != 1 || !r.Items[0].onlyApplication():
		return nil, invalid("package", message.AccessPackageAlone())
	}
	p, err := x.Packages.Package(x.ctx, choice.Name)
	switch {
	case errors.Is(err, accesspackage.ErrUnknown):
		return nil, fail(CodeNotFound, message.AccessPackageUnknown(choice.Name))
	case err != nil:
		return nil, err
	case p.Archived():
		return nil, fail(CodeConflict, message.AccessPackageArchived(choice.Name))
	case choice.Version != p.Current.Number:
		return nil, fail(CodeStale, message.AccessPackageOtherVersion(choice.Name, p.Current.Number))
	}
	spec, err := p.Current.Spec()
	if err != nil {
		return nil, err
	}
	first := r.Items[0]
	switch longest := spec.Duration(); {
	case first.Duration == 0:
		first.Duration = longest
	case longest > 0 && first.Duration > longest:
		return nil, invalid("items[0].durationSeconds", message.AccessPackageDuration(formatDuration(longest)))
	}
	consent, err := x.consent(p.Current, spec)
	if err != nil {
		return nil, err
	}
	var out []RequestItem
	for _, name := range spec.ResourceNames() {
		res, ok := x.c.ByName(name)
		if !ok {
			return nil, fail(CodeConflict, message.AccessPackageResourceGone(name))
		}
		part := &PackageRef{Name: p.Name, Version: p.Current.Number, Digest: p.Current.Digest}
		if consent[name] {
			part.Team, part.Owners = spec.Team, spec.Resources[name].Owners
		}
		out = append(out, RequestItem{Application: first.Application, Resource: res.ID, Actions: spec.Resources[name].Actions, Duration: first.Duration,
			Hours: spec.Hours, part: part})
	}
	return out, nil
}

// onlyApplication reports whether an item names nothing but an application and a duration.
func (r RequestItem) onlyApplication() bool {
	return r.Resource == "" && len(r.Actions) == 0 && r.Hours == nil && r.Target == nil && r.Mode == "" && len(r.ClusterModes) == 0 && r.Object == nil &&
		r.Workload == nil && r.Package == nil
}

// consent returns the resources of which an owner approved exactly this version, so that the team of the package can decide in their
// place.
func (x *planner) consent(v accesspackage.Version, spec accesspackage.Spec) (map[string]bool, error) {
	if spec.Chain != accesspackage.ChainPublisher {
		return nil, nil
	}
	out, err := x.consentTo(x.ctx, v)
	return out.owners, err
}

// held reports whether an item of a request for a package was refused because the application has the access already, for as long. Such items
// are left out of the ticket.
func held(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Message.Code == message.RequestHasAccess("").Code ||
		slices.ContainsFunc(e.Fields, func(f Field) bool { return f.Message.Code == message.RequestHasLongerAccess("").Code }))
}

// packageOf returns the content of the version that a change publishes.
func (c *Change) packageOf() (accesspackage.Spec, bool) {
	if c == nil || c.Kind != ObjectAccessPackage {
		return accesspackage.Spec{}, false
	}
	spec, err := accesspackage.ParseSpec(c.After)
	return spec, err == nil
}

// packageTeams returns the teams whose members may request a change of a package: that of the new version, and that of the one before.
func (c *Change) packageTeams() []string {
	var out []string
	for _, text := range []json.RawMessage{c.After, c.Before} {
		if spec, err := accesspackage.ParseSpec(text); err == nil && len(text) > 0 {
			out = append(out, spec.Team)
		}
	}
	return out
}

// packageChain returns the built-in chain of a version of a package: the requester's leader, an owner of each resource, and the security team
// if one of them is highly sensitive.
func (a about) packageChain() ([]Step, error) {
	leader, err := a.builtinStep(StepLeader, nil)
	if err != nil {
		return nil, err
	}
	steps, err := a.ownerSteps([]wanted{leader}, Step{Name: StepOwner, Quorum: 1}, false, "")
	if err != nil {
		return nil, err
	}
	if steps, err = a.securityIfSensitive(steps, message.StepNotePackageHighlySensitive()); err != nil {
		return nil, err
	}
	chain, ok := choose(steps, false)
	if !ok {
		return nil, fail(CodeNoApprover, message.StepSamePersonPackage(catalog.GroupSecurity))
	}
	return chain, nil
}

// publisherStep returns the step of the team of an access package; false if nobody of it can decide.
func (a about) publisherStep(team string) (wanted, bool) {
	w := wanted{step: Step{Name: StepPublisher, Quorum: 1}, note: message.StepNotePublisher(),
		alternatives: a.waysToFill([]v1alpha1.Approver{v1alpha1.Approver(FromGroup + ":" + team)})}
	return w, len(w.alternatives) > 0
}

// publish publishes the version of an approved item. It is idempotent.
func (w *Worker) publish(ctx context.Context, t *Ticket, i int, check Check) (Written, error) {
	packages, c := w.Service.Packages, t.Items[i].Change
	base := 0
	if c.Base != "" {
		var err error
		if base, err = strconv.Atoi(c.Base); err != nil {
			return Written{}, &RefusedError{Message: message.AccessPackageChanged(c.Name), Final: true}
		}
	}
	if packages == nil {
		return Written{}, &RefusedError{Message: message.AccessPackageNotHere()}
	}
	p, err := packages.Package(ctx, c.Name)
	if err != nil && !errors.Is(err, accesspackage.ErrUnknown) {
		return Written{}, err
	}
	if err := check(ctx, err == nil && p.Current.Ticket == t.Number); err != nil {
		return Written{}, err
	}
	err = packages.Publish(ctx, accesspackage.Publication{Name: c.Name, Base: base, Content: c.After, Ticket: t.Number, By: t.Requester,
		At: w.Service.Now()})
	switch {
	case errors.Is(err, accesspackage.ErrStale):
		return Written{}, &RefusedError{Message: message.AccessPackageChanged(c.Name), Final: true}
	case errors.Is(err, accesspackage.ErrTooMany):
		return Written{}, &RefusedError{Message: message.AccessPackageTooMany(accesspackage.MaxPackages), Final: true}
	case err != nil:
		return Written{}, err
	}
	return Written{Generation: int64(base) + 1, UID: c.Name}, nil
}
