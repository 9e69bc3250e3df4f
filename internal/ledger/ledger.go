// Package ledger defines the hash-chained record of decisions: the form of a line, the chaining of lines, the verification of a
// chain against heads that are stored elsewhere, and the export format. It does not access stores or networks: lines are written
// in the transaction of the change that they record (ledger/gormstore), and ledger/anchor stores heads outside the database.
package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// Genesis is the previous hash of the first line.
const Genesis = "0000000000000000000000000000000000000000000000000000000000000000"

// Entry describes one recorded action.
type Entry struct {
	At      time.Time         `json:"at"`
	Actor   string            `json:"actor"`  // ID of a person; empty for the portal itself
	Action  string            `json:"action"` // for example ticket.step-approved
	Object  string            `json:"object"` // for example T-42
	Details map[string]string `json:"details,omitempty"`
}

// Line is an entry in the chain. Text is canonical JSON (sorted keys, no white space, times in UTC) that contains the hash of the
// previous line. Hash is the hex SHA-256 of Text.
type Line struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
	Text string `json:"text"`
}

// Append returns the line that follows the line with the given number and hash.
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

// Entry decodes the line's text. Views must use it instead of columns in the database, because the hash covers only the text.
func (l Line) Entry() (Entry, error) {
	var e Entry
	if err := json.Unmarshal([]byte(l.Text), &e); err != nil {
		return Entry{}, fmt.Errorf("read ledger line %d: %w", l.Seq, err)
	}
	return e, nil
}

// Head is the newest line of a chain at the instant at which it was anchored.
type Head struct {
	Seq  int64     `json:"seq"`
	Hash string    `json:"hash"`
	At   time.Time `json:"at"`
}

// encode returns a value as one line of JSON without a line end. Keys of maps are sorted.
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
