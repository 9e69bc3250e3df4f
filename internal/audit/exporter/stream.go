package exporter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrEnded is returned by Stream.Follow at the end of the stream, which cannot be read again.
var ErrEnded = errors.New("the input has ended")

// Stream reads lines from a pipe, such as the standard input.
type Stream struct{ R io.Reader }

// Replayable implements hubble.LineSource. It returns false, because lines that were read cannot be read again.
func (*Stream) Replayable() bool { return false }

const chunk = 256 << 10

// Follow calls take for each line until the context ends, and returns ErrEnded at the end of the stream. A blocked read cannot be
// interrupted, so its goroutine is left behind: use Follow only for a stream that lasts as long as the process.
func (s *Stream) Follow(ctx context.Context, take func([]byte), _ func(time.Time, error), reading func(written time.Time)) error {
	reading(time.Time{})
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
	l := lineSplitter{onLine: take}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case p := <-pieces:
			l.write(p.b)
			if len(p.b) > 0 {
				reading(time.Now())
			}
			switch {
			case errors.Is(p.err, io.EOF):
				l.flush()
				return ErrEnded
			case p.err != nil:
				return fmt.Errorf("read the input: %w", p.err)
			}
			free <- p.b[:chunk]
		}
	}
}
