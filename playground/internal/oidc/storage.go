package oidc

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/subtle"
	"errors"
	"slices"
	"sync"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/acp-io/acp/playground/internal/demo"
)

const (
	tokenLifetime = time.Hour
	// A login that is not completed expires after this time.
	loginLifetime = 10 * time.Minute
	// rememberedSince is the age of the older login of people who are remembered: more than the portal of the playground accepts for sensitive
	// decisions.
	rememberedSince = 9 * time.Hour
)

var (
	errNoRequest = oidc.ErrInvalidRequest().WithDescription("this login is unknown or too old; start again from the application")
	errNoToken   = errors.New("unknown token")
)

// storage implements the storage that op requires.
type storage struct {
	client client
	secret string
	key    signingKey
	people map[string]demo.Person
	now    func() time.Time

	remembered []string // people whose login continues an older one

	mu       sync.Mutex
	requests map[string]*authRequest
	codes    map[string]string // code -> request id
	tokens   map[string]accessToken
}

type accessToken struct {
	subject, clientID string
	scopes            []string
	expires           time.Time
}

func newStorage(c client, secret string, key *rsa.PrivateKey, people []demo.Person, now func() time.Time) *storage {
	s := &storage{
		client: c, secret: secret, key: signingKey{key}, people: map[string]demo.Person{}, now: now,
		requests: map[string]*authRequest{}, codes: map[string]string{}, tokens: map[string]accessToken{},
	}
	for _, p := range people {
		s.people[p.Username] = p
	}
	return s
}

// login assigns a request to the user if the password is right.
func (s *storage) login(requestID, username, password string) (ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, found := s.requests[requestID]
	if !found {
		return false, errNoRequest
	}
	_, known := s.people[username]
	right := subtle.ConstantTimeCompare([]byte(password), []byte(demo.Password)) == 1
	if !known || !right {
		return false, nil
	}
	r.subject, r.authTime, r.done = username, s.now(), true
	if slices.Contains(s.remembered, username) && !slices.Contains(r.in.Prompt, oidc.PromptLogin) {
		r.authTime = r.authTime.Add(-rememberedSince)
	}
	return true, nil
}

// forget deletes expired requests. The caller holds the lock.
func (s *storage) forget() {
	now := s.now()
	for id, r := range s.requests {
		if now.Sub(r.created) > loginLifetime {
			delete(s.requests, id)
		}
	}
	for code, id := range s.codes {
		if s.requests[id] == nil {
			delete(s.codes, code)
		}
	}
	for id, t := range s.tokens {
		if now.After(t.expires) {
			delete(s.tokens, id)
		}
	}
}

func (s *storage) CreateAuthRequest(_ context.Context, in *oidc.AuthRequest, _ string) (op.AuthRequest, error) {
	id := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	r := &authRequest{id: id, created: s.now(), in: *in}
	s.requests[id] = r
	return *r, nil
}

func (s *storage) AuthRequestByID(_ context.Context, id string) (op.AuthRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	if r, ok := s.requests[id]; ok {
		return *r, nil
	}
	return nil, errNoRequest
}

func (s *storage) AuthRequestByCode(ctx context.Context, code string) (op.AuthRequest, error) {
	s.mu.Lock()
	id, ok := s.codes[code]
	delete(s.codes, code) // a code is valid once
	s.mu.Unlock()
	if !ok {
		return nil, oidc.ErrInvalidGrant().WithDescription("the code is unknown, used or too old")
	}
	return s.AuthRequestByID(ctx, id)
}

func (s *storage) SaveAuthCode(_ context.Context, id, code string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes[code] = id
	return nil
}

func (s *storage) DeleteAuthRequest(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.requests, id)
	return nil
}

func (s *storage) CreateAccessToken(_ context.Context, r op.TokenRequest) (string, time.Time, error) {
	id := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := accessToken{subject: r.GetSubject(), clientID: s.client.GetID(), scopes: r.GetScopes(), expires: s.now().Add(tokenLifetime)}
	s.tokens[id] = t
	return id, t.expires, nil
}

// There are no refresh tokens: the portal has sessions of its own.

func (s *storage) CreateAccessAndRefreshTokens(context.Context, op.TokenRequest, string) (string, string, time.Time, error) {
	return "", "", time.Time{}, oidc.ErrUnsupportedGrantType()
}

func (s *storage) TokenRequestByRefreshToken(context.Context, string) (op.RefreshTokenRequest, error) {
	return nil, op.ErrInvalidRefreshToken
}

func (s *storage) GetRefreshTokenInfo(context.Context, string, string) (string, string, error) {
	return "", "", op.ErrInvalidRefreshToken
}

func (s *storage) TerminateSession(_ context.Context, userID, clientID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, t := range s.tokens {
		if t.subject == userID && t.clientID == clientID {
			delete(s.tokens, id)
		}
	}
	return nil
}

func (s *storage) RevokeToken(_ context.Context, tokenID, _, _ string) *oidc.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, tokenID)
	return nil
}

func (s *storage) SigningKey(context.Context) (op.SigningKey, error) { return s.key, nil }

func (s *storage) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{jose.RS256}, nil
}

func (s *storage) KeySet(context.Context) ([]op.Key, error) { return []op.Key{publicKey{s.key}}, nil }

func (s *storage) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	if id != s.client.GetID() {
		return nil, oidc.ErrInvalidClient().WithDescription("unknown client")
	}
	return s.client, nil
}

func (s *storage) AuthorizeClientIDSecret(_ context.Context, id, secret string) error {
	if id != s.client.GetID() || subtle.ConstantTimeCompare([]byte(secret), []byte(s.secret)) != 1 {
		return oidc.ErrInvalidClient().WithDescription("wrong client or secret")
	}
	return nil
}

// SetUserinfoFromScopes sets the claims of the id token.
func (s *storage) SetUserinfoFromScopes(_ context.Context, info *oidc.UserInfo, subject, _ string, _ []string) error {
	return s.fill(info, subject)
}

func (s *storage) SetUserinfoFromToken(_ context.Context, info *oidc.UserInfo, tokenID, _, _ string) error {
	s.mu.Lock()
	t, ok := s.tokens[tokenID]
	s.mu.Unlock()
	if !ok || s.now().After(t.expires) {
		return errNoToken
	}
	return s.fill(info, t.subject)
}

// fill sets the same claims for all scopes, because the only client needs them all.
func (s *storage) fill(info *oidc.UserInfo, subject string) error {
	p, ok := s.people[subject]
	if !ok {
		return errors.New("unknown person")
	}
	info.Subject, info.PreferredUsername, info.Name = p.Username, p.Username, p.Name
	info.Email, info.EmailVerified = p.Email, true
	info.AppendClaims("groups", p.Groups)
	return nil
}

func (s *storage) SetIntrospectionFromToken(context.Context, *oidc.IntrospectionResponse, string, string, string) error {
	return errNoToken
}

func (s *storage) GetPrivateClaimsFromScopes(context.Context, string, string, []string) (map[string]any, error) {
	return nil, nil
}

func (s *storage) GetKeyByIDAndClientID(context.Context, string, string) (*jose.JSONWebKey, error) {
	return nil, errors.New("clients have no keys here")
}

func (s *storage) ValidateJWTProfileScopes(context.Context, string, []string) ([]string, error) {
	return nil, nil
}

func (s *storage) Health(context.Context) error { return nil }
