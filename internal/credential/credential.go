// Package credential owns what callers show to be recognised: machine tokens, the codes by which a command line gets
// one (RFC 8628), and the list of browser sessions. Secrets leave it once, when they are made; what is kept are their
// SHA-256 hashes, which is enough because each secret has at least 256 random bits (a user code has fewer, and lives ten
// minutes). It says who a caller is, never what he may do. It may import the ledger's form of a line; never HTTP or SQL.
package credential

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/ledger"
)

// Scope is one kind of call that a token is good for. What its owner may not do, it does not do either.
type Scope string

const (
	ScopeRead          Scope = "read"
	ScopeTicketsWrite  Scope = "tickets:write"
	ScopeTicketsDecide Scope = "tickets:decide"
	ScopeCatalogWrite  Scope = "catalog:write"
	ScopeWorkloads     Scope = "workloads:write"
	ScopeLedgerRead    Scope = "ledger:read"
	ScopeRollout       Scope = "rollout:write" // temporary audits, announcements, guards
)

// Scopes that there are, sorted.
func Scopes() []Scope {
	return []Scope{ScopeCatalogWrite, ScopeLedgerRead, ScopeRead, ScopeRollout, ScopeTicketsDecide, ScopeTicketsWrite, ScopeWorkloads}
}

// Limits of a token, as api/openapi.yaml states them.
const (
	MinLifetime = 5 * time.Minute
	MaxLifetime = 366 * 24 * time.Hour
	MaxName     = 100
	// MaxTokens that a person has at a time: more cannot be looked after.
	MaxTokens = 50

	secretPrefix = "acp_"
	// shownOfSecret is how much of a secret its owner sees later, to know it again.
	shownOfSecret = len(secretPrefix) + 4
	// usedEvery limits how often a busy token's last use is stored.
	usedEvery = time.Minute
)

// What callers decide on.
var (
	// ErrUnknown means that there is no such credential, or it has ended.
	ErrUnknown = errors.New("the credential is not known, or has ended")
	// ErrPending means that nobody has agreed to the device login yet.
	ErrPending = errors.New("the device login waits for its user")
	// ErrSlowDown means that the command line asks more often than it was told to.
	ErrSlowDown = errors.New("the device login is asked for too often")
	// ErrDenied means that the user said no.
	ErrDenied = errors.New("the device login was denied")
	// ErrTooMany means that the person has as many tokens as he can have, or too many device logins wait.
	ErrTooMany = errors.New("there are too many")
	// ErrRepeated means that a token was made with this idempotency key already. Its secret was shown then, and only then.
	ErrRepeated = errors.New("the idempotency key was used already")
)

// InvalidError says what is wrong with the input, by the field of the API.
type InvalidError struct{ Field, Message string }

func (e *InvalidError) Error() string { return e.Field + ": " + e.Message }

// Token is a machine token without its secret.
type Token struct {
	ID, Person, Name string
	Scopes           []Scope // sorted
	Prefix           string  // the beginning of the secret
	CreatedAt        time.Time
	ExpiresAt        time.Time
	LastUsedAt       time.Time // zero: never; kept to the minute
}

// Has tells whether the token is good for a kind of call.
func (t *Token) Has(s Scope) bool { return slices.Contains(t.Scopes, s) }

// NewToken is a token to be stored.
type NewToken struct {
	Token
	Hash           string // of the secret
	IdempotencyKey string // of the person; empty: none
}

// Session is a browser's login. ID is the hash of what the browser holds.
type Session struct {
	ID, Person, UserAgent string
	CreatedAt, ExpiresAt  time.Time
}

// Store keeps credentials. Every method is one transaction, which the ledger lines it is given belong to.
type Store interface {
	// AddToken stores a token: ErrTooMany if its person has MaxTokens that have not expired, ErrRepeated if he used the
	// idempotency key.
	AddToken(ctx context.Context, t NewToken, line ledger.Entry) error
	// TokenByHash of its secret; ErrUnknown. It may have expired.
	TokenByHash(ctx context.Context, hash string) (Token, error)
	// Tokens of a person that have not expired at an instant, newest first.
	Tokens(ctx context.Context, person string, now time.Time) ([]Token, error)
	// TokenUsed remembers an instant of use.
	TokenUsed(ctx context.Context, id string, at time.Time) error
	// RemoveToken of a person; ErrUnknown if he has none of this id.
	RemoveToken(ctx context.Context, person, id string, line ledger.Entry) error

	// AddDevice stores a device login; ErrTooMany if more than MaxWaiting have not expired.
	AddDevice(ctx context.Context, d Device) error
	// DeviceByUserCode finds one by the hash of its user code; ErrUnknown. It may have expired.
	DeviceByUserCode(ctx context.Context, hash string) (Device, error)
	// UpdateDevice loads a device login by the hash of either code, and stores what the function makes of it, with the
	// token that it brings. An error of the function is returned as it is and changes nothing. ErrUnknown.
	UpdateDevice(ctx context.Context, hash string, change func(*Device) (*NewToken, *ledger.Entry, error)) error

	// Sessions of a person that have not expired at an instant, newest first.
	Sessions(ctx context.Context, person string, now time.Time) ([]Session, error)
	// EndSessions of a person but one.
	EndSessions(ctx context.Context, person, but string, line ledger.Entry) error

	// Prune removes what expired before an instant.
	Prune(ctx context.Context, before time.Time) error
}

