package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/acp-io/acp/playground/internal/demo"
	"github.com/acp-io/acp/playground/internal/oidc"
)

func serveOIDC(ctx context.Context, flags *flag.FlagSet, args []string) error {
	listen := flags.String("listen", "", "address on this machine, 127.0.0.1:PORT")
	portal := flags.String("portal-url", "", "URL of the portal, the only client")
	id := flags.String("client-id", "acp-portal", "the portal's client id")
	secretFile := flags.String("client-secret-file", "", "file that holds the portal's client secret")
	keyFile := flags.String("key-file", "", "file of the signing key; made when it is absent")
	people := flags.String("people", "", "file (people.csv of a catalog) of those who can log in beside the people of the story")
	guests := flags.String("guests", "", "usernames, separated by commas, of those who can log in beside them and are in no catalog")
	remembered := flags.String("remembered", "", "usernames, separated by commas, of those whose ordinary login continues an older one")
	if err := parse(flags, args); err != nil {
		return err
	}
	for name, value := range map[string]string{"listen": *listen, "portal-url": *portal, "client-secret-file": *secretFile, "key-file": *keyFile} {
		if value == "" {
			return fmt.Errorf("oidc needs --%s", name)
		}
	}
	if host, _, err := net.SplitHostPort(*listen); err != nil || host != "127.0.0.1" {
		return fmt.Errorf("--listen must be 127.0.0.1:PORT, not %q: everybody knows the demo's password", *listen)
	}
	secret, err := os.ReadFile(*secretFile)
	if err != nil {
		return fmt.Errorf("read the client secret: %w", err)
	}
	key, err := oidc.LoadKey(*keyFile)
	if err != nil {
		return err
	}
	var others []demo.Person
	if *people != "" {
		if others, err = demo.LoadPeople(*people); err != nil {
			return err
		}
	}
	for _, name := range names(*guests) {
		others = append(others, demo.Person{Username: name, Name: name})
	}
	handler, err := oidc.NewHandler(oidc.Config{
		Issuer: "http://" + *listen, PortalURL: strings.TrimRight(*portal, "/"),
		ClientID: *id, ClientSecret: strings.TrimSpace(string(secret)), Key: key, People: demo.People(), Others: others, Remembered: names(*remembered),
	})
	if err != nil {
		return err
	}
	srv := &http.Server{Addr: *listen, Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = srv.Shutdown(grace) // what is not done by then is cut
	})
	defer stop()
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve OIDC: %w", err)
	}
	return nil
}

// names returns the entries of a list that is separated by commas.
func names(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}
