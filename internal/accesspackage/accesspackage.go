// Package accesspackage defines access packages: named bundles of access to several resources that a team publishes, and that
// applications request as one. A version of a package is published by a ticket (package approval), which never changes it afterwards. The
// package depends on neither HTTP, SQL nor tickets.
package accesspackage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

const (
	// MaxPackages is the maximum number of packages, with those that are archived.
	MaxPackages = 1000
	// MaxResources is the maximum number of resources of a package, which is the maximum number of items of a ticket.
	MaxResources = 50
	// MaxTitle is the maximum length of a title in characters.
	MaxTitle = 100
	// MaxHolders is the maximum number of applications to which one version is given.
	MaxHolders = 100
	// MaxDescription is the maximum length of a description in characters.
	MaxDescription = 2000
)

// Chain says who decides a request for a package.
type Chain string

const (
	// ChainOwners is the chain of requests for the resources one by one.
	ChainOwners Chain = "owners"
	// ChainPublisher replaces the owners of a resource by the team of the package, if they approved the version that is requested.
	ChainPublisher Chain = "publisher"
)

// Valid reports whether the chain is one of the constants.
func (c Chain) Valid() bool { return c == ChainOwners || c == ChainPublisher }

// Spec is the content of a version. Its JSON is canonical: it is what approvers agree to, and its digest identifies it.
type Spec struct {
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	// Team is the id of the group that publishes the package.
	Team string `json:"team"`
	// DurationSeconds is the longest duration of the access, and the one of a request that names none; 0 means until revoked.
	DurationSeconds int64                 `json:"durationSeconds,omitempty"`
	Hours           *v1alpha1.WeeklyHours `json:"hours,omitempty"`
	Chain           Chain                 `json:"chain"`
	// Resources are the resources by their names.
	Resources map[string]Resource `json:"resources"`
	// Holders are the applications, by their names, that are given the version when it is published, because they held access by the package
	// when it was requested. Without any, holders keep what they have. The field is omitted then, so that the digests of versions without it
	// do not depend on it.
	Holders map[string]HolderChange `json:"holders,omitempty"`
	// Sensitive are the names of the resources that were highly sensitive when a version with Holders was requested, sorted. The approval of
	// the security team counts for these only.
	Sensitive []string `json:"sensitive,omitempty"`
}

// HolderChange is what a version changes for an application that holds access by the package, as approvers are shown it. Each field has actions,
// sorted, by the names of resources.
type HolderChange struct {
	// Gets contains the actions that the version has and the application does not have by the package. It is given at most these.
	Gets map[string][]string `json:"gets,omitempty"`
	// Loses contains the actions that the application has by the package and the version does not have.
	Loses map[string][]string `json:"loses,omitempty"`
	// Renews is what it has by an access that also has actions which it loses. That access is revoked as a whole, and this is given again.
	Renews map[string][]string `json:"renews,omitempty"`
}

// Resource is the access of a package to one resource.
type Resource struct {
	Actions []string `json:"actions"`
	// Owners are the owners that the catalog had for the resource when the version was requested, as "user:<id>" or "group:<id>". Their
	// consent counts only while they still are the owners.
	Owners []string `json:"owners"`
}

// Duration returns the longest duration of the access; 0 means until revoked.
func (s Spec) Duration() time.Duration { return time.Duration(s.DurationSeconds) * time.Second }

// ResourceNames returns the names of the resources, sorted.
func (s Spec) ResourceNames() []string {
	out := make([]string, 0, len(s.Resources))
	for name := range s.Resources {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// JSON returns the canonical JSON of the spec.
func (s Spec) JSON() (json.RawMessage, error) {
	out, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode a package: %w", err)
	}
	return out, nil
}

// ParseSpec reads the canonical JSON of a spec.
func ParseSpec(text json.RawMessage) (Spec, error) {
	var s Spec
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read a package: %w", err)
	}
	return s, nil
}

// Digest returns the hex SHA-256 of the canonical JSON of a spec.
func Digest(text json.RawMessage) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// InvalidError reports an invalid field of a package.
type InvalidError struct {
	Field  string
	Reason message.Message
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason.Text }

// packageName matches the names of packages, which are part of addresses.
var packageName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// CheckName returns an *InvalidError if a package cannot have the name.
func CheckName(name string) error {
	if !packageName.MatchString(name) {
		return &InvalidError{"name", message.AccessPackageName()}
	}
	return nil
}

