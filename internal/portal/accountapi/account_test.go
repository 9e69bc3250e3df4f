package accountapi

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/credential/gormstore"
	"github.com/acp-io/acp/internal/database/databasetest"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/featuretest"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// TestAuditorsGetOnlyTokensThatRead checks each scope: the token of an auditor must not be able to change anything, because a token does
// not carry the claim of a login that its owner is an auditor.
func TestAuditorsGetOnlyTokensThatRead(t *testing.T) {
	store := gormstore.New(databasetest.Open(t, databasetest.SQLite(t)), ledgerstore.Append)
	a := &API{
		Data:        &views.Data{Tickets: &approval.Service{}},
		Credentials: &credential.Service{Store: store, Now: func() time.Time { return featuretest.Now }},
	}
	for _, scope := range credential.Scopes() {
		reads := slices.Contains([]credential.Scope{credential.ScopeRead, credential.ScopeLedgerRead}, scope)
		for _, auditor := range []bool{false, true} {
			body := openapi.CreateTokenJSONRequestBody{Name: "ci", ExpiresInSeconds: 3600, Scopes: []openapi.TokenScope{openapi.TokenScope(scope)}}
			got, err := a.CreateToken(featuretest.Context(t, approval.Actor{ID: "grace", Auditor: auditor}), openapi.CreateTokenRequestObject{Body: &body})
			if refused := auditor && !reads; (approval.CodeOf(err) == approval.CodeForbidden) != refused || !refused && err != nil {
				t.Errorf("scope %s, auditor %v: %v, %v", scope, auditor, got, err)
			}
		}
	}
}

// TestTokensBelongToTheirOwners checks that the list contains the caller's tokens without secrets, and that nobody revokes the token of
// another person.
func TestTokensBelongToTheirOwners(t *testing.T) {
	store := gormstore.New(databasetest.Open(t, databasetest.SQLite(t)), ledgerstore.Append)
	a := &API{
		Data:        &views.Data{Tickets: &approval.Service{}},
		Credentials: &credential.Service{Store: store, Now: func() time.Time { return featuretest.Now }},
	}
	body := openapi.CreateTokenJSONRequestBody{Name: "ci", ExpiresInSeconds: 3600, Scopes: []openapi.TokenScope{"read"}}
	alice, bob := featuretest.Context(t, approval.Actor{ID: "alice"}), featuretest.Context(t, approval.Actor{ID: "bob"})
	response, err := a.CreateToken(alice, openapi.CreateTokenRequestObject{Body: &body})
	if err != nil {
		t.Fatal(err)
	}
	created := response.(openapi.CreateToken201JSONResponse)
	list := func(who int) []openapi.Token {
		t.Helper()
		ctx := alice
		if who == 1 {
			ctx = bob
		}
		got, err := a.ListTokens(ctx, openapi.ListTokensRequestObject{})
		if err != nil {
			t.Fatal(err)
		}
		return got.(openapi.ListTokens200JSONResponse).Items
	}
	if got := list(1); len(got) != 0 {
		t.Errorf("another person sees %v", got)
	}
	if _, err := a.RevokeToken(bob, openapi.RevokeTokenRequestObject{Id: created.Token.Id}); err == nil {
		t.Error("another person revoked the token")
	}
	if d := cmp.Diff([]openapi.Token{created.Token}, list(0)); d != "" {
		t.Error(d)
	}
	if _, err := a.RevokeToken(alice, openapi.RevokeTokenRequestObject{Id: created.Token.Id}); err != nil {
		t.Fatal(err)
	}
	if got := list(0); len(got) != 0 {
		t.Errorf("the revoked token is listed: %v", got)
	}
}

// TestTokenWithoutLifetimeIsRefused checks that a lifetime that no duration can hold is refused instead of overflowing.
func TestTokenWithoutLifetimeIsRefused(t *testing.T) {
	store := gormstore.New(databasetest.Open(t, databasetest.SQLite(t)), ledgerstore.Append)
	a := &API{
		Data:        &views.Data{Tickets: &approval.Service{}},
		Credentials: &credential.Service{Store: store, Now: func() time.Time { return featuretest.Now }},
	}
	for _, seconds := range []int64{-1, 0, int64(credential.MaxLifetime/time.Second) + 1, 1 << 62} {
		body := openapi.CreateTokenJSONRequestBody{Name: "ci", ExpiresInSeconds: seconds, Scopes: []openapi.TokenScope{"read"}}
		if got, err := a.CreateToken(featuretest.Context(t, approval.Actor{ID: "alice"}), openapi.CreateTokenRequestObject{Body: &body}); err == nil {
			t.Errorf("a token of %d seconds was created: %v", seconds, got)
		}
	}
}

// TestRoles checks the roles that the pages of a person depend on.
func TestRoles(t *testing.T) {
	c := featuretest.Data(t).Catalog()
	for name, tc := range map[string]struct {
		who  approval.Actor
		want []openapi.Role
	}{
		"Owner of an application": {approval.Actor{ID: "alice"}, []openapi.Role{openapi.RoleRequester, openapi.RoleApplicationOwner}},
		"Owner of a resource":     {approval.Actor{ID: "bob"}, []openapi.Role{openapi.RoleRequester, openapi.RoleResourceOwner}},
		"Leader":                  {approval.Actor{ID: "carol"}, []openapi.Role{openapi.RoleRequester, openapi.RoleLeader}},
		"Security":                {approval.Actor{ID: "dave", Security: true}, []openapi.Role{openapi.RoleRequester, openapi.RoleSecurity}},
		"Auditor":                 {approval.Actor{ID: "grace", Auditor: true}, []openapi.Role{openapi.RoleAuditor}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, roles(c, tc.who)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestMayBreakGlass checks that only people whom a policy names may get access before its approval.
func TestMayBreakGlass(t *testing.T) {
	all := []*v1alpha1.ApprovalPolicy{{}, {Spec: v1alpha1.ApprovalPolicySpec{BreakGlass: &v1alpha1.BreakGlass{People: []string{"alice"}}}}}
	if !mayBreakGlass(all, "alice") || mayBreakGlass(all, "bob") || mayBreakGlass(all[:1], "alice") || mayBreakGlass(nil, "") {
		t.Error("the policies name alice alone")
	}
}

// TestUnknownDeviceCodesAreNotFound checks that a wrong code looks like one that ended, and that other errors stay what they are.
func TestUnknownDeviceCodesAreNotFound(t *testing.T) {
	var p *core.Problem
	if !errors.As(deviceProblem(credential.ErrUnknown), &p) || p.Status != 404 {
		t.Errorf("got %v", p)
	}
	if other := errors.New("the store is away"); !errors.Is(deviceProblem(other), other) {
		t.Error("another error was replaced")
	}
}
