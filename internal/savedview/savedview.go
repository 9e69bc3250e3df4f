// Package savedview defines the views of lists that people save: the filters of one of the portal's pages, under a name. A
// view contains no data, so that whoever opens its address, or the link with which it is shared, sees only what they may see.
// The package depends on neither HTTP nor SQL.
package savedview

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/message"
)

const (
	// MaxViews is the maximum number of views of a person for one page.
	MaxViews = 50
	// MaxName is the maximum length of a name in characters.
	MaxName = 60
	// MaxQuery is the maximum length of a query in bytes.
	MaxQuery = 2000
)

// Page is a page of the portal whose filters can be saved. It is the path of the page without the leading slash.
type Page string

// These are the pages whose filters can be saved.
const (
	PageRequests       Page = "requests"
	PageFlows          Page = "flows"
	PageTraffic        Page = "traffic"
	PageApprovals      Page = "approvals"
	PageUnused         Page = "unused"
	PageFindings       Page = "findings"
	PageFleet          Page = "fleet"
	PageApplications   Page = "applications"
	PageResources      Page = "resources"
	PageRollout        Page = "rollout"
	PageAccess         Page = "access"
	PageAccessPolicies Page = "access-policies"
	PageReviews        Page = "reviews"
	PageLedger         Page = "ledger"
)

// Pages returns all pages whose filters can be saved.
func Pages() []Page {
	return []Page{PageRequests, PageFlows, PageTraffic, PageApprovals, PageUnused, PageFindings, PageFleet, PageApplications, PageResources, PageRollout,
		PageAccess, PageAccessPolicies, PageReviews, PageLedger}
}

// View is a named filter of a page.
type View struct {
	// ID is assigned by the store.
	ID   int64
	Page Page
	// Name is unique among the person's views of the page.
	Name string
	// Query is the query of the page's address, in canonical encoding and without the question mark.
	Query   string
	SavedAt time.Time
	// Link is the key of the link with which other people open the view. It cannot be guessed. It is empty unless the view is shared.
	Link string
}

// Shared is a view that a person shares.
type Shared struct {
	View
	// Person is the id of the person whose view it is.
	Person string
}

var (
	// ErrTooMany means that the person has MaxViews views of the page already.
	ErrTooMany = errors.New("too many saved views")
	// ErrUnknown means that the person has no such view.
	ErrUnknown = errors.New("no such saved view")
	// ErrNotShared reports that no view is shared with such a link.
	ErrNotShared = errors.New("no saved view is shared with this link")
)

// InvalidError reports an invalid field of a view.
type InvalidError struct {
	Field  string
	Reason message.Message
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason.Text }

// Normalize returns the view with its name trimmed and its query in canonical encoding, or an *InvalidError for the first
// invalid field. The result leads to the page and nowhere else, because the page is one of Pages and the canonical encoding
// of a query contains no characters that end it.
func (v View) Normalize() (View, error) {
	if !slices.Contains(Pages(), v.Page) {
		names := make([]string, 0, len(Pages()))
		for _, p := range Pages() {
			names = append(names, string(p))
		}
		return v, &InvalidError{"page", message.SavedViewPage(names)}
	}
	v.Name = strings.TrimSpace(v.Name)
	if n := utf8.RuneCountInString(v.Name); n == 0 || n > MaxName || strings.ContainsFunc(v.Name, unprintable) {
		return v, &InvalidError{"name", message.SavedViewName(MaxName)}
	}
	if len(v.Query) > MaxQuery {
		return v, &InvalidError{"query", message.SavedViewQueryTooLong(MaxQuery)}
	}
	values, err := url.ParseQuery(v.Query)
	if err != nil || len(values) == 0 || strings.ContainsAny(v.Query, "?#") || !printableValues(values) {
		return v, &InvalidError{"query", message.SavedViewQuery()}
	}
	v.Query = values.Encode()
	if len(v.Query) > MaxQuery { // the canonical encoding may be longer
		return v, &InvalidError{"query", message.SavedViewQueryTooLong(MaxQuery)}
	}
	return v, nil
}

// unprintable reports whether a character is not shown, such as one that changes the direction of the text around it.
func unprintable(r rune) bool {
	const zeroWidthNonJoiner, zeroWidthJoiner = 0x200c, 0x200d // of some scripts, and of emoji
	if r == zeroWidthNonJoiner || r == zeroWidthJoiner {
		return false
	}
	return r == utf8.RuneError || !unicode.IsGraphic(r)
}

func printableValues(values url.Values) bool {
	for key, all := range values {
		if key == "" || !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl) {
			return false
		}
		for _, value := range all {
			if !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
				return false
			}
		}
	}
	return true
}

// Store persists the views of people.
type Store interface {
	// Views returns the person's views of all pages, the one that was saved last first.
	Views(ctx context.Context, person string) ([]View, error)
	// Save stores a normalized view of the person and returns it with its ID. It replaces a view of the same page and name,
	// whose ID and link it keeps. It returns ErrTooMany if the view is new and the person has MaxViews of the page.
	Save(ctx context.Context, person string, v View) (View, error)
	// Delete removes a view of the person with its link, or returns ErrUnknown.
	Delete(ctx context.Context, person string, id int64) error
	// Share shares a view of the person with the link, and returns the view. A view that is shared already keeps its link. It
	// returns ErrUnknown if the person has no such view.
	Share(ctx context.Context, person string, id int64, link string) (View, error)
	// Unshare ends the sharing of a view of the person: its link leads nowhere from then on. It returns ErrUnknown if the person
	// has no such view.
	Unshare(ctx context.Context, person string, id int64) error
	// Shared returns the view that is shared with the link, or ErrNotShared.
	Shared(ctx context.Context, link string) (Shared, error)
}
