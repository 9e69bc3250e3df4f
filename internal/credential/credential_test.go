package credential_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"
	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/credential/gormstore"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/ledger"
)

// fixture is a service on a real database with a clock and the actions of the ledger lines that were written.
type fixture struct {
	*credential.Service
	store *gormstore.Store
	db    *database.DB
	mu    sync.Mutex
	now   time.Time
	told  []string
}

func each(t *testing.T, f func(t *testing.T, d *fixture)) {
	databasetest.Each(t, func(t *testing.T, dsn string) {
		d := &fixture{now: time.Now().Truncate(time.Second), db: databasetest.Open(t, dsn)}
		d.store = gormstore.New(d.db, func(_ *gorm.DB, entries ...ledger.Entry) error {
			d.mu.Lock()
			defer d.mu.Unlock()
			for _, e := range entries {
				d.told = append(d.told, e.Action)
			}
			return nil
		})
		d.Service = &credential.Service{Store: d.store, Now: func() time.Time { d.mu.Lock(); defer d.mu.Unlock(); return d.now }}
		f(t, d)
	})
}

func (d *fixture) pass(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(by)
}

func request() credential.Request {
	return credential.Request{Name: "ci", Scopes: []credential.Scope{credential.ScopeRead}, Lifetime: time.Hour}
}

