// Command node-probe is both ends of the connections that pods of real nodes make. It answers every request with its own name; on
// /connect it opens a new connection to an address and reports what became of it; /await and /held measure when a connection becomes
// possible and when an open one ends. With --connect and --hold it makes connections without a controller.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// result is what /connect answers.
type result struct {
	// Connected reports whether the connection was accepted.
	Connected bool `json:"connected"`
	// Timeout reports whether there was no answer in time, as for a connection that a policy drops.
	Timeout bool   `json:"timeout,omitempty"`
	Error   string `json:"error,omitempty"`
	Millis  int64  `json:"millis"`
}

func main() {
	addresses := flag.String("listen", ":8080", "addresses to serve on, separated by commas")
	var calls []call
	add := func(hold bool) func(string) error {
		return func(text string) error {
			c, err := parseCall(text)
			c.hold = hold
			calls = append(calls, c)
			return err
		}
	}
	flag.Func("connect", "HOST:PORT@INTERVAL~JITTER: open a connection every interval (may be repeated)", add(false))
	flag.Func("hold", "HOST:PORT@INTERVAL~JITTER: keep a connection open and send a request every interval (may be repeated)", add(true))
	flag.Parse()
	for _, c := range calls {
		go c.repeat()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /connect", connect)
	mux.HandleFunc("GET /await", await)
	mux.HandleFunc("GET /held", held)
	mux.HandleFunc("GET /lookup", lookup)
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		name, err := os.Hostname()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, name)
	})
	ended := make(chan error)
	for _, address := range strings.Split(*addresses, ",") {
		server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
		go func() { ended <- server.ListenAndServe() }()
	}
	log.Fatal(<-ended)
}

// connect opens a TCP connection to ?to=HOST:PORT within one second.
func connect(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(r.Context(), "tcp", r.URL.Query().Get("to"))
	res := result{Connected: err == nil, Millis: time.Since(began).Milliseconds()}
	if err != nil {
		res.Error = err.Error()
		var timeout net.Error
		res.Timeout = errors.As(err, &timeout) && timeout.Timeout()
	} else {
		conn.Close()
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(res); err != nil {
		log.Print(err)
	}
}

// lookup resolves ?name= with the pod's resolver.
func lookup(w http.ResponseWriter, r *http.Request) {
	addresses, err := net.DefaultResolver.LookupHost(r.Context(), r.URL.Query().Get("name"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	for _, a := range addresses {
		fmt.Fprintln(w, a)
	}
}
