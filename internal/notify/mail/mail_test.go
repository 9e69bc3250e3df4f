package mail

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"mime"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/acp-io/acp/internal/notify"
)

// server is a real SMTP server that records mails.
type server struct {
	auth    bool
	refuse  map[string]error // errors by command: mail, rcpt, data
	envelop []string         // sender and recipient
	text    string
}

type session struct {
	s     *server
	known bool
}

func (s *server) NewSession(*smtp.Conn) (smtp.Session, error) {
	return &session{s: s, known: !s.auth}, nil
}

func (x *session) AuthMechanisms() []string {
	if x.s.auth {
		return []string{sasl.Plain}
	}
	return nil
}

func (x *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "acp" || password != "s3cret" {
			return smtp.ErrAuthFailed
		}
		x.known = true
		return nil
	}), nil
}

func (x *session) Mail(from string, _ *smtp.MailOptions) error {
	if !x.known {
		return smtp.ErrAuthRequired
	}
	x.s.envelop = []string{from}
	return x.s.refuse["mail"]
}

func (x *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	x.s.envelop = append(x.s.envelop, to)
	return x.s.refuse["rcpt"]
}

func (x *session) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	x.s.text = string(text)
	return x.s.refuse["data"]
}

func (x *session) Reset() {}

func (x *session) Logout() error { return nil }

