package credential

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/ledger"
)

// Parameters of a device login; RFC 8628, sections 3.2, 3.5 and 6.1.
const (
	// DeviceLifetime is the time in which a device login must be completed.
	DeviceLifetime = 10 * time.Minute
	// DeviceInterval is the minimum time between two polls of a device.
	DeviceInterval = 5 * time.Second
	// DeviceTokenLifetime is how long a command line stays logged in.
	DeviceTokenLifetime = 7 * 24 * time.Hour
	// MaxPendingDevices bounds the device logins that callers without a login can make the store keep.
	MaxPendingDevices = 10_000
	// MaxClient bounds the name that a command line gives itself, in characters.
	MaxClient = 100

	// userCodeLetters form no words and can be distinguished when they are read aloud.
	userCodeLetters = "BCDFGHJKLMNPQRSTVWXZ"
	userCodeLength  = 8
)

// DeviceScopes returns the scopes of a command line: what people do with tickets. Programs that do more need tokens of
// their own.
func DeviceScopes() []Scope {
	return []Scope{ScopeLedgerRead, ScopeRead, ScopeTicketsDecide, ScopeTicketsWrite}
}

// DeviceState is the state of a device login.
type DeviceState string

const (
	// DeviceWaiting means that no person has decided yet.
	DeviceWaiting DeviceState = "waiting"
	// DeviceApproved means that a person approved the login.
	DeviceApproved DeviceState = "approved"
	// DeviceDenied means that a person denied the login.
	DeviceDenied DeviceState = "denied"
	// DeviceUsed means that the token was returned to the device.
	DeviceUsed DeviceState = "used"
)

// Device is one login of a command line. Both codes are stored as hashes.
type Device struct {
	DeviceHash, UserHash string
	Client, Address      string // the name that it gives itself, and its address
	State                DeviceState
	Person               string // the person who decided
	CreatedAt, ExpiresAt time.Time
	PolledAt             time.Time
	Interval             time.Duration
}

// DeviceCodes are the codes that the command line is given.
type DeviceCodes struct {
	DeviceCode, UserCode string
	Lifetime, Interval   time.Duration
}

// StartDevice begins a login for a caller who is not authenticated yet.
func (s *Service) StartDevice(ctx context.Context, client, address string) (DeviceCodes, error) {
	user, err := newUserCode()
	if err != nil {
		return DeviceCodes{}, err
	}
	normalized, err := normalizeUserCode(user)
	if err != nil {
		return DeviceCodes{}, err
	}
	codes := DeviceCodes{DeviceCode: newSecret(), UserCode: user, Lifetime: DeviceLifetime, Interval: DeviceInterval}
	now := s.Now().UTC().Truncate(time.Microsecond)
	err = s.Store.AddDevice(
		ctx,
		Device{DeviceHash: Hash(codes.DeviceCode), UserHash: Hash(normalized), Client: Printable(client, MaxClient), Address: address,
			State: DeviceWaiting, CreatedAt: now, ExpiresAt: now.Add(DeviceLifetime), Interval: DeviceInterval},
	)
	return codes, err
}

// PendingDevice returns the device login that a person is about to decide, or ErrUnknown unless it waits for a
// decision.
func (s *Service) PendingDevice(ctx context.Context, userCode string) (Device, error) {
	code, err := normalizeUserCode(userCode)
	if err != nil {
		return Device{}, err
	}
	d, err := s.Store.DeviceByUserCode(ctx, Hash(code))
	if err == nil && (d.State != DeviceWaiting || !s.Now().Before(d.ExpiresAt)) {
		return Device{}, ErrUnknown
	}
	return d, err
}

// DecideDevice approves or denies a device login on behalf of a person. It returns ErrUnknown unless the login waits
// for a decision.
func (s *Service) DecideDevice(ctx context.Context, person, userCode string, allow bool) error {
	code, err := normalizeUserCode(userCode)
	if err != nil {
		return err
	}
	return s.Store.UpdateDeviceByUserCode(ctx, Hash(code), func(d *Device) (*NewToken, *ledger.Entry, error) {
		if d.State != DeviceWaiting || !s.Now().Before(d.ExpiresAt) {
			return nil, nil, ErrUnknown
		}
		d.Person, d.State = person, DeviceDenied
		if allow {
			d.State = DeviceApproved
		}
		return nil, &ledger.Entry{At: s.Now(), Actor: person, Action: "device." + string(d.State), Object: "person " + person,
			Details: map[string]string{"client": d.Client, "address": d.Address}}, nil
	})
}

// PollDevice returns the token of an approved device login, once. known reports whether a person is still in the
// catalog. Errors are ErrPending, ErrSlowDown, ErrDenied, ErrUnknown and ErrTooMany. The user code is not accepted: people
// near the user can read it, and it is short enough to be guessed.
func (s *Service) PollDevice(ctx context.Context, deviceCode string, known func(person string) bool) (Token, string, error) {
	if len(deviceCode) != secretLength {
		return Token{}, "", ErrUnknown
	}
	var token Token
	var secret string
	var answer error
	err := s.Store.UpdateDeviceByDeviceCode(ctx, Hash(deviceCode), func(d *Device) (*NewToken, *ledger.Entry, error) {
		token, secret, answer = Token{}, "", nil
		now := s.Now()
		early := !d.PolledAt.IsZero() && now.Sub(d.PolledAt) < d.Interval
		d.PolledAt = now.UTC()
		switch {
		case !now.Before(d.ExpiresAt), d.State == DeviceUsed:
			answer = ErrUnknown
		case early:
			d.Interval += DeviceInterval
			answer = ErrSlowDown
		case d.State == DeviceWaiting:
			answer = ErrPending
		case d.State != DeviceApproved || !known(d.Person):
			answer = ErrDenied
		}
		if answer != nil {
			return nil, nil, nil //nolint:nilerr // the time of the poll is stored, and the answer returned below
		}
		d.State = DeviceUsed
		n, x := s.token(d.Person, deviceName(d), DeviceScopes(), DeviceTokenLifetime)
		token, secret = n.Token, x
		line := createdEntry(n.Token)
		return &n, &line, nil
	})
	if err == nil {
		err = answer
	}
	if err != nil {
		return Token{}, "", err
	}
	return token, secret, nil
}

func deviceName(d *Device) string {
	if d.Client == "" {
		return "command line"
	}
	const what = "command line: "
	return what + Printable(d.Client, MaxName-len(what))
}

func newUserCode() (string, error) {
	var b strings.Builder
	var one [1]byte
	for b.Len() < userCodeLength {
		if _, err := rand.Read(one[:]); err != nil {
			return "", fmt.Errorf("make a user code: %w", err)
		}
		// 240 is the largest multiple of 20 in a byte; with the values above it some letters would be more frequent.
		if one[0] < 240 {
			b.WriteByte(userCodeLetters[one[0]%byte(len(userCodeLetters))])
		}
	}
	code := b.String()
	return code[:userCodeLength/2] + "-" + code[userCodeLength/2:], nil
}

// normalizeUserCode removes the differences in how people type a code: case, spaces and the dash. It returns ErrUnknown
// for a code of another length than user codes have.
func normalizeUserCode(code string) (string, error) {
	letters := strings.Map(func(r rune) rune {
		if strings.ContainsRune(userCodeLetters, r) {
			return r
		}
		return -1
	}, strings.ToUpper(code))
	if len(letters) != userCodeLength {
		return "", ErrUnknown
	}
	return letters, nil
}
