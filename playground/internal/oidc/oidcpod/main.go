// Command oidcpod is the playground's OpenID provider as a pod of a test: it serves TLS on every address of the pod.
package main

import (
	"crypto/rand"
	"crypto/rsa"
	"flag"
	"log"
	"net/http"
	"time"

	"github.com/acp-io/acp/playground/internal/demo"
	"github.com/acp-io/acp/playground/internal/oidc"
)

func main() {
	issuer := flag.String("issuer", "", "URL of the provider")
	portal := flag.String("portal-url", "", "URL of the portal, the only client")
	secret := flag.String("client-secret", "", "secret of the portal")
	cert := flag.String("tls-cert-file", "", "file of the certificate")
	key := flag.String("tls-key-file", "", "file of its key")
	flag.Parse()
	signing, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		log.Fatal(err)
	}
	handler, err := oidc.NewHandler(
		oidc.Config{Issuer: *issuer, PortalURL: *portal, ClientID: "acp-portal", ClientSecret: *secret, Key: signing, People: demo.People()},
	)
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: ":8443", Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServeTLS(*cert, *key))
}
