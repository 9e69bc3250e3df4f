package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	// attemptInterval is the time between two attempts of await, and between two requests of held. It bounds the precision of both.
	attemptInterval = 4 * time.Millisecond
	// attemptTimeout is shorter than the second after which the kernel repeats a dropped SYN, so that a connection that is accepted was
	// possible when it was begun.
	attemptTimeout = 500 * time.Millisecond
)

// moment is one line of the answers of await and held.
type moment struct {
	// Event is "open" for a connection that was accepted and "ended" for the last answer on it.
	Event string `json:"event"`
	// UnixNano is when it was, by the clock of the machine.
	UnixNano int64 `json:"unixNano"`
	// Error is why there is no more.
	Error string `json:"error,omitempty"`
}

// await tries to connect to ?to=HOST:PORT until it succeeds or the request ends, and answers when the first connection was accepted.
func await(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	accepted := make(chan time.Time)
	attempts := time.NewTicker(attemptInterval)
	defer attempts.Stop()
	for {
		select {
		case at := <-accepted:
			write(w, moment{Event: "open", UnixNano: at.UnixNano()})
			return
		case <-ctx.Done():
			return
		case <-attempts.C:
			go func() {
				dialer := net.Dialer{Timeout: attemptTimeout}
				conn, err := dialer.DialContext(ctx, "tcp", r.URL.Query().Get("to"))
				if err != nil {
					return
				}
				at := time.Now()
				conn.Close()
				select {
				case accepted <- at:
				case <-ctx.Done():
				}
			}()
		}
	}
}

// held opens one connection to ?to=HOST:PORT and sends requests on it until one is not answered within two seconds. It answers a line when
// the first request was answered, and a line with the time of the last answer.
func held(w http.ResponseWriter, r *http.Request) {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(r.Context(), "tcp", r.URL.Query().Get("to"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer conn.Close()
	stop := context.AfterFunc(r.Context(), func() { conn.Close() })
	defer stop()
	answers := bufio.NewReader(conn)
	var last time.Time
	for {
		if err := request(conn, answers); err != nil {
			write(w, moment{Event: "ended", UnixNano: last.UnixNano(), Error: err.Error()})
			return
		}
		first := last.IsZero()
		last = time.Now()
		if first {
			write(w, moment{Event: "open", UnixNano: last.UnixNano()})
		}
		time.Sleep(attemptInterval)
	}
}

// write sends one line at once. A reader that has gone ends the request's context.
func write(w http.ResponseWriter, m moment) {
	data, err := json.Marshal(m)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(w, "%s\n", data)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}
