package webhook

import (
	"crypto/hmac"
	"fmt"
	"net/http"
	"time"

	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/webhooksender"
)

// answerLifetime is how long a receiver may answer a post.
const answerLifetime = 72 * time.Hour

// Offer says how a receiver answers a post. An answer repeats every field except URL and Lines.
type Offer struct {
	URL     string    `json:"url"`
	Ticket  string    `json:"ticket"`
	Version int64     `json:"version"`
	Digest  string    `json:"digest"`
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
	// Lines are what the approval grants, of which Digest is the digest.
	Lines []string `json:"lines"`
}

// Receiver is a receiver that may answer for people of the directory. It vouches for them.
type Receiver struct{ Name, KeyFile string }

func (r *Receiver) offer(a notify.Answer, now time.Time) (Offer, error) {
	o := Offer{
		URL:    a.Portal.JoinPath("integrations", "webhooks", r.Name, "answers").String(),
		Ticket: a.Ticket, Version: a.Version, Digest: a.Digest, Lines: a.Lines,
		Expires: now.Add(answerLifetime).UTC().Truncate(time.Second),
	}
	tokens, err := webhooksender.MAC(r.KeyFile, r.tokenText(o))
	if err != nil {
		return o, err
	}
	o.Token = tokens[0]
	return o, nil
}

// tokenText returns the text from which the token of an offer is computed. No post that is signed by Standard Webhooks begins with it.
func (r *Receiver) tokenText(o Offer) string {
	return fmt.Sprintf("acp-answer-v1\n%s\n%s\n%d\n%s\n%d", r.Name, o.Ticket, o.Version, o.Digest, o.Expires.Unix())
}

// Offered reports whether the portal made the offer to this receiver. The caller checks the expiry.
func (r *Receiver) Offered(o Offer) (bool, error) {
	tokens, err := webhooksender.MAC(r.KeyFile, r.tokenText(o))
	if err != nil {
		return false, err
	}
	for _, t := range tokens {
		if hmac.Equal([]byte(t), []byte(o.Token)) {
			return true, nil
		}
	}
	return false, nil
}

// Verify checks the signature and the time of an answer, and returns its id; see webhooksender.Verify.
func (r *Receiver) Verify(header http.Header, body []byte, now time.Time) (id string, err error) {
	return webhooksender.Verify(r.KeyFile, header, body, now)
}
