package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval/rules"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/organization"
	"github.com/acp-io/acp/internal/policy"
)

// Values of Change.Kind: the kinds of objects that a ticket can change.
const (
	ObjectProtectedResource = "ProtectedResource"
	ObjectResourceClass     = "ResourceClass"
	ObjectSubjectClass      = "SubjectClass"
	ObjectApprovalPolicy    = "ApprovalPolicy"
	ObjectOrganization      = "Organization"
	ObjectExternalWorkload  = "ExternalWorkload"
)

// maxSpec is the maximum size of a spec, in bytes.
const maxSpec = 64 << 10

// objectName matches a DNS subdomain.
var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// change plans to change an object of the host cluster.
func (x *planner) change(r RequestItem, path string) (Item, error) {
	var it Item
	var err error
	switch x.request.Kind {
	case KindClass:
		it, err = x.object(r, path, ObjectResourceClass, ObjectSubjectClass)
	case KindApprovalPolicy:
		it, err = x.object(r, path, ObjectApprovalPolicy, ObjectOrganization)
	case KindWorkload:
		it, err = x.registration(r, path)
	case KindMode, KindOnboard, KindOffboard:
		it, err = x.protection(r, path)
	default:
		err = fmt.Errorf("requests of the kind %s cannot be planned", x.request.Kind)
	}
	if err != nil {
		return it, err
	}
	if it.Override, err = x.mayClose(it.Change); err != nil {
		return it, err
	}
	if err := x.dryRun(it.Change, path); err != nil || x.actor.Security || it.Change.Kind != ObjectResourceClass && it.Change.Kind != ObjectApprovalPolicy {
		return it, err
	}
	// An API server whose definition of the kind is older drops the organization, and the object would be everybody's.
	organizations, err := x.Organizations()
	if err == nil && !Administers(x.c, x.actor.ID, organizations.Get(owningOrganization(it.Change))) {
		err = fail(CodeForbidden, message.RequestOrganizationOnly())
	}
	return it, err
}

// dryRun makes a dry run of a change, so that the approved spec contains the API server's defaults, and a change that the
// API server refuses is refused at once.
func (x *planner) dryRun(c *Change, path string) error {
	spec, err := x.Host.DryRun(x.ctx, *c)
	var refused *RefusedError
	switch {
	case errors.As(err, &refused):
		return invalid(strings.TrimSuffix(path, "."), message.HostRefuses(refused.Message))
	case err != nil:
		return &Error{Code: CodeUnavailable, Message: message.HostUnreachable(), Err: err}
	case c.Verb != VerbDelete:
		c.After = spec
	}
	if c.Verb != VerbDelete && bytes.Equal(c.Before, c.After) {
		return invalid(strings.TrimSuffix(path, "."), message.RequestNoChange())
	}
	return nil
}

// protection plans a change of a resource's protection, which its owners and the security team may request.
func (x *planner) protection(r RequestItem, path string) (Item, error) {
	res, ok := x.c.Resource(r.Resource)
	if !ok {
		return Item{}, invalid(path+"resource", message.RequestUnknownResource(r.Resource))
	}
	if !x.c.Owns(x.actor.ID, res) && !x.actor.Security {
		return Item{}, fail(CodeForbidden, message.RequestResourceNotOwner(res.Title, ownerNames(x.c, res)))
	}
	facts, err := x.Host.Facts(res.Name)
	if err != nil {
		return Item{}, err
	}
	if facts.Class == "" {
		return Item{}, invalid(path+"resource", message.RequestNoResourceClass(res.Name))
	}
	if x.request.Kind == KindOnboard {
		if err := x.checkClassUse(facts.ClassObject, res); err != nil {
			return Item{}, err
		}
	}
	change, err := x.protectionChange(r, path, res, facts.Protection)
	if err != nil {
		return Item{}, err
	}
	return Item{Resource: res.ID, ResourceName: res.Name, Change: change}, nil
}

func (x *planner) protectionChange(r RequestItem, path string, res catalog.Entity, has *v1alpha1.ProtectedResource) (*Change, error) {
	kind := x.request.Kind
	if (kind == KindOnboard) != (has == nil) {
		if has == nil {
			return nil, fail(CodeConflict, message.RequestNotOnboarded(res.Title))
		}
		return nil, fail(CodeConflict, message.RequestOnboardedAlready(res.Title))
	}
	if kind == KindOffboard {
		return offboarding(res, has)
	}
	now := v1alpha1.ProtectedResourceSpec{Resource: v1alpha1.ResourceName(res.Name), Mode: v1alpha1.ModeObserve}
	c := &Change{Kind: ObjectProtectedResource, Name: policy.PolicyNameFor(res.Name), Verb: VerbCreate}
	if has != nil {
		now = *has.Spec.DeepCopy()
		now.TemporaryAudit = nil // begins and ends without a ticket, so it is not part of the change
		c.Name, c.Verb, c.Base, c.FromMode, c.Before = has.Name, VerbUpdate, has.ResourceVersion, has.Spec.Mode, canonical(now)
	}
	if r.Mode != "" {
		now.Mode = r.Mode
	}
	if r.ClusterModes != nil {
		now.ClusterModes = nil
		for _, cluster := range slices.Sorted(maps.Keys(r.ClusterModes)) {
			now.ClusterModes = append(now.ClusterModes, v1alpha1.ClusterMode{Cluster: v1alpha1.ClusterName(cluster), Mode: r.ClusterModes[cluster]})
		}
	}
	for _, m := range append([]v1alpha1.ClusterMode{{Mode: now.Mode}}, now.ClusterModes...) {
		if _, ok := strictness[m.Mode]; !ok || m.Mode == "" {
			return nil, invalid(path+"mode", message.RequestUnknownMode(string(m.Mode)))
		}
	}
	c.ToMode, c.After = now.Mode, canonical(now)
	return c, nil
}

