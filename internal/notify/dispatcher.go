package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/backoff"
)

// Recipient holds a person's name and mail address.
type Recipient struct{ Person, Name, Email string }

// Notification is a rendered message, or a digest of several, that a Sender sends.
type Notification struct {
	ID       string // the same for repeated attempts, so that a receiver can detect duplicates
	To       Recipient
	Language string
	Text     Text
	Footer   string
	Open     string // label of the link
	Message  Message
	// Answer is set if the recipient can decide the ticket of the message; never in a digest.
	Answer *Answer
}

// Answer is how a ticket is decided in a notification.
type Answer struct {
	approval.Answerable
	Ticket string // ID
	// Portal is the address of the portal, which receives the decision.
	Portal *url.URL
	// Shown are the lines in the person's language.
	Shown  []string
	Labels AnswerLabels
}

// AnswerLabels are the texts of the controls by which a person decides, in their language.
type AnswerLabels struct{ Approve, Reject, Cancel, Shows string }

// Sender sends notifications through one channel, in bounded time. Unless its error is a permanent *Problem, the dispatcher
// retries.
type Sender interface {
	Send(ctx context.Context, p Notification) error
}

// Retractor is a Sender that can replace the controls of its messages.
type Retractor interface {
	Sender
	// SendAnswerable is Send for a notification with an Answer. It returns what identifies the message for Retract; empty if the message
	// has no controls, or cannot be changed.
	SendAnswerable(ctx context.Context, p Notification) (receipt string, err error)
	// Retract replaces a message with its controls. Repeating it changes nothing.
	Retract(ctx context.Context, receipt string, o Outcome) error
}

// Outcome replaces a message in which a ticket could be decided, in the language of its reader. It has one link.
type Outcome struct{ Text, Open, Link string }

// Problem is an error of sending with advice for the retry.
type Problem struct {
	Err        error
	Permanent  bool          // a retry does not help
	RetryAfter time.Duration // pause that the channel requested; 0 if none
}

func (p *Problem) Error() string { return p.Err.Error() }

func (p *Problem) Unwrap() error { return p.Err }

// DispatcherConfig configures a Dispatcher. All fields are required.
type DispatcherConfig struct {
	Name      string // unique among the replicas
	Channel   Channel
	Sender    Sender
	Store     Store
	Renderer  *Renderer
	Recipient func(person string) (Recipient, bool)
	Now       func() time.Time
	Log       *slog.Logger
	Poll      time.Duration
	Lease     time.Duration // must exceed the duration of sending
}

// Sending is retried for about ten hours: after 10 s, 20 s, 40 s and so on, in the end hourly.
const (
	maxAttempts = 18
	firstRetry  = 10 * time.Second
	maxRetry    = time.Hour
	// maxPause bounds a pause that the channel requests: meanwhile the channel may be available again, or be reconfigured.
	maxPause = 5 * time.Minute
	// maxRetractions is the number of attempts to replace the controls of a message, in about twenty minutes. Controls that stay decide
	// nothing, because a decision is bound to the version of the ticket.
	maxRetractions = 8
)

// Dispatcher sends the due deliveries of one channel. A channel that hangs does not delay others.
type Dispatcher struct {
	DispatcherConfig
	pausedUntil time.Time
}

// NewDispatcher returns a Dispatcher for one channel.
func NewDispatcher(c DispatcherConfig) *Dispatcher { return &Dispatcher{DispatcherConfig: c} }