// start starts the server and returns a configuration for it.
func start(t *testing.T, s *server, how string) Config {
	t.Helper()
	certificate, ca := certificate(t)
	srv := smtp.NewServer(s)
	srv.Domain, srv.TLSConfig = "localhost", &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	srv.ErrorLog = log.New(io.Discard, "", 0)
	srv.AllowInsecureAuth = how == TLSNone
	if how == TLSNone {
		srv.TLSConfig = nil
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if how == TLSImplicit {
		l = tls.NewListener(l, srv.TLSConfig)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		_ = l.Close() // the server may not have the listener yet
		_ = srv.Close()
		<-done //nolint:errcheck // returns the error of the closed listener
	})
	c := Config{Host: "127.0.0.1", Port: port, TLS: how, From: "ACP <acp@example.com>"}
	if how != TLSNone {
		c.CAFile = ca
	}
	if s.auth {
		c.Username, c.PasswordFile = "acp", filepath.Join(t.TempDir(), "password")
		write(t, c.PasswordFile, "s3cret\n")
	}
	return c
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	write(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

func parcel() notify.Notification {
	return notify.Notification{ID: "0123456789abcdef", To: notify.Recipient{Person: "bob", Name: "Bob\r\nBcc: eve@example.com", Email: "bob@example.com"},
		Text:   notify.Text{Title: "T-7：王磊请您审批\r\nBcc: eve@example.com", Body: "王磊提出了此申请。\n.\nQUIT\n", Link: "https://acp.example.com/tickets/T-7"},
		Footer: "why", Open: "Open", Message: notify.Message{Ticket: 7}}
}

func sender(t *testing.T, c Config) *Sender {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSend(t *testing.T) {
	for _, how := range []string{TLSStart, TLSImplicit, TLSNone} {
		for _, auth := range []bool{false, true} {
			t.Run(how, func(t *testing.T) {
				s := &server{auth: auth}
				if err := sender(t, start(t, s, how)).Send(t.Context(), parcel()); err != nil {
					t.Fatal(err)
				}
				if len(s.envelop) != 2 || s.envelop[0] != "acp@example.com" || s.envelop[1] != "bob@example.com" {
					t.Errorf("got envelope %v, want the recipient only", s.envelop)
				}
				m, err := netmail.ReadMessage(strings.NewReader(s.text))
				if err != nil {
					t.Fatal(err)
				}
				subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
				if err != nil || subject != "T-7：王磊请您审批 Bcc: eve@example.com" {
					t.Errorf("got subject %q %v", subject, err)
				}
				if id := m.Header.Get("Message-Id"); id != "<0123456789abcdef@example.com>" {
					t.Errorf("got message ID %q, want that of the notification", id)
				}
				if len(m.Header["Bcc"]) != 0 || m.Header.Get("Auto-Submitted") != "auto-generated" || m.Header.Get("References") == "" {
					t.Errorf("got headers %v", m.Header)
				}
				for _, line := range strings.Split(s.text, "\r\n") {
					if strings.ContainsFunc(line, func(r rune) bool { return r > 126 }) {
						t.Errorf("got a line that is not ASCII: %q", line)
					}
				}
				body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
				if err != nil || !strings.Contains(string(body), "王磊提出了此申请。\r\n.\r\nQUIT") ||
					!strings.Contains(string(body), "https://acp.example.com/tickets/T-7") {
					t.Errorf("got body %q %v", body, err)
				}
			})
		}
	}
}

func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		refuse    map[string]error
		permanent bool
	}{
		"unknown":   {"no such mailbox", map[string]error{"rcpt": &smtp.SMTPError{Code: 550, Message: "no such user bob@example.com"}}, true},
		"full":      {"the mailbox is full for now", map[string]error{"rcpt": &smtp.SMTPError{Code: 452, Message: "full"}}, false},
		"spam":      {"the mail itself is refused", map[string]error{"data": &smtp.SMTPError{Code: 554, Message: "spam"}}, true},
		"greylist":  {"later", map[string]error{"data": &smtp.SMTPError{Code: 451, Message: "later"}}, false},
		"no sender": {"the configuration is wrong, which an operator corrects", map[string]error{"mail": &smtp.SMTPError{Code: 553, Message: "who?"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := sender(t, start(t, &server{refuse: tc.refuse}, TLSStart)).Send(t.Context(), parcel())
			var p *notify.Problem
			if err == nil || (errors.As(err, &p) && p.Permanent) != tc.permanent {
				t.Errorf("%s: want permanent %v, got %v", tc.reason, tc.permanent, err)
			}
		})
	}
	bad := parcel()
	bad.To.Email = "bob@example.com>\r\nRCPT TO:<eve@example.com"
	s := &server{}
	var p *notify.Problem
	if err := sender(t, start(t, s, TLSNone)).Send(t.Context(), bad); !errors.As(err, &p) || !p.Permanent || s.envelop != nil {
		t.Errorf("invalid address: got %v, %v", err, s.envelop)
	}
}

func TestUnsafeConnectionsAreRefused(t *testing.T) {
	s := &server{auth: true}
	plain := start(t, s, TLSNone)
	plain.TLS = TLSStart
	if err := sender(t, plain).Send(t.Context(), parcel()); err == nil || s.text != "" {
		t.Errorf("server without STARTTLS: got %v", err)
	}
	other := start(t, s, TLSStart)
	_, other.CAFile = certificate(t)
	if err := sender(t, other).Send(t.Context(), parcel()); err == nil || s.text != "" {
		t.Errorf("untrusted certificate: got %v", err)
	}
	wrong := start(t, s, TLSImplicit)
	write(t, wrong.PasswordFile, "guess")
	var p *notify.Problem
	if err := sender(t, wrong).Send(t.Context(), parcel()); err == nil || errors.As(err, &p) && p.Permanent || strings.Contains(err.Error(), "guess") {
		t.Errorf("wrong password: got %v, want a temporary error without the password", err)
	}
	write(t, wrong.PasswordFile, "s3cret")
	if err := sender(t, wrong).Send(t.Context(), parcel()); err != nil {
		t.Errorf("new password without a restart: got %v", err)
	}
}

func TestHangingServerTimesOut(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_, err = conn.Read(make([]byte, 1)) // sends nothing, and waits until the other side closes
			_ = conn.Close()
		}
		left <- err
	}()
	s := sender(t, Config{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, TLS: TLSNone, From: "acp@example.com"})
	s.timeout = 100 * time.Millisecond
	if err := s.Send(t.Context(), parcel()); err == nil {
		t.Error("Send to a hanging server succeeded")
	}
	if err := <-left; err == nil {
		t.Error("the connection was not closed")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Send(t.Context(), parcel()); err == nil {
		t.Error("Send to a rejecting server succeeded")
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	fine := Config{Host: "mail.example.com", From: "acp@example.com"}
	for name, edit := range map[string]func(*Config){
		"host": func(c *Config) { c.Host = "" }, "from": func(c *Config) { c.From = "acp" }, "tls": func(c *Config) { c.TLS = "maybe" },
		"none": func(c *Config) { c.TLS = TLSNone }, "port": func(c *Config) { c.Port = 70000 }, "user": func(c *Config) { c.Username = "acp" },
		"password": func(c *Config) { c.Username, c.PasswordFile = "acp", "missing" }, "ca": func(c *Config) { c.CAFile = "missing" },
		"header": func(c *Config) { c.From = "acp@example.com\r\nBcc: eve@example.com" },
	} {
		c := fine
		edit(&c)
		if _, err := New(c); err == nil {
			t.Errorf("New accepted the configuration %s: %+v", name, c)
		}
	}
	if s := sender(t, fine); s.config.Port != 587 || s.config.TLS != TLSStart {
		t.Errorf("got default configuration %+v, want STARTTLS", s.config)
	}
}
