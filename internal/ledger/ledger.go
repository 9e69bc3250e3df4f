// Package ledger owns the hash-chained record of decisions: the form of a line, how a line is chained to the one
// before it, how a chain is verified against heads that were kept elsewhere, and the form of an export. It may not
// touch a store or a network: whoever changes the truth writes the line in the same transaction (ledger/gormstore),
// and heads are brought outside by ledger/anchor.
package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Genesis is what the first line names as the hash before it.
const Genesis = "0000000000000000000000000000000000000000000000000000000000000000"

// Entry is what happened.
type Entry struct {
	At      time.Time         `json:"at"`
	Actor   string            `json:"actor"`  // a person's id; empty: the portal itself
	Action  string            `json:"action"` // for example ticket.step-approved
	Object  string            `json:"object"` // for example T-42
	Details map[string]string `json:"details,omitempty"`
}

// Line is an entry in the chain. Text is canonical JSON (keys sorted, no space, times in UTC) that contains the hash
// of the line before; Hash is the hex SHA-256 of Text.
type Line struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
	Text string `json:"text"`
}

// Append makes the line that follows.
func Append(prevSeq int64, prevHash string, e Entry) (Line, error) {
	body := map[string]any{
		"seq": prevSeq + 1, "prev": prevHash, "at": e.At.UTC().Format(time.RFC3339Nano),
		"actor": e.Actor, "action": e.Action, "object": e.Object,
	}
	if len(e.Details) > 0 {
		body["details"] = e.Details
	}
	text, err := encode(body)
	if err != nil {
		return Line{}, fmt.Errorf("encode ledger line: %w", err)
	}
	return Line{Seq: prevSeq + 1, Text: text, Hash: hash(text)}, nil
}

// Entry reads back what happened. What people are shown is read from the text that the hash covers, never from
// columns beside it.
func (l Line) Entry() (Entry, error) {
	var e Entry
	if err := json.Unmarshal([]byte(l.Text), &e); err != nil {
		return Entry{}, fmt.Errorf("read ledger line %d: %w", l.Seq, err)
	}
	return e, nil
}

// Head is the newest line of a chain, as it was kept at an instant.
type Head struct {
	Seq  int64     `json:"seq"`
	Hash string    `json:"hash"`
	At   time.Time `json:"at"`
}

// encode writes one line of JSON without its end; maps are written with sorted keys.
func encode(v any) (string, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(buf.Bytes(), []byte("\n"))), nil
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