// Run sends due deliveries every Poll until the context ends.
func (c *Dispatcher) Run(ctx context.Context) {
	t := time.NewTicker(c.Poll)
	defer t.Stop()
	for {
		if err := c.Drain(ctx); err != nil && ctx.Err() == nil {
			c.Log.Warn("notifications cannot be read; the dispatcher retries", "channel", c.Channel, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// Drain sends until no delivery is due, or the channel requests a pause.
func (c *Dispatcher) Drain(ctx context.Context) error {
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

func (c *Dispatcher) deliver(ctx context.Context, d []Delivery) error {
	var err error
	if d[0].Retraction {
		err = c.retract(ctx, d[0])
	} else {
		d[0].Receipt, err = c.send(ctx, d)
	}
	if err == nil {
		// the delivery is recorded even if the process is shutting down
		return c.Store.Sent(context.WithoutCancel(ctx), d, c.Now())
	}
	if ctx.Err() != nil {
		return err
	}
	return c.failed(ctx, d, err)
}

// send sends the deliveries as one notification.
func (c *Dispatcher) send(ctx context.Context, d []Delivery) (receipt string, err error) {
	p, err := c.render(ctx, d)
	if err != nil {
		return "", err
	}
	if s, ok := c.Sender.(Retractor); ok && p.Answer != nil {
		return s.SendAnswerable(ctx, p)
	}
	return "", c.Sender.Send(ctx, p)
}

// retract replaces a message that was sent by what happened to its ticket.
func (c *Dispatcher) retract(ctx context.Context, d Delivery) error {
	s, ok := c.Sender.(Retractor)
	if !ok {
		return &Problem{Err: errors.New("the channel cannot change messages"), Permanent: true}
	}
	all, err := c.Store.Preferences(ctx, d.Person)
	if err != nil {
		return err
	}
	p := all[d.Person]
	text := c.Renderer.Render(d.Message, p)
	return s.Retract(ctx, d.Receipt, Outcome{
		Text: text.Title + "\n" + d.Outcome.RenderFor(p.Reader()), Open: c.Renderer.Open(p), Link: text.Link,
	})
}

// failed records a failed attempt: it postpones the deliveries, or marks them as dead after a permanent error or the last
// attempt. The attempts of the first delivery count, so deliveries that joined a digest later get no more attempts than it has
// left.
func (c *Dispatcher) failed(ctx context.Context, d []Delivery, cause error) error {
	var p *Problem
	if !errors.As(cause, &p) {
		p = &Problem{Err: cause}
	}
	now, attempts := c.Now(), d[0].Attempts
	problem := cut(Line(cause.Error()), maxText)
	log := c.Log.With("channel", c.Channel, "person", d[0].Person, "event", d[0].Event, "attempt", attempts, "error", problem)
	if d[0].Retraction && (p.Permanent || attempts >= maxRetractions) {
		log.Warn("the controls of a message about a ticket that changed stay; they decide nothing")
		return c.Store.Sent(ctx, d, now)
	}
	if p.Permanent || attempts >= maxAttempts {
		log.Error("a notification failed permanently")
		return c.Store.MarkDead(ctx, d, now, problem)
	}
	log.Warn("a notification could not be sent; it is retried")
	if p.RetryAfter > 0 {
		c.pausedUntil = now.Add(min(p.RetryAfter, maxPause))
	}
	return c.Store.Postpone(ctx, d, now.Add(max(backoff.Delay(attempts, firstRetry, maxRetry), p.RetryAfter)), problem)
}

// render returns the notification for the deliveries, in the person's current language.
func (c *Dispatcher) render(ctx context.Context, d []Delivery) (Notification, error) {
	first := d[0].Message
	p := Notification{ID: notificationID(d), Message: first, Language: English}
	var prefs Preferences
	if first.Person != "" {
		to, ok := c.Recipient(first.Person)
		if !ok {
			return p, &Problem{Err: fmt.Errorf("the catalog does not contain %s any more", first.Person), Permanent: true}
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
		texts = append(texts, c.Renderer.Render(x.Message, prefs))
	}
	p.Text = c.Renderer.Digest(texts, prefs)
	if first.Person != "" {
		p.Footer = c.Renderer.Footer(prefs)
	}
	p.Open = c.Renderer.Open(prefs)
	if len(d) == 1 && first.Ticket > 0 && first.Facts.Answer != nil && d[0].Outcome.IsZero() {
		p.Answer = c.Renderer.Answer(first, prefs)
	}
	return p, nil
}

// notificationID returns a hash of the channel, the person and the events. It identifies the notification without revealing its
// content.
func notificationID(d []Delivery) string {
	names := make([]string, 0, len(d)+2)
	names = append(names, string(d[0].Channel), d[0].Person)
	for _, x := range d {
		names = append(names, x.Event)
	}
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	return hex.EncodeToString(sum[:16])
}
