// Command acp-clickhouse serves ClickHouse's own engine, as a library, through its HTTP interface, so that the flow store's tests
// run the real driver against a current engine on machines without a ClickHouse server. It is not suitable for other purposes: it
// keeps whole responses in memory and has a single user.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

// sessions is the number of sessions that the engine runs concurrently.
const sessions = 4

func main() {
	log.SetFlags(0)
	log.SetPrefix("acp-clickhouse: ")
	library := flag.String("library", "", "libchdb.so, see `make clickhouse`")
	dir := flag.String("dir", "", "where the data are; empty: a folder that goes when the program ends")
	address := flag.String("address", "127.0.0.1:0", "address to listen on")
	user := flag.String("user", "acp", "the only user; the password is in ACP_CLICKHOUSE_PASSWORD")
	flag.Parse()
	if err := run(*library, *dir, *address, *user, os.Getenv("ACP_CLICKHOUSE_PASSWORD")); err != nil {
		log.Fatal(err)
	}
}

// run serves until its standard input ends, which happens when the parent process ends.
func run(library, dir, address, user, password string) error {
	if dir == "" {
		temporary, err := os.MkdirTemp("", "acp-clickhouse-")
		if err != nil {
			return fmt.Errorf("make a folder for the data: %w", err)
		}
		defer func() { _ = os.RemoveAll(temporary) }() // the system clears what is left
		dir = temporary
	}
	api, err := load(library)
	if err != nil {
		return err
	}
	s := &server{user: user, password: password, idle: make(chan *conn, sessions)}
	for range sessions {
		c, err := api.open(dir)
		if err != nil {
			return err
		}
		defer c.close()
		s.idle <- c
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	web := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // only its end matters
		_ = web.Shutdown(context.Background())
	}()
	fmt.Println("http://" + l.Addr().String())
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	for range sessions { // whatever runs still
		<-s.idle
	}
	return nil
}
