package catalog

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/message"
)

// Kind is the kind of an entity.
type Kind string

const (
	// KindApplication is an application, the client of resources.
	KindApplication Kind = "application"
	// KindResource is a resource, the server of applications.
	KindResource Kind = "resource"
	// KindGroup is a group of people.
	KindGroup Kind = "group"
	// KindPerson is a person.
	KindPerson Kind = "person"
)

// Kinds returns all kinds in the order in which they are shown.
func Kinds() []Kind { return []Kind{KindApplication, KindResource, KindGroup, KindPerson} }

// Ref identifies an entity.
type Ref struct {
	Kind Kind   `json:"kind"`
	ID   string `json:"id"`
}

func (r Ref) String() string { return string(r.Kind) + "/" + r.ID }

func compareRefs(a, b Ref) int {
	if a.Kind != b.Kind {
		return slices.Index(Kinds(), a.Kind) - slices.Index(Kinds(), b.Kind)
	}
	return strings.Compare(a.ID, b.ID)
}

// Record is the description of one entity by a source. Fields that its kind does not have are empty.
type Record struct {
	Kind        Kind   `json:"kind"`
	ID          string `json:"id"`
	Title       string `json:"title,omitempty"` // the display name; of a person, the full name
	Description string `json:"description,omitempty"`

	// Fields of applications and resources.
	Name        string      `json:"name,omitempty"` // the ACP resource name
	Environment string      `json:"environment,omitempty"`
	Sensitivity Sensitivity `json:"sensitivity,omitempty"` // of resources
	Owners      []Owner     `json:"owners,omitempty"`

	// Fields of people.
	JobTitle string   `json:"jobTitle,omitempty"`
	Email    string   `json:"email,omitempty"`
	Leader   string   `json:"leader,omitempty"`
	Groups   []string `json:"groups,omitempty"`

	// Fields of groups.
	Lead    string   `json:"lead,omitempty"`
	Parent  string   `json:"parent,omitempty"`
	Members []string `json:"members,omitempty"`

	// ExternalID is the identifier that a SCIM client gave a person or a group. Deactivated marks a person that a SCIM client
	// deactivated: they are gone, and the client may activate them again.
	ExternalID  string `json:"externalId,omitempty"`
	Deactivated bool   `json:"deactivated,omitempty"`

	// Where is the record's place in its source, for messages.
	Where string `json:"where,omitempty"`
}

// Ref returns the identity of the record's entity.
func (r Record) Ref() Ref { return Ref{r.Kind, r.ID} }

// Problem is a part of a source that is refused. If it has a Ref, the entity keeps its earlier content.
type Problem struct {
	Where   string         `json:"where,omitempty"`
	Ref     Ref            `json:"ref,omitzero"`
	Message message.Stored `json:"message"`
}

func problemOf(where string, ref Ref, m message.Message) Problem {
	return Problem{Where: where, Ref: ref, Message: message.Stored{Message: m}}
}

// Located returns the problem with its place.
func (p Problem) Located() message.Message {
	if p.Where == "" {
		return p.Message.Message
	}
	return message.CatalogProblemAt(p.Where, p.Message.Message)
}

func (p Problem) Error() string { return p.Located().Text }

// SourceContent is the whole content of a source at one time.
type SourceContent struct {
	Records  []Record
	Problems []Problem
}

// Err returns all problems as one error, or nil if there are none.
func (r SourceContent) Err() error {
	if len(r.Problems) == 0 {
		return nil
	}
	var errs []error
	for _, p := range r.Problems {
		errs = append(errs, p)
	}
	return fmt.Errorf("the catalog has %d problem(s): %w", len(errs), errors.Join(errs...))
}

// FieldError says why a field of a record is refused. Field is its name in JSON.
type FieldError struct {
	Field   string
	Message message.Message
}

func (e *FieldError) Error() string { return e.Message.Text }

// Unwrap returns the message, so that message.Of finds it.
func (e *FieldError) Unwrap() error { return e.Message.Err() }

func fieldError(field string, m message.Message) error {
	return &FieldError{Field: field, Message: m}
}

// Limits of one source. They are far above what companies have, and far below what costs too much memory.
const (
	// MaxRecords is the maximum number of records of a source.
	MaxRecords = 200_000
	maxText    = 256
	maxName    = 512
	maxLong    = 4096
	maxOwners  = 32
	maxID      = 128
	maxPeople  = 10_000 // members of a group
)

var (
	// idPattern is Backstage's rule for names, which also makes ids safe in URLs.
	idPattern = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,126}[A-Za-z0-9])?$`)
	// personPattern matches the ids of people, of at most maxID characters. They may also have the form of an address, such as
	// alice@corp.example, because that is what identity providers call their users. It matches everything that idPattern matches.
	personPattern = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?(@[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?)?$`)
	// namePattern matches an exact name of docs/semantics.md, "Names". The policy package parses it again where access
	// depends on it.
	namePattern        = regexp.MustCompile(`^trnv1:rsc:[a-z0-9-]{1,63}:[a-z0-9-]{1,63}:[a-z0-9-]{1,63}:[^*\s]+$`)
	environmentPattern = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
)

// validID reports whether an entity of a kind may have an id.
func validID(kind Kind, id string) bool {
	if kind == KindPerson {
		return len(id) <= maxID && personPattern.MatchString(id)
	}
	return idPattern.MatchString(id)
}