func TestTokenLifecycle(t *testing.T) {
	each(t, func(t *testing.T, d *fixture) {
		ctx := t.Context()
		made, secret, err := d.Create(ctx, "alice", request())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(secret, "acp_") || len(secret) < 4+52 || !strings.HasPrefix(secret, made.Prefix) || len(made.Prefix) > 8 {
			t.Errorf("secret of %d characters, prefix %q", len(secret), made.Prefix)
		}
		if err := d.db.Read(ctx, func(tx *gorm.DB) error {
			var rows []map[string]any
			if err := tx.Table("tokens").Find(&rows).Error; err != nil {
				return err
			}
			for _, v := range rows[0] {
				if s, ok := v.(string); ok && len(s) > 8 && strings.Contains(secret, s) {
					t.Errorf("the database holds %q of the secret", s)
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		got, err := d.Authenticate(ctx, secret)
		if err != nil || got.Person != "alice" || !got.Has(credential.ScopeRead) || got.Has(credential.ScopeTicketsWrite) || got.LastUsedAt.IsZero() {
			t.Errorf("%+v, %v", got, err)
		}
		for reason, wrong := range map[string]string{"empty": "", "one letter off": secret[:len(secret)-1] + "7",
			"its hash": credential.Hash(secret), "its id": made.ID, "longer": secret + "A",
			"no prefix": strings.TrimPrefix(secret, "acp_"), "lower case": strings.ToLower(secret)} {
			if wrong == secret {
				continue
			}
			if _, err := d.Authenticate(ctx, wrong); !errors.Is(err, credential.ErrUnknown) {
				t.Errorf("%s: %v", reason, err)
			}
		}
		if err := d.Revoke(ctx, "bob", made.ID); !errors.Is(err, credential.ErrUnknown) {
			t.Errorf("somebody else's token: %v", err)
		}
		d.pass(time.Hour)
		if _, err := d.Authenticate(ctx, secret); !errors.Is(err, credential.ErrUnknown) {
			t.Errorf("an expired token: %v", err)
		}
		if list, err := d.Tokens(ctx, "alice"); err != nil || len(list) != 0 {
			t.Errorf("expired tokens are not listed: %v %v", list, err)
		}
		two, secret, err := d.Create(ctx, "alice", request())
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Store.Prune(ctx, d.Now()); err != nil {
			t.Fatal(err)
		}
		if err := d.Revoke(ctx, "alice", made.ID); !errors.Is(err, credential.ErrUnknown) {
			t.Errorf("what expired is pruned: %v", err)
		}
		if err := d.Revoke(ctx, "alice", two.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Authenticate(ctx, secret); !errors.Is(err, credential.ErrUnknown) {
			t.Errorf("a revoked token: %v", err)
		}
		if got := strings.Join(d.told, " "); got != "token.created token.created token.revoked" {
			t.Errorf("the ledger has the actions %s", got)
		}
	})
}

func TestCreateRefusesInvalidTokens(t *testing.T) {
	each(t, func(t *testing.T, d *fixture) {
		for name, tc := range map[string]struct {
			reason string
			change func(*credential.Request)
			field  string
		}{
			"no name":       {"what is it for", func(r *credential.Request) { r.Name = " " }, "name"},
			"long name":     {"bounded", func(r *credential.Request) { r.Name = strings.Repeat("x", 101) }, "name"},
			"line break":    {"a list has one line for each", func(r *credential.Request) { r.Name = "a\nb" }, "name"},
			"no scope":      {"good for nothing", func(r *credential.Request) { r.Scopes = nil }, "scopes"},
			"unknown scope": {"a typing error, or a wish", func(r *credential.Request) { r.Scopes = []credential.Scope{"admin"} }, "scopes"},
			"for ever":      {"every token ends", func(r *credential.Request) { r.Lifetime = 367 * 24 * time.Hour }, "expiresInSeconds"},
			"no time":       {"ended before it began", func(r *credential.Request) { r.Lifetime = 0 }, "expiresInSeconds"},
		} {
			r := request()
			tc.change(&r)
			var wrong *credential.InvalidError
			if _, _, err := d.Create(t.Context(), "alice", r); !errors.As(err, &wrong) || wrong.Field != tc.field {
				t.Errorf("%s: %s: %v", name, tc.reason, err)
			}
		}
		r := request()
		r.IdempotencyKey = "0123456789"
		if _, _, err := d.Create(t.Context(), "alice", r); err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.Create(t.Context(), "alice", r); !errors.Is(err, credential.ErrRepeated) {
			t.Errorf("the second of a double submit: %v", err)
		}
		if _, _, err := d.Create(t.Context(), "bob", r); err != nil {
			t.Errorf("keys are a person's own: %v", err)
		}
		for range credential.MaxTokens - 1 {
			if _, _, err := d.Create(t.Context(), "alice", request()); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := d.Create(t.Context(), "alice", request()); !errors.Is(err, credential.ErrTooMany) {
			t.Errorf("a token beyond the limit: got %v, want ErrTooMany", err)
		}
	})
}

func known(string) bool { return true }

func TestDeviceLogin(t *testing.T) {
	each(t, func(t *testing.T, d *fixture) {
		ctx := t.Context()
		begin := func() credential.DeviceCodes {
			t.Helper()
			codes, err := d.StartDevice(ctx, "kubectl-acp\r\non laptop", "192.0.2.1")
			if err != nil {
				t.Fatal(err)
			}
			return codes
		}
		poll := func(codes credential.DeviceCodes) error {
			t.Helper()
			d.pass(time.Minute) // slower than any interval here
			_, _, err := d.PollDevice(ctx, codes.DeviceCode, known)
			return err
		}
		a := begin()
		if err := poll(a); !errors.Is(err, credential.ErrPending) {
			t.Errorf("before the user: %v", err)
		}
		if _, _, err := d.PollDevice(ctx, a.DeviceCode, known); !errors.Is(err, credential.ErrSlowDown) {
			t.Errorf("at once again: %v", err)
		}
		d.pass(credential.DeviceInterval + time.Second)
		if _, _, err := d.PollDevice(ctx, a.DeviceCode, known); !errors.Is(err, credential.ErrSlowDown) {
			t.Errorf("the interval is longer after that: %v", err)
		}
		look, err := d.PendingDevice(ctx, strings.ToLower(strings.ReplaceAll(a.UserCode, "-", " ")))
		if err != nil || look.Client != "kubectl-acpon laptop" || look.Address != "192.0.2.1" {
			t.Errorf("what the user sees: %+v, %v", look, err)
		}
		if err := d.DecideDevice(ctx, "alice", a.UserCode, true); err != nil {
			t.Fatal(err)
		}
		if err := d.DecideDevice(ctx, "mallory", a.UserCode, true); !errors.Is(err, credential.ErrUnknown) {
			t.Errorf("nobody decides after alice: %v", err)
		}
		d.pass(time.Minute)
		token, secret, err := d.PollDevice(ctx, a.DeviceCode, known)
		if err != nil || token.Person != "alice" || strings.ContainsAny(token.Name, "\r\n") {
			t.Fatalf("%+v, %v", token, err)
		}
		if got, err := d.Authenticate(ctx, secret); err != nil || got.ID != token.ID || got.Has(credential.ScopeCatalogWrite) {
			t.Errorf("%+v, %v", got, err)
		}
		for reason, tc := range map[string]struct {
			do   func(credential.DeviceCodes) error
			want error
		}{
			"handed out once": {func(credential.DeviceCodes) error { return poll(a) }, credential.ErrUnknown},
			"denied": {func(c credential.DeviceCodes) error {
				return errors.Join(d.DecideDevice(ctx, "alice", c.UserCode, false), poll(c))
			}, credential.ErrDenied},
			"expired before the user": {func(c credential.DeviceCodes) error {
				d.pass(10 * time.Minute)
				return d.DecideDevice(ctx, "alice", c.UserCode, true)
			}, credential.ErrUnknown},
			"expired after the user": {func(c credential.DeviceCodes) error {
				err := d.DecideDevice(ctx, "alice", c.UserCode, true)
				d.pass(9 * time.Minute)
				return errors.Join(err, poll(c))
			}, credential.ErrUnknown},
			"the user code is no device's": {func(c credential.DeviceCodes) error { c.DeviceCode = "BCDFBCDF"; return poll(c) }, credential.ErrUnknown},
			"somebody who left": {func(c credential.DeviceCodes) error {
				err := d.DecideDevice(ctx, "alice", c.UserCode, true)
				_, _, err2 := d.PollDevice(ctx, c.DeviceCode, func(string) bool { return false })
				return errors.Join(err, err2)
			}, credential.ErrDenied},
		} {
			if err := tc.do(begin()); !errors.Is(err, tc.want) {
				t.Errorf("%s: %v, want %v", reason, err, tc.want)
			}
		}
	})
}

// TestDeviceCodesAreSeparate checks that neither code of a device login is accepted in the place of the other. People near
// the user can read the user code, and would get the user's token with it.
func TestDeviceCodesAreSeparate(t *testing.T) {
	each(t, func(t *testing.T, d *fixture) {
		ctx := t.Context()
		codes, err := d.StartDevice(ctx, "", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.PendingDevice(ctx, codes.DeviceCode); !errors.Is(err, credential.ErrUnknown) {
			t.Errorf("look up the device code as a user code: got %v, want ErrUnknown", err)
		}
		if err := d.DecideDevice(ctx, "mallory", codes.DeviceCode, true); !errors.Is(err, credential.ErrUnknown) {
			t.Errorf("approve with the device code: got %v, want ErrUnknown", err)
		}
		if err := d.DecideDevice(ctx, "alice", codes.UserCode, true); err != nil {
			t.Fatal(err)
		}
		letters := strings.ReplaceAll(codes.UserCode, "-", "")
		for _, code := range []string{codes.UserCode, letters, strings.ToLower(letters), "", letters + strings.Repeat("A", 52-len(letters))} {
			d.pass(time.Minute)
			if _, _, err := d.PollDevice(ctx, code, known); !errors.Is(err, credential.ErrUnknown) {
				t.Errorf("poll with %q: got %v, want ErrUnknown", code, err)
			}
		}
		// The store does not accept one code for the other either, whatever its length.
		never := func(*credential.Device) (*credential.NewToken, *ledger.Entry, error) {
			t.Error("the store found a device login by the other code")
			return nil, nil, credential.ErrDenied
		}
		if err := d.store.UpdateDeviceByDeviceCode(ctx, credential.Hash(letters), never); !errors.Is(err, credential.ErrUnknown) {
			t.Errorf("the hash of the user code as that of a device code: got %v, want ErrUnknown", err)
		}
		if err := d.store.UpdateDeviceByUserCode(ctx, credential.Hash(codes.DeviceCode), never); !errors.Is(err, credential.ErrUnknown) {
			t.Errorf("the hash of the device code as that of a user code: got %v, want ErrUnknown", err)
		}
		d.pass(time.Minute)
		if token, _, err := d.PollDevice(ctx, codes.DeviceCode, known); err != nil || token.Person != "alice" {
			t.Errorf("the device itself: got a token of %q and %v", token.Person, err)
		}
	})
}

// TestDeviceTokenOnce checks that concurrent polls get one token.
func TestDeviceTokenOnce(t *testing.T) {
	each(t, func(t *testing.T, d *fixture) {
		codes, err := d.StartDevice(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if err := d.DecideDevice(t.Context(), "alice", codes.UserCode, true); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		got := 0
		for range 8 {
			all.Go(func() {
				if _, _, err := d.PollDevice(context.WithoutCancel(t.Context()), codes.DeviceCode, known); err == nil {
					mu.Lock()
					got++
					mu.Unlock()
				}
			})
		}
		if all.Wait(); got != 1 {
			t.Errorf("got %d tokens, want 1", got)
		}
	})
}

func TestSessions(t *testing.T) {
	each(t, func(t *testing.T, d *fixture) {
		ctx := t.Context()
		m := d.store.Manager()
		keep := func(ctx context.Context, token, person string, life time.Duration) {
			t.Helper()
			data, err := scs.GobCodec{}.Encode(
				time.Now().Add(life),
				map[string]any{credential.SessionPerson: person, credential.SessionAgent: "Firefox", credential.SessionCreated: d.Now().Unix()},
			)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.CommitCtx(ctx, token, data, time.Now().Add(life)); err != nil {
				t.Fatal(err)
			}
		}
		keep(ctx, "one", "alice", time.Hour)
		keep(ctx, "two", "alice", time.Hour)
		keep(ctx, "three", "bob", time.Hour)
		keep(ctx, "dead", "alice", -time.Hour)
		if _, ok, err := m.FindCtx(ctx, "dead"); ok || err != nil {
			t.Errorf("an expired session is none: %v %v", ok, err)
		}
		list, err := d.Sessions(ctx, "alice")
		if err != nil || len(list) != 2 || list[0].UserAgent != "Firefox" || !list[0].CreatedAt.Equal(d.Now()) {
			t.Errorf("%+v %v", list, err)
		}
		if err := d.EndSessions(ctx, "alice", "two"); err != nil {
			t.Fatal(err)
		}
		keep(credential.WithUpdateOnly(ctx), "one", "alice", time.Hour)
		keep(credential.WithUpdateOnly(ctx), "two", "alice", 2*time.Hour)
		for token, want := range map[string]bool{"one": false, "two": true, "three": true} {
			if data, ok, err := m.FindCtx(ctx, token); ok != want || err != nil || ok && len(data) == 0 {
				t.Errorf("session %s: %v %v; an ended one stays ended, others go on", token, ok, err)
			}
		}
		if err := m.DeleteCtx(ctx, "two"); err != nil {
			t.Fatal(err)
		}
		if err := d.Store.Prune(ctx, time.Now()); err != nil {
			t.Fatal(err)
		}
		if n, _, err := d.store.Count(ctx, time.Now()); n != 1 || err != nil {
			t.Errorf("%d sessions are left, %v", n, err)
		}
		if got := strings.Join(d.told, " "); got != "sessions.ended" {
			t.Errorf("the ledger has the actions %s", got)
		}
	})
}