// Normalize returns the spec with its texts trimmed and its actions sorted, or an *InvalidError for the first invalid field. Whether the
// catalog has the team and the resources is not checked.
func (s Spec) Normalize() (Spec, error) {
	s.Title, s.Description = strings.TrimSpace(s.Title), strings.TrimSpace(s.Description)
	if n := utf8.RuneCountInString(s.Title); n == 0 || n > MaxTitle || strings.ContainsFunc(s.Title, unprintable) {
		return s, &InvalidError{"title", message.AccessPackageTitle(MaxTitle)}
	}
	if utf8.RuneCountInString(s.Description) > MaxDescription || strings.ContainsFunc(s.Description, func(r rune) bool { return r != '\n' && unprintable(r) }) {
		return s, &InvalidError{"description", message.AccessPackageDescription(MaxDescription)}
	}
	if !s.Chain.Valid() {
		return s, &InvalidError{"chain", message.FieldOneOf([]string{string(ChainOwners), string(ChainPublisher)})}
	}
	if n := len(s.Resources); n == 0 || n > MaxResources {
		return s, &InvalidError{"resources", message.FieldCount(MaxResources)}
	}
	resources := make(map[string]Resource, len(s.Resources))
	for name, r := range s.Resources {
		r.Actions = slices.Compact(slices.Sorted(slices.Values(r.Actions)))
		r.Owners = slices.Compact(slices.Sorted(slices.Values(r.Owners)))
		resources[name] = r
	}
	s.Resources = resources
	return s, nil
}

// unprintable reports whether a character is not shown, such as one that changes the direction of the text around it.
func unprintable(r rune) bool { return r == utf8.RuneError || !unicode.IsGraphic(r) }

// Package is a package with its current version.
type Package struct {
	Name       string
	Current    Version
	ArchivedAt time.Time // zero while it can be requested
	ArchivedBy string
}

// Archived reports whether the package cannot be requested any more.
func (p Package) Archived() bool { return !p.ArchivedAt.IsZero() }

// Version is a published version of a package.
type Version struct {
	Number      int // from 1 on
	Content     json.RawMessage
	Digest      string
	Ticket      int64 // which published it
	PublishedBy string
	PublishedAt time.Time
}

// Spec returns the content of the version.
func (v Version) Spec() (Spec, error) { return ParseSpec(v.Content) }

// Summary is the description of a package in lists.
type Summary struct {
	Name, Title, Description, Team string
	Chain                          Chain
	Version, Resources             int
	PublishedAt                    time.Time
	Archived                       bool
}

// Publication is a version that is to be published.
type Publication struct {
	Name    string
	Base    int // the current version that it replaces; 0 if the package is new
	Content json.RawMessage
	Ticket  int64
	By      string
	At      time.Time
}

var (
	// ErrUnknown means that there is no such package.
	ErrUnknown = errors.New("no such access package")
	// ErrStale means that the current version is not the one that a publication replaces, or that the package is archived.
	ErrStale = errors.New("the access package was changed meanwhile")
	// ErrTooMany means that there are MaxPackages packages already.
	ErrTooMany = errors.New("too many access packages")
)

// Store stores packages. Every method is one transaction. Implementations pass the suite of accesspackagetest.
type Store interface {
	// Package returns a package with its current version, or ErrUnknown.
	Package(ctx context.Context, name string) (Package, error)
	// Version returns a published version of a package, or ErrUnknown.
	Version(ctx context.Context, name string, number int) (Version, error)
	// Versions returns the newest versions of a package, at most limit.
	Versions(ctx context.Context, name string, limit int) ([]Version, error)
	// List returns all packages, sorted by name.
	List(ctx context.Context) ([]Summary, error)
	// Publish stores a version and makes it the current one. If the version has Holders, it stores an update of them, too, in the state
	// UpdateQueued. It changes nothing if the ticket of the publication has published a version of the package already. It returns ErrStale or
	// ErrTooMany if it cannot be published.
	Publish(ctx context.Context, p Publication) error
	// Archive makes a package unavailable for requests, with a ledger entry. It changes nothing if it is archived already, and returns
	// ErrUnknown if there is none.
	Archive(ctx context.Context, name, by string, at time.Time) error
	UpdateStore
}