// Normalize returns the record in its normal form (lists sorted, defaults filled in), or a *FieldError that says why it
// is refused.
func (r Record) Normalize() (Record, error) {
	if !slices.Contains(Kinds(), r.Kind) {
		return r, fieldError("kind", message.CatalogKindInvalid(string(r.Kind)))
	}
	if !validID(r.Kind, r.ID) {
		if r.Kind == KindPerson {
			return r, fieldError("id", message.CatalogPersonIDInvalid(r.ID))
		}
		return r, fieldError("id", message.CatalogIDInvalid(string(r.Kind), r.ID))
	}
	r.Title = first(r.Title, r.ID)
	r.Groups, r.Members = sortedSet(r.Groups), sortedSet(r.Members)
	for _, f := range []struct {
		field, value string
		most         int
	}{
		{"title", r.Title, maxText}, {"jobTitle", r.JobTitle, maxText}, {"email", r.Email, maxText},
		{"description", r.Description, maxLong}, {"name", r.Name, maxName}, {"externalId", r.ExternalID, maxText},
	} {
		if err := text(f.value, f.most, f.field == "description"); err != nil {
			return r, fieldError(f.field, message.CatalogTextInvalid(f.field, r.Ref().String(), message.Of(err)))
		}
	}
	for _, f := range []struct {
		field string
		kind  Kind
		ids   []string
	}{
		{"groups", KindGroup, r.Groups}, {"members", KindPerson, r.Members}, {"leader", KindPerson, []string{r.Leader}},
		{"lead", KindPerson, []string{r.Lead}}, {"parent", KindGroup, []string{r.Parent}},
	} {
		if len(f.ids) > maxPeople {
			return r, fieldError(f.field, message.CatalogTooManyIds(r.Ref().String(), len(f.ids), f.field, maxPeople))
		}
		for _, id := range f.ids {
			if id != "" && !validID(f.kind, id) {
				return r, fieldError(f.field, message.CatalogPartInvalid(r.Ref().String(), id, f.field))
			}
		}
	}
	switch r.Kind {
	case KindPerson:
		if r.Leader == r.ID {
			return r, fieldError("leader", message.CatalogOwnLeader(r.Ref().String(), annotationLeader))
		}
	case KindGroup:
		if r.Parent == r.ID {
			return r, fieldError("parent", message.CatalogOwnParent(r.Ref().String()))
		}
	case KindApplication, KindResource:
		return r.normalizeOwned()
	}
	return r, nil
}

func (r Record) normalizeOwned() (Record, error) {
	if !namePattern.MatchString(r.Name) {
		return r, fieldError("name", message.CatalogNameInvalid(r.Ref().String(), annotationName, r.Name))
	}
	if r.Environment != "" && !environmentPattern.MatchString(r.Environment) {
		return r, fieldError("environment", message.CatalogEnvironmentInvalid(r.Ref().String(), r.Environment))
	}
	if len(r.Owners) == 0 {
		return r, fieldError("owners", message.CatalogOwnerMissing(r.Ref().String()))
	}
	r.Owners = slices.Clone(r.Owners)
	slices.SortFunc(r.Owners, func(a, b Owner) int { return strings.Compare(a.String(), b.String()) })
	r.Owners = slices.Compact(r.Owners)
	if len(r.Owners) > maxOwners {
		return r, fieldError("owners", message.CatalogTooManyOwners(r.Ref().String(), len(r.Owners), maxOwners))
	}
	for _, o := range r.Owners {
		if o.Kind != OwnerPerson && o.Kind != OwnerGroup || !validID(Kind(o.Kind), o.ID) {
			return r, fieldError("owners", message.CatalogOwnerInvalid(r.Ref().String(), o.String()))
		}
	}
	if r.Kind == KindApplication {
		r.Sensitivity = ""
		return r, nil
	}
	r.Sensitivity = Sensitivity(first(string(r.Sensitivity), string(SensitivityLow)))
	if r.Sensitivity != SensitivityLow && r.Sensitivity != SensitivityMedium && r.Sensitivity != SensitivityHigh {
		return r, fieldError("sensitivity", message.CatalogSensitivityInvalid(r.Ref().String(), string(r.Sensitivity)))
	}
	return r, nil
}

// text refuses what would break a log line, a header or a page.
func text(s string, most int, lines bool) error {
	switch {
	case len(s) > most:
		return message.TextTooLong(most).Err()
	case !utf8.ValidString(s):
		return message.TextNotUtf8().Err()
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && (!lines || r != '\n' && r != '\t') }):
		return message.TextControlCharacters().Err()
	}
	return nil
}

func parseOwner(ref string) (Owner, error) {
	kind, rest, found := strings.Cut(strings.TrimSpace(ref), ":")
	if !found {
		kind, rest = "group", kind
	}
	id := refID(rest)
	if id == "" {
		return Owner{}, message.CatalogOwnerNamesNobody(ref).Err()
	}
	switch strings.ToLower(kind) {
	case "user":
		return Owner{Kind: OwnerPerson, ID: id}, nil
	case "group":
		return Owner{Kind: OwnerGroup, ID: id}, nil
	}
	return Owner{}, message.CatalogOwnerForm(ref).Err()
}

// refID returns the id of a reference [kind:][namespace/]name. Backstage's default namespace is left out; any other is
// part of the id.
func refID(ref string) string {
	ref = strings.TrimSpace(ref)
	if _, rest, found := strings.Cut(ref, ":"); found {
		ref = rest
	}
	namespace, name, found := strings.Cut(ref, "/")
	if !found {
		return ref
	}
	return idIn(namespace, name)
}

func idIn(namespace, name string) string {
	if namespace == "" || strings.EqualFold(namespace, "default") {
		return name
	}
	return namespace + "." + name
}

func sortedSet(in []string) []string {
	out := slices.DeleteFunc(slices.Clone(in), func(s string) bool { return s == "" })
	slices.Sort(out)
	if out = slices.Compact(out); len(out) == 0 {
		return nil
	}
	return out
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
