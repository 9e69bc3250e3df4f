package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// call is a connection that is made again and again.
type call struct {
	to       string
	interval time.Duration
	// jitter is the part of the interval, from 0 to 1, by which a pause may be shorter or longer.
	jitter float64
	// hold keeps the connection open and sends a request every interval.
	hold bool
}

// parseCall reads HOST:PORT@INTERVAL~JITTER.
func parseCall(text string) (call, error) {
	to, rhythm, found := strings.Cut(text, "@")
	interval, jitter, jittered := strings.Cut(rhythm, "~")
	if !found || !jittered {
		return call{}, fmt.Errorf("%q is not HOST:PORT@INTERVAL~JITTER", text)
	}
	c := call{to: to}
	var err error
	if c.interval, err = time.ParseDuration(interval); err != nil {
		return call{}, err
	}
	if c.jitter, err = strconv.ParseFloat(jitter, 64); err != nil {
		return call{}, err
	}
	if c.interval < 100*time.Millisecond || c.jitter < 0 || c.jitter > 1 {
		return call{}, fmt.Errorf("%q: an interval is at least 100ms and a jitter from 0 to 1", text)
	}
	return c, nil
}

// repeat makes the connection for ever. The result is observed in the network, not here.
func (c call) repeat() {
	for {
		c.pause()
		conn, err := net.DialTimeout("tcp", c.to, 2*time.Second)
		if err != nil {
			continue
		}
		if c.hold {
			c.keep(conn)
		} else {
			_ = request(conn, bufio.NewReader(conn)) // the peer may be no HTTP server
		}
		conn.Close()
	}
}

// keep sends requests until one fails.
func (c call) keep(conn net.Conn) {
	answers := bufio.NewReader(conn)
	for request(conn, answers) == nil {
		c.pause()
	}
}

func request(conn net.Conn, answers *bufio.Reader) error {
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: probe\r\n\r\n"); err != nil {
		return err
	}
	res, err := http.ReadResponse(answers, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

func (c call) pause() {
	time.Sleep(time.Duration(float64(c.interval) * (1 + c.jitter*(2*rand.Float64()-1))))
}
