package core

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
)

// Names of the claims that the portal reads if nothing else is configured.
const (
	DefaultUsernameClaim = "preferred_username"
	DefaultGroupsClaim   = "groups"
)

// Claims are the names of the claims of ID tokens that the portal reads. A name that no claim has is a path: realm_access.roles is the
// member roles of the claim realm_access. Fields that are empty have the defaults.
type Claims struct {
	// Username is the claim with the id of the person in the catalog.
	Username string
	// Groups is the claim with the list of the person's groups.
	Groups string
	// Security and Auditors are the groups in that claim that make a person a security administrator or an auditor.
	Security, Auditors []string
}

func (n Claims) withDefaults() Claims {
	n.Username, n.Groups = cmp.Or(n.Username, DefaultUsernameClaim), cmp.Or(n.Groups, DefaultGroupsClaim)
	if n.Security == nil {
		n.Security = []string{catalog.GroupSecurity}
	}
	if n.Auditors == nil {
		n.Auditors = []string{catalog.GroupAuditors}
	}
	return n
}

// person returns the id of the person, or "" if the claims do not have it, or have the name of a program that requests access.
func (n Claims) person(claims map[string]any) string {
	id, _ := claimOf(claims, n.Username).(string)
	if approval.IsProgram(id) {
		return ""
	}
	return id
}

// roles returns those of catalog.GroupSecurity and catalog.GroupAuditors that the claims give, and false if the claim with the groups is
// not a list of names. A person may be in thousands of other groups, which a session does not store.
func (n Claims) roles(claims map[string]any) (out []string, ok bool) {
	claim := claimOf(claims, n.Groups)
	list, ok := claim.([]any)
	if !ok && claim != nil {
		return nil, false
	}
	var groups []string
	for _, x := range list {
		g, ok := x.(string)
		if !ok {
			return nil, false
		}
		groups = append(groups, g)
	}
	has := func(g string) bool { return slices.Contains(groups, g) }
	if slices.ContainsFunc(n.Auditors, has) {
		out = append(out, catalog.GroupAuditors)
	}
	if slices.ContainsFunc(n.Security, has) {
		out = append(out, catalog.GroupSecurity)
	}
	return out, true
}

// authTime returns when the person authenticated at the provider, by the claim auth_time, but not after now; zero if there is no such claim.
// ok is false if the claim is not a number of seconds since 1970, or in the future by more than clockSkew.
func authTime(claims map[string]any, now time.Time) (at time.Time, ok bool) {
	claim := claims["auth_time"]
	if claim == nil {
		return time.Time{}, true
	}
	seconds, ok := claim.(float64)
	if !ok || seconds < 1 || seconds > float64(now.Add(clockSkew).Unix()) {
		return time.Time{}, false
	}
	if at = time.Unix(int64(seconds), 0); at.After(now) {
		at = now
	}
	return at, true
}

// claimOf returns the claim with a name, or at a path, or nil.
func claimOf(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok {
		return v
	}
	first, rest, nested := strings.Cut(name, ".")
	inner, ok := claims[first].(map[string]any)
	if !nested || !ok {
		return nil
	}
	return claimOf(inner, rest)
}
