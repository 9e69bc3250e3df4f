// Package credential owns the credentials with which callers authenticate: machine tokens, the codes by which a command
// line obtains one (RFC 8628), and the list of browser sessions. A secret is returned once, when it is created; only
// its SHA-256 hash is stored, which is sufficient because each secret has at least 256 random bits (a user code has
// fewer, and is valid for ten minutes). The package identifies callers and does not decide what they may do. It may
// import the ledger's form of a line, but neither HTTP nor SQL.
package credential

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/message"
)

// Scope is one kind of call that a token permits. A token never permits more than its owner may do.
type Scope string

const (
	// ScopeRead permits to read what the owner may read, except for the ledger.
	ScopeRead Scope = "read"
	// ScopeTicketsWrite permits to submit, withdraw, revoke and comment on tickets.
	ScopeTicketsWrite Scope = "tickets:write"
	// ScopeTicketsDecide permits to approve, reject and review.
	ScopeTicketsDecide Scope = "tickets:decide"
	// ScopeCatalogWrite permits to change the catalog.
	ScopeCatalogWrite Scope = "catalog:write"
	// ScopeWorkloads permits to register external workloads.
	ScopeWorkloads Scope = "workloads:write"
	// ScopeLedgerRead permits to read the ledger.
	ScopeLedgerRead Scope = "ledger:read"
	// ScopeRollout permits temporary audits, announcements and guards.
	ScopeRollout Scope = "rollout:write"
)

// Scopes returns all scopes, sorted.
func Scopes() []Scope {
	return []Scope{ScopeCatalogWrite, ScopeLedgerRead, ScopeRead, ScopeRollout, ScopeTicketsDecide, ScopeTicketsWrite, ScopeWorkloads}
}

// Limits of a token, as api/openapi.yaml states them.
const (
	// MinLifetime is the shortest lifetime of a token.
	MinLifetime = 5 * time.Minute
	// MaxLifetime is the longest lifetime of a token.
	MaxLifetime = 366 * 24 * time.Hour
	// MaxName is the maximum length of a token's name, in characters.
	MaxName = 100
	// MaxTokens is the number of tokens that a person may have at a time, because nobody can keep track of more.
	MaxTokens = 50

	secretPrefix = "acp_"
	// prefixLength is the length of the beginning of a secret that its owner is shown later, to recognise it.
	prefixLength = len(secretPrefix) + 4
	// lastUseInterval is the shortest time between two updates of a token's last use.
	lastUseInterval = time.Minute
)

// Errors that callers handle differently.
var (
	// ErrUnknown means that there is no such credential, or that it has ended.
	ErrUnknown = errors.New("the credential is not known, or has ended")
	// ErrPending means that no person has decided the device login yet.
	ErrPending = errors.New("the device login waits for its user")
	// ErrSlowDown means that the command line polls more often than DeviceInterval permits.
	ErrSlowDown = errors.New("the device login is polled too often")
	// ErrDenied means that the person denied the device login.
	ErrDenied = errors.New("the device login was denied")
	// ErrTooMany means that the person has MaxTokens tokens, or that MaxPendingDevices device logins wait.
	ErrTooMany = errors.New("there are too many")
	// ErrRepeated means that a token was created with this idempotency key before. Its secret was returned then, and
	// cannot be returned again.
	ErrRepeated = errors.New("the idempotency key was used already")
)

// InvalidError describes invalid input. Field is the name of the field in the API.
type InvalidError struct {
	Field   string
	Message message.Message
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Message.Text }

// Token is a machine token without its secret.
type Token struct {
	ID, Person, Name string
	Scopes           []Scope // sorted
	Prefix           string  // the beginning of the secret
	CreatedAt        time.Time
	ExpiresAt        time.Time
	LastUsedAt       time.Time // zero if never; accurate to a minute
}

// Has reports whether the token has a scope.
func (t *Token) Has(s Scope) bool { return slices.Contains(t.Scopes, s) }

// NewToken is a token to be stored.
type NewToken struct {
	Token
	Hash           string // of the secret
	IdempotencyKey string // unique for the person; may be empty
}

// Session is a browser's login. ID is the hash of the token that the browser holds.
type Session struct {
	ID, Person, UserAgent string
	CreatedAt, ExpiresAt  time.Time
}

// DeviceChange changes a device login. It returns the token and the ledger line to be stored with it, which may be nil.
type DeviceChange func(*Device) (*NewToken, *ledger.Entry, error)

// Store persists credentials. Every method is one transaction, which includes the ledger lines that the method is
// given.
type Store interface {
	// AddToken stores a token. It returns ErrTooMany if the person has MaxTokens tokens that have not expired, and
	// ErrRepeated if the person has used the idempotency key before.
	AddToken(ctx context.Context, t NewToken, line ledger.Entry) error
	// TokenByHash returns the token with the hash of a secret, even if it has expired, or ErrUnknown.
	TokenByHash(ctx context.Context, hash string) (Token, error)
	// Tokens returns the tokens of a person that have not expired at an instant, newest first.
	Tokens(ctx context.Context, person string, now time.Time) ([]Token, error)
	// TokenUsed records an instant at which a token was used.
	TokenUsed(ctx context.Context, id string, at time.Time) error
	// RemoveToken deletes a token of a person. It returns ErrUnknown if the person has no token with the id.
	RemoveToken(ctx context.Context, person, id string, line ledger.Entry) error

	// AddDevice stores a device login. It returns ErrTooMany if MaxPendingDevices device logins have not expired.
	AddDevice(ctx context.Context, d Device) error
	// DeviceByUserCode returns the device login with the hash of a user code, even if it has expired, or ErrUnknown.
	DeviceByUserCode(ctx context.Context, hash string) (Device, error)
	// UpdateDeviceByDeviceCode reads the device login with the hash of a device code, and stores it as the function has
	// changed it, with the token and the ledger line that the function returns. An error of the function is returned
	// unchanged, and nothing is stored. It returns ErrUnknown if there is no such device login.
	UpdateDeviceByDeviceCode(ctx context.Context, hash string, change DeviceChange) error
	// UpdateDeviceByUserCode is UpdateDeviceByDeviceCode for the hash of a user code. Neither method accepts the other
	// code: the device code is the secret for which a token is returned, and the user code is shown to people.
	UpdateDeviceByUserCode(ctx context.Context, hash string, change DeviceChange) error

	// Sessions returns the sessions of a person that have not expired at an instant, newest first.
	Sessions(ctx context.Context, person string, now time.Time) ([]Session, error)
	// EndSessions ends all sessions of a person except one.
	EndSessions(ctx context.Context, person, but string, line ledger.Entry) error

	// Prune deletes everything that expired before an instant.
	Prune(ctx context.Context, before time.Time) error
}