// offboarding returns the deletion of a protection. It refuses to delete one that is enforced, because that would open the
// resource: the mode has to be lowered first.
func offboarding(res catalog.Entity, has *v1alpha1.ProtectedResource) (*Change, error) {
	for _, m := range append([]v1alpha1.ClusterMode{{Mode: has.Spec.Mode}}, has.Spec.ClusterModes...) {
		if m.Mode != v1alpha1.ModeObserve {
			return nil, fail(CodeConflict, message.RequestObserveFirst(res.Title, string(m.Mode)))
		}
	}
	before := has.Spec
	before.TemporaryAudit = nil
	return &Change{
		Kind:     ObjectProtectedResource,
		Name:     has.Name,
		Verb:     VerbDelete,
		Base:     has.ResourceVersion,
		Before:   canonical(before),
		FromMode: has.Spec.Mode,
	}, nil
}

// object plans a change of a class, an approval policy or an organization. The security team may request all of them, and the
// administrators of an organization those of its resource classes and approval policies.
func (x *planner) object(r RequestItem, path string, kinds ...string) (Item, error) {
	organizations, err := x.Organizations()
	if err != nil {
		return Item{}, err
	}
	o := r.Object
	switch {
	case !x.actor.Security && !AdministersAny(x.c, x.actor.ID, organizations):
		return Item{}, fail(CodeForbidden, message.RequestSecurityOnly())
	case o == nil || !slices.Contains(kinds, o.Kind):
		return Item{}, invalid(path+"object.kind", message.RequestObjectMissing(fmt.Sprint(kinds)))
	case !objectName.MatchString(o.Name):
		return Item{}, invalid(path+"object.name", message.RequestObjectName())
	}
	had, exists, err := x.Host.Object(o.Kind, o.Name)
	if err != nil {
		return Item{}, err
	}
	c := &Change{Kind: o.Kind, Name: o.Name, Verb: o.Verb}
	if exists {
		c.Base, c.Before = had.ResourceVersion, had.Spec
	}
	switch {
	case !x.actor.Security && !x.delegated(organizations, o, c):
		return Item{}, fail(CodeForbidden, message.RequestOrganizationOnly())
	case o.Verb == VerbCreate && exists:
		return Item{}, fail(CodeConflict, message.RequestObjectExists(o.Kind, o.Name))
	case (o.Verb == VerbUpdate || o.Verb == VerbDelete) && !exists:
		return Item{}, fail(CodeConflict, message.RequestObjectExistsNot(o.Kind, o.Name))
	case o.Verb == VerbDelete:
		return Item{Change: c}, nil
	case o.Verb != VerbCreate && o.Verb != VerbUpdate:
		return Item{}, invalid(path+"object.verb", message.RequestObjectVerb())
	}
	if c.After, err = CanonicalSpec(o.Kind, o.Spec); err != nil {
		return Item{}, invalid(path+"object.spec", message.RequestSpecInvalid(message.Of(err)))
	}
	if err := checkTeams(organizations, c); err != nil {
		return Item{}, err
	}
	return Item{Change: c}, checkBounds(organizations, c)
}

// delegated reports whether the actor administers the organization to which the object belongs, as it is and as it is requested.
func (x *planner) delegated(all *organization.Index, o *ObjectChange, c *Change) bool {
	wanted := *c
	if o.Verb != VerbDelete {
		wanted.After = o.Spec
	}
	return Administers(x.c, x.actor.ID, all.Get(owningOrganization(&wanted)))
}

// CanonicalSpec parses a spec strictly and returns its canonical JSON. The expressions of an approval policy must compile.
func CanonicalSpec(kind string, spec json.RawMessage) (json.RawMessage, error) {
	if len(spec) > maxSpec {
		return nil, message.SpecTooLarge(len(spec), maxSpec).Err()
	}
	switch kind {
	case ObjectProtectedResource:
		return strict(spec, &v1alpha1.ProtectedResourceSpec{})
	case ObjectResourceClass:
		return strict(spec, &v1alpha1.ResourceClassSpec{})
	case ObjectSubjectClass:
		return strict(spec, &v1alpha1.SubjectClassSpec{})
	case ObjectExternalWorkload:
		return strict(spec, &v1alpha1.ExternalWorkloadSpec{})
	case ObjectOrganization:
		return strict(spec, &v1alpha1.OrganizationSpec{})
	case ObjectApprovalPolicy:
		var s v1alpha1.ApprovalPolicySpec
		text, err := strict(spec, &s)
		if err != nil {
			return nil, err
		}
		if _, problems := rules.Compile(&v1alpha1.ApprovalPolicy{Spec: s}); len(problems) > 0 {
			return nil, problems[0].Message().Err()
		}
		return text, nil
	}
	return nil, message.SpecUnknownKind(kind).Err()
}

func strict(spec json.RawMessage, into any) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(spec))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, message.SpecTrailing().Err()
	}
	return canonical(into), nil
}

// canonical returns the JSON of a spec. Specs of the API's types can always be encoded.
func canonical(spec any) json.RawMessage {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil
	}
	return text
}
