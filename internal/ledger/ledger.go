// Package ledger owns the hash-chained record of decisions: the form of a line, how a line is chained to the one
// before it, and how a chain is verified. It may not touch a store: whoever changes the truth writes the line in the
// same transaction.
package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"time"
)

// Genesis is what the first line names as the hash before it.
const Genesis = "0000000000000000000000000000000000000000000000000000000000000000"

// Entry is what happened.
type Entry struct {
	At      time.Time
	Actor   string // a person's id; empty: the portal itself
	Action  string // for example ticket.step-approved
	Object  string // for example T-42
	Details map[string]string
}

// Line is an entry in the chain. Text is canonical JSON (keys sorted, no space, times in UTC) that contains the hash
// of the line before; Hash is the hex SHA-256 of Text.
type Line struct {
	Seq  int64
	Text string
	Hash string
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
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf) // maps are written with sorted keys
	enc.SetEscapeHTML(false)
	if err := enc.Encode(body); err != nil {
		return Line{}, fmt.Errorf("encode ledger line: %w", err)
	}
	text := string(bytes.TrimSuffix(buf.Bytes(), []byte("\n")))
	return Line{Seq: prevSeq + 1, Text: text, Hash: hash(text)}, nil
}

// BrokenError names the first line that does not fit the chain.
type BrokenError struct {
	Seq    int64
	Reason string
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("ledger is broken at line %d: %s", e.Seq, e.Reason)
}

// Verify recomputes a chain from its first line and returns the number of lines and the head's hash. The error is a
// *BrokenError, or what reading the lines gave.
func Verify(lines iter.Seq2[Line, error]) (count int64, head string, err error) {
	head = Genesis
	for l, err := range lines {
		if err != nil {
			return count, head, err
		}
		if l.Seq != count+1 {
			return count, head, &BrokenError{Seq: count + 1, Reason: fmt.Sprintf("line %d follows", l.Seq)}
		}
		if hash(l.Text) != l.Hash {
			return count, head, &BrokenError{Seq: l.Seq, Reason: "its hash is not that of its text"}
		}
		var body struct {
			Seq  int64  `json:"seq"`
			Prev string `json:"prev"`
		}
		if err := json.Unmarshal([]byte(l.Text), &body); err != nil {
			return count, head, &BrokenError{Seq: l.Seq, Reason: "its text is not JSON"}
		}
		if body.Seq != l.Seq || body.Prev != head {
			return count, head, &BrokenError{Seq: l.Seq, Reason: "it does not continue the line before"}
		}
		count, head = l.Seq, l.Hash
	}
	return count, head, nil
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