// Service makes and checks credentials.
type Service struct {
	Store Store
	Now   func() time.Time
}

// Request for a token.
type Request struct {
	Name           string
	Scopes         []Scope
	Lifetime       time.Duration
	IdempotencyKey string
}

// Create a token for a person. The secret is returned once and can never be read again.
func (s *Service) Create(ctx context.Context, person string, r Request) (t Token, secret string, err error) {
	r.Name = strings.TrimSpace(r.Name)
	if r.Name == "" || utf8.RuneCountInString(r.Name) > MaxName || strings.ContainsFunc(r.Name, unprintable) {
		return Token{}, "", &InvalidError{"name", fmt.Sprintf("Name the token with 1 to %d characters, so that you know later what it is for.", MaxName)}
	}
	if r.Lifetime < MinLifetime || r.Lifetime > MaxLifetime {
		return Token{}, "", &InvalidError{"expiresInSeconds", "A token lives for at least 5 minutes and at most 366 days."}
	}
	scopes, err := checkScopes(r.Scopes)
	if err != nil {
		return Token{}, "", err
	}
	n, secret := s.token(person, r.Name, scopes, r.Lifetime)
	n.IdempotencyKey = r.IdempotencyKey
	if err := s.Store.AddToken(ctx, n, made(n.Token)); err != nil {
		return Token{}, "", err
	}
	return n.Token, secret, nil
}

func checkScopes(in []Scope) ([]Scope, error) {
	out := slices.Compact(slices.Sorted(slices.Values(in)))
	if len(out) == 0 {
		return nil, &InvalidError{"scopes", "Name at least one scope."}
	}
	for _, x := range out {
		if !slices.Contains(Scopes(), x) {
			return nil, &InvalidError{"scopes", fmt.Sprintf("There is no scope %q.", x)}
		}
	}
	return out, nil
}

func (s *Service) token(person, name string, scopes []Scope, lifetime time.Duration) (NewToken, string) {
	secret := secretPrefix + newSecret()
	now := s.Now().UTC().Truncate(time.Microsecond)
	return NewToken{Hash: Hash(secret), Token: Token{ID: rand.Text(), Person: person, Name: name, Scopes: scopes, Prefix: secret[:shownOfSecret],
		CreatedAt: now, ExpiresAt: now.Add(lifetime)}}, secret
}

func made(t Token) ledger.Entry {
	return ledger.Entry{At: t.CreatedAt, Actor: t.Person, Action: "token.created", Object: "token " + t.ID,
		Details: map[string]string{"name": t.Name, "scopes": joined(t.Scopes), "expires": t.ExpiresAt.Format(time.RFC3339)}}
}

// Authenticate a secret; ErrUnknown if it is not one, or its token has ended.
func (s *Service) Authenticate(ctx context.Context, secret string) (Token, error) {
	if len(secret) != len(secretPrefix)+secretLength || !strings.HasPrefix(secret, secretPrefix) {
		return Token{}, ErrUnknown
	}
	t, err := s.Store.TokenByHash(ctx, Hash(secret))
	if err != nil {
		return Token{}, err
	}
	now := s.Now()
	if !now.Before(t.ExpiresAt) {
		return Token{}, ErrUnknown
	}
	if now.Sub(t.LastUsedAt) >= usedEvery {
		// A token is good while its last use cannot be stored: reading goes on when the store cannot be written.
		if err := s.Store.TokenUsed(ctx, t.ID, now.UTC()); err == nil {
			t.LastUsedAt = now
		}
	}
	return t, nil
}

// Tokens of a person.
func (s *Service) Tokens(ctx context.Context, person string) ([]Token, error) {
	return s.Store.Tokens(ctx, person, s.Now())
}

// Revoke a token of a person: it is worth nothing from then on.
func (s *Service) Revoke(ctx context.Context, person, id string) error {
	return s.Store.RemoveToken(ctx, person, id, ledger.Entry{At: s.Now(), Actor: person, Action: "token.revoked", Object: "token " + id})
}

// Sessions of a person.
func (s *Service) Sessions(ctx context.Context, person string) ([]Session, error) {
	return s.Store.Sessions(ctx, person, s.Now())
}

// EndSessions of a person but the one with this id.
func (s *Service) EndSessions(ctx context.Context, person, but string) error {
	return s.Store.EndSessions(ctx, person, but, ledger.Entry{At: s.Now(), Actor: person, Action: "sessions.ended", Object: "person " + person})
}

// secretLength is that of newSecret.
const secretLength = 52

// newSecret has 260 random bits in the letters A-Z and digits 2-7.
func newSecret() string { return rand.Text() + rand.Text() }

// Hash is how a secret is kept.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func joined(scopes []Scope) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return strings.Join(words, " ")
}

func unprintable(r rune) bool { return r < ' ' || r == 0x7f }
