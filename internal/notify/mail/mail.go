// Package mail sends notifications by SMTP as plain text. It does not determine recipients.
package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"os"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"github.com/acp-io/acp/internal/notify"
)

// These are the modes of transport security.
const (
	// TLSStart requires STARTTLS.
	TLSStart = "starttls"
	// TLSImplicit uses TLS from the first byte on.
	TLSImplicit = "implicit"
	// TLSNone uses no TLS. It is meant for a server on the same machine.
	TLSNone = "none"
)

// Timeout bounds the whole process of sending one mail.
const Timeout = 30 * time.Second

// Config configures the mail server.
type Config struct {
	Host string `json:"host"`
	// Port is the TCP port. Default: 587 for starttls, 465 for implicit, 25 for none.
	Port int    `json:"port,omitempty"`
	TLS  string `json:"tls,omitempty"` // starttls (default), implicit or none
	// CAFile contains certificates that are trusted in addition to the system's.
	CAFile string `json:"caFile,omitempty"`
	// Username and the file with the password; empty for a server without authentication.
	Username     string `json:"username,omitempty"`
	PasswordFile string `json:"passwordFile,omitempty"`
	From         string `json:"from"` // ACP <acp@example.com>
}

// Sender implements notify.Sender. It reads the password for each mail, so that a change needs no restart.
type Sender struct {
	config  Config
	from    *netmail.Address
	roots   *x509.CertPool
	timeout time.Duration
}

// New validates the configuration and returns a Sender. It does not connect.
func New(c Config) (*Sender, error) {
	if c.Host == "" {
		return nil, errors.New("mail.host is required")
	}
	from, err := netmail.ParseAddress(c.From)
	if err != nil {
		return nil, fmt.Errorf("mail.from %q is not an address such as ACP <acp@example.com>", c.From)
	}
	switch c.TLS {
	case "":
		c.TLS = TLSStart
	case TLSStart, TLSImplicit:
	case TLSNone:
		if ip := net.ParseIP(c.Host); c.Host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, errors.New("mail.tls none is for a server on this machine: use starttls or implicit")
		}
	default:
		return nil, fmt.Errorf("mail.tls %q: use starttls, implicit or none", c.TLS)
	}
	if c.Port == 0 {
		c.Port = map[string]int{TLSStart: 587, TLSImplicit: 465, TLSNone: 25}[c.TLS]
	}
	if c.Port < 0 || c.Port > 65535 {
		return nil, fmt.Errorf("mail.port %d is not a port", c.Port)
	}
	if (c.Username == "") != (c.PasswordFile == "") {
		return nil, errors.New("mail.username and mail.passwordFile belong together")
	}
	s := &Sender{config: c, from: from, timeout: Timeout}
	if c.CAFile != "" {
		text, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("mail.caFile: %w", err)
		}
		if s.roots, err = x509.SystemCertPool(); err != nil {
			return nil, fmt.Errorf("read the system's certificates: %w", err)
		}
		if !s.roots.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("mail.caFile: %s has no certificate", c.CAFile)
		}
	}
	_, err = s.options()
	return s, err
}

// Send implements notify.Sender.
func (s *Sender) Send(ctx context.Context, p notify.Notification) error {
	msg, err := s.message(p)
	if err != nil {
		return &notify.Problem{Err: err, Permanent: true}
	}
	opts, err := s.options()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	// The timeouts of the library restart with each command; the context bounds all of them.
	opts = append(opts, mail.WithDialContextFunc(func(dial context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(dial, network, address)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() }) // pending reads and writes then return an error
		if s.config.TLS == TLSImplicit {
			conn = tls.Client(conn, s.tls())
		}
		return conn, nil
	}))
	client, err := mail.NewClient(s.config.Host, opts...)
	if err != nil {
		return fmt.Errorf("prepare the mail: %w", err)
	}
	return s.problem(client.DialAndSendWithContext(ctx, msg))
}

func (s *Sender) message(p notify.Notification) (*mail.Msg, error) {
	to, err := netmail.ParseAddress(p.To.Email)
	if err != nil {
		return nil, fmt.Errorf("the mail address of %s in the catalog is invalid", p.To.Person)
	}
	msg := mail.NewMsg(mail.WithCharset(mail.CharsetUTF8))
	msg.FromMailAddress(s.from)
	msg.ToMailAddress(&netmail.Address{Name: notify.Line(p.To.Name), Address: to.Address})
	_, domain, _ := strings.Cut(s.from.Address, "@")
	msg.SetMessageIDWithValue(p.ID + "@" + domain)
	if p.Message.Ticket > 0 {
		// Mails about one ticket form one conversation.
		msg.SetGenHeader(mail.HeaderReferences, fmt.Sprintf("<ticket-%d@%s>", p.Message.Ticket, domain))
	}
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no out-of-office answers
	msg.SetDate()
	msg.Subject(notify.Line(p.Text.Title))
	msg.SetBodyString(mail.TypeTextPlain, p.Text.Body+"\n"+p.Open+": "+p.Text.Link+"\n\n-- \n"+p.Footer+"\n")
	return msg, nil
}

func (s *Sender) tls() *tls.Config {
	return &tls.Config{ServerName: s.config.Host, RootCAs: s.roots, MinVersion: tls.VersionTLS12}
}

func (s *Sender) options() ([]mail.Option, error) {
	opts := []mail.Option{mail.WithPort(s.config.Port), mail.WithTimeout(s.timeout), mail.WithTLSConfig(s.tls()), mail.WithTLSPolicy(mail.NoTLS)}
	if s.config.TLS == TLSStart {
		opts = append(opts, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if s.config.Username == "" {
		return opts, nil
	}
	password, err := os.ReadFile(s.config.PasswordFile)
	if err != nil {
		return nil, fmt.Errorf("mail.passwordFile: %w", err)
	}
	// The library sends a password in plain text only over TLS or to this machine.
	auth := mail.WithOpportunisticSMTPAuth(mail.SMTPAuthSCRAMSHA256, mail.SMTPAuthSCRAMSHA1, mail.SMTPAuthPlain, mail.SMTPAuthLogin)
	return append(opts, auth, mail.WithUsername(s.config.Username), mail.WithPassword(strings.TrimSpace(string(password)))), nil
}

// problem marks permanent errors about this mail, and returns others unchanged. A rejected login or sender is not permanent,
// because an operator can correct the configuration.
func (s *Sender) problem(err error) error {
	if err == nil {
		return nil
	}
	var e *mail.SendError
	if errors.As(err, &e) && e.ErrorCode() >= 500 {
		switch e.Reason {
		case mail.ErrSMTPRcptTo, mail.ErrSMTPData, mail.ErrSMTPDataClose:
			return &notify.Problem{Err: fmt.Errorf("the mail server refuses the mail (%d)", e.ErrorCode()), Permanent: true}
		}
	}
	if e != nil && e.ErrorCode() > 0 {
		return fmt.Errorf("the mail server answers %d", e.ErrorCode())
	}
	return fmt.Errorf("the mail server %s cannot be used: %w", s.config.Host, err)
}
