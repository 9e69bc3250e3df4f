package hubble

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// startProxy accepts one connection, reads the request for a tunnel and lets answer handle the connection.
func startProxy(t *testing.T, answer func(request *http.Request, conn net.Conn)) *url.URL {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		request, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		answer(request, conn)
	}()
	return &url.URL{Scheme: "http", Host: l.Addr().String(), User: url.UserPassword("collector", "secret")}
}

func TestTunnel(t *testing.T) {
	via := startProxy(t, func(request *http.Request, conn net.Conn) {
		user, password, _ := (&http.Request{Header: http.Header{"Authorization": request.Header["Proxy-Authorization"]}}).BasicAuth()
		if request.Method != http.MethodConnect || request.Host != "relay.example:4245" || user != "collector" || password != "secret" {
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			return
		}
		// The first bytes of the other end arrive together with the answer.
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\nhello ")
		_, _ = io.Copy(conn, io.LimitReader(conn, 4))
	})
	conn, err := dial(t.Context(), &net.Dialer{}, via, "relay.example:4245")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "echo"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "hello echo" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestProxiesThatFail(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		want   string
	}{
		"refused":       {"HTTP/1.1 403 Forbidden\r\n\r\n", "403 Forbidden"},
		"not HTTP":      {"SSH-2.0\r\n", "malformed"},
		"endless":       {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", 2*maxProxyAnswer), "too long"},
		"ends too soon": {"", "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			via := startProxy(t, func(_ *http.Request, conn net.Conn) { _, _ = io.WriteString(conn, tc.answer) })
			_, err := dial(t.Context(), &net.Dialer{}, via, "relay.example:4245")
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
	t.Run("silent", func(t *testing.T) {
		via := startProxy(t, func(_ *http.Request, conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := dial(ctx, &net.Dialer{}, via, "relay.example:4245"); !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
			t.Errorf("error %v", err)
		}
	})
	if _, err := dial(t.Context(), &net.Dialer{}, &url.URL{Scheme: "ftp", Host: "h"}, "a:1"); err == nil || !strings.Contains(err.Error(), "neither") {
		t.Errorf("another scheme: %v", err)
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// TestSOCKS5 connects through a proxy with the part of SOCKS5 that the client needs.
func TestSOCKS5(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		greeting := make([]byte, 3) // version 5, one method, without authentication
		_, _ = io.ReadFull(conn, greeting)
		_, _ = conn.Write([]byte{5, 0})
		request := make([]byte, 4+1+len("relay.example")+2)
		_, _ = io.ReadFull(conn, request)
		if string(request[5:len(request)-2]) != "relay.example" {
			return
		}
		_, _ = conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		_, _ = io.WriteString(conn, "through")
	}()
	conn, err := dial(t.Context(), &net.Dialer{}, &url.URL{Scheme: "socks5", Host: l.Addr().String()}, "relay.example:4245")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, err := io.ReadAll(conn); err != nil || string(got) != "through" {
		t.Errorf("%q, %v", got, err)
	}
}
