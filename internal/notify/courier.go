package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Recipient is how a person is reached.
type Recipient struct{ Person, Name, Email string }

// Parcel is what a sender sends.
type Parcel struct {
	ID       string // the same for the same news, so that a receiver knows what it got before
	To       Recipient
	Language string
	Text     Text
	Footer   string
	Open     string // the word on the link
	Message  Message
}

// Sender sends through one channel, in bounded time. An error is a *Problem, or is worth another try.
type Sender interface {
	Send(ctx context.Context, p Parcel) error
}

// Problem says what to do about a failure.
type Problem struct {
	Err        error
	Permanent  bool          // trying again does not help
	RetryAfter time.Duration // the channel asked for this pause; 0: it did not
}

func (p *Problem) Error() string { return p.Err.Error() }

func (p *Problem) Unwrap() error { return p.Err }

// CourierConfig of a Courier; every field is required.
type CourierConfig struct {
	Name      string // unique among replicas
	Channel   Channel
	Sender    Sender
	Store     Store
	Writer    *Writer
	Recipient func(person string) (Recipient, bool)
	Now       func() time.Time
	Log       *slog.Logger
	Poll      time.Duration
	Lease     time.Duration // longer than a sending takes
}

// Delivery is tried for some ten hours: after 10 s, 20 s, 40 s and so on, hourly in the end.
const (
	maxAttempts = 18
	firstRetry  = 10 * time.Second
	mostRetry   = time.Hour
	// A channel that asks for a longer pause is asked again after this one: it may be back, or configured anew.
	maxPause = 5 * time.Minute
)

// Courier sends what is due on one channel. A channel that hangs holds up nothing but itself.
type Courier struct {
	CourierConfig
	pausedUntil time.Time
}

// NewCourier makes a courier of one channel.
func NewCourier(c CourierConfig) *Courier { return &Courier{CourierConfig: c} }

// Run until the context ends.
func (c *Courier) Run(ctx context.Context) {
	t := time.NewTicker(c.Poll)
	defer t.Stop()
	for {
		if err := c.Drain(ctx); err != nil && ctx.Err() == nil {
			c.Log.Warn("notifications cannot be read; it is tried again", "channel", c.Channel, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// Drain sends until nothing is due, or the channel asks for a pause.
func (c *Courier) Drain(ctx context.Context) error {
	for ctx.Err() == nil {
		now := c.Now()
		if now.Before(c.pausedUntil) {
			return nil
		}
		d, err := c.Store.Lease(ctx, c.Channel, c.Name, now, c.Lease)
		if err != nil || len(d) == 0 {
			return err
		}
		if err := c.deliver(ctx, d); err != nil && !errors.Is(err, ErrLeaseLost) {
			return err
		}
	}
	return ctx.Err()
}

func (c *Courier) deliver(ctx context.Context, d []Delivery) error {
	parcel, err := c.pack(ctx, d)
	if err == nil {
		err = c.Sender.Send(ctx, parcel)
	}
	if err == nil {
		// Sent, so it is recorded even while the program ends.
		return c.Store.Sent(context.WithoutCancel(ctx), d, c.Now())
	}
	if ctx.Err() != nil {
		return err
	}
	return c.failed(ctx, d, err)
}

// failed counts the attempts of the first delivery: those of a digest that joined later get as many as it has left.
func (c *Courier) failed(ctx context.Context, d []Delivery, cause error) error {
	var p *Problem
	if !errors.As(cause, &p) {
		p = &Problem{Err: cause}
	}
	now, attempts := c.Now(), d[0].Attempts
	problem := cut(Line(cause.Error()), maxText)
	if p.Permanent || attempts >= maxAttempts {
		c.Log.Error("a notification is given up", "channel", c.Channel, "person", d[0].Person, "event", d[0].Event, "attempt", attempts, "error", problem)
		return c.Store.Bury(ctx, d, now, problem)
	}
	c.Log.Warn("a notification could not be sent; it is tried again", "channel", c.Channel, "person", d[0].Person, "event", d[0].Event, "attempt", attempts, "error", problem)
	if p.RetryAfter > 0 {
		c.pausedUntil = now.Add(min(p.RetryAfter, maxPause))
	}
	return c.Store.Postpone(ctx, d, now.Add(max(backoff(attempts), p.RetryAfter)), problem)
}

func backoff(attempts int) time.Duration {
	d := firstRetry
	for range attempts - 1 {
		if d *= 2; d >= mostRetry {
			return mostRetry
		}
	}
	return d
}

// pack writes what is sent, in the language that the person has now.
func (c *Courier) pack(ctx context.Context, d []Delivery) (Parcel, error) {
	first := d[0].Message
	p := Parcel{ID: parcelID(d), Message: first, Language: English}
	var prefs Preferences
	if first.Person != "" {
		to, ok := c.Recipient(first.Person)
		if !ok {
			return p, &Problem{Err: fmt.Errorf("the catalog does not know %s any more", first.Person), Permanent: true}
		}
		if to.Email == "" {
			return p, &Problem{Err: fmt.Errorf("the catalog has no mail address of %s", first.Person), Permanent: true}
		}
		p.To = to
		all, err := c.Store.Preferences(ctx, first.Person)
		if err != nil {
			return p, err
		}
		prefs = all[first.Person]
		p.Language = prefs.language()
	}
	texts := make([]Text, 0, len(d))
	for _, x := range d {
		t, err := c.Writer.Write(x.Message, prefs)
		if err != nil {
			return p, &Problem{Err: err, Permanent: true}
		}
		texts = append(texts, t)
	}
	p.Text = c.Writer.Digest(texts, prefs)
	if first.Person != "" {
		p.Footer = c.Writer.Footer(prefs)
	}
	p.Open = c.Writer.Open(prefs)
	return p, nil
}

// parcelID names what is in it, and tells nobody what that is.
func parcelID(d []Delivery) string {
	names := make([]string, 0, len(d)+2)
	names = append(names, string(d[0].Channel), d[0].Person)
	for _, x := range d {
		names = append(names, x.Event)
	}
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	return hex.EncodeToString(sum[:16])
}