// Service creates and checks credentials.
type Service struct {
	Store Store
	Now   func() time.Time
}

// Request describes a token to be created.
type Request struct {
	Name           string
	Scopes         []Scope
	Lifetime       time.Duration
	IdempotencyKey string
}

// Create creates a token for a person. The secret is returned once and cannot be read again.
func (s *Service) Create(ctx context.Context, person string, r Request) (t Token, secret string, err error) {
	r.Name = strings.TrimSpace(r.Name)
	if r.Name == "" || utf8.RuneCountInString(r.Name) > MaxName || strings.ContainsFunc(r.Name, unprintable) {
		return Token{}, "", &InvalidError{"name", message.TokenNameLength(MaxName)}
	}
	if r.Lifetime < MinLifetime || r.Lifetime > MaxLifetime {
		return Token{}, "", &InvalidError{"expiresInSeconds", message.TokenLifetime()}
	}
	scopes, err := checkScopes(r.Scopes)
	if err != nil {
		return Token{}, "", err
	}
	n, secret := s.token(person, r.Name, scopes, r.Lifetime)
	n.IdempotencyKey = r.IdempotencyKey
	if err := s.Store.AddToken(ctx, n, createdEntry(n.Token)); err != nil {
		return Token{}, "", err
	}
	return n.Token, secret, nil
}

func checkScopes(in []Scope) ([]Scope, error) {
	out := slices.Compact(slices.Sorted(slices.Values(in)))
	if len(out) == 0 {
		return nil, &InvalidError{"scopes", message.TokenScopeMissing()}
	}
	for _, x := range out {
		if !slices.Contains(Scopes(), x) {
			return nil, &InvalidError{"scopes", message.TokenScopeUnknown(string(x))}
		}
	}
	return out, nil
}

func (s *Service) token(person, name string, scopes []Scope, lifetime time.Duration) (NewToken, string) {
	secret := secretPrefix + newSecret()
	now := s.Now().UTC().Truncate(time.Microsecond)
	return NewToken{Hash: Hash(secret), Token: Token{ID: rand.Text(), Person: person, Name: name, Scopes: scopes, Prefix: secret[:prefixLength],
		CreatedAt: now, ExpiresAt: now.Add(lifetime)}}, secret
}

func createdEntry(t Token) ledger.Entry {
	return ledger.Entry{At: t.CreatedAt, Actor: t.Person, Action: "token.created", Object: "token " + t.ID,
		Details: map[string]string{"name": t.Name, "scopes": joinScopes(t.Scopes), "expires": t.ExpiresAt.Format(time.RFC3339)}}
}

// Authenticate returns the token of a secret, or ErrUnknown if there is none or it has expired.
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
	if now.Sub(t.LastUsedAt) >= lastUseInterval {
		// A token remains valid while its last use cannot be stored, so that calls that only read go on when the store
		// cannot be written.
		if err := s.Store.TokenUsed(ctx, t.ID, now.UTC()); err == nil {
			t.LastUsedAt = now
		}
	}
	return t, nil
}

// Tokens returns the tokens of a person that have not expired, newest first.
func (s *Service) Tokens(ctx context.Context, person string) ([]Token, error) {
	return s.Store.Tokens(ctx, person, s.Now())
}

// Revoke deletes a token of a person. It is invalid from then on.
func (s *Service) Revoke(ctx context.Context, person, id string) error {
	return s.Store.RemoveToken(ctx, person, id, ledger.Entry{At: s.Now(), Actor: person, Action: "token.revoked", Object: "token " + id})
}

// Sessions returns the sessions of a person that have not expired, newest first.
func (s *Service) Sessions(ctx context.Context, person string) ([]Session, error) {
	return s.Store.Sessions(ctx, person, s.Now())
}

// EndSessions ends all sessions of a person except the one with the given id.
func (s *Service) EndSessions(ctx context.Context, person, but string) error {
	return s.Store.EndSessions(ctx, person, but, ledger.Entry{At: s.Now(), Actor: person, Action: "sessions.ended", Object: "person " + person})
}

// secretLength is the length of a secret that newSecret returns.
const secretLength = 52

// newSecret returns 260 random bits, written with the letters A-Z and the digits 2-7.
func newSecret() string { return rand.Text() + rand.Text() }

// Hash returns the form in which a secret is stored.
func Hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func joinScopes(scopes []Scope) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return strings.Join(words, " ")
}

func unprintable(r rune) bool { return r < ' ' || r == 0x7f }
