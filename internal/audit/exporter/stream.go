package exporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrEnded means that the stream is over and cannot be read again.
var ErrEnded = errors.New("the input has ended")

// Stream reads lines from a pipe, such as the standard input.
type Stream struct{ R io.Reader }

// Again implements hubble.Lines: what was read does not come again.
func (*Stream) Again() bool { return false }

const chunk = 256 << 10

// Follow hands over each line until the context ends, or returns ErrEnded. A read that waits cannot be ended, so it is left
// behind: this is for a stream that lasts as long as the program.
func (s *Stream) Follow(ctx context.Context, take func([]byte), _ func(time.Time, error)) error {
	type piece struct {
		b   []byte
		err error
	}
	pieces, free := make(chan piece), make(chan []byte, 2)
	free <- make([]byte, chunk)
	free <- make([]byte, chunk)
	go func() {
		for b := range free {
			n, err := s.R.Read(b[:chunk])
			select {
			case pieces <- piece{b[:n], err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	l := lines{take: take}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case p := <-pieces:
			l.feed(p.b)
			switch {
			case errors.Is(p.err, io.EOF):
				l.end()
				return ErrEnded
			case p.err != nil:
				return fmt.Errorf("read the input: %w", p.err)
			}
			free <- p.b[:chunk]
		}
	}
}
