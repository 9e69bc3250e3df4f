package main

import (
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/audit/flowstore"
	"github.com/acp-io/acp/internal/hostcluster"
	"github.com/acp-io/acp/internal/notify/setup"
	"github.com/acp-io/acp/internal/serving"
)

// inputs contains what options name, parsed and read from files. Nothing of it needs a connection.
type inputs struct {
	publicURL      *url.URL
	hostConfig     *rest.Config
	dsn            string
	flowAddress    flowstore.Address
	trustedProxies []netip.Prefix
	channels       *setup.Channels
}

// inputs parses the options and reads the files that they name. The error names the option.
func (o *options) inputs() (in inputs, err error) {
	if _, err := o.clientSecret(); err != nil {
		return in, err
	}
	if in.publicURL, err = url.Parse(o.publicURL); err != nil {
		return in, fmt.Errorf("--public-url: %w", err)
	}
	if in.hostConfig, err = hostcluster.Config(o.kubeconfig); err != nil {
		return in, err
	}
	if in.dsn, err = o.dsn(); err != nil {
		return in, err
	}
	if in.flowAddress, err = flowstore.Parse(o.flowStore, os.ReadFile); err != nil {
		return in, fmt.Errorf("--flow-store: %w", err)
	}
	if in.trustedProxies, err = serving.Prefixes("trusted-proxies", o.trustedProxies); err != nil {
		return in, err
	}
	in.channels, err = setup.Load(o.notify)
	return in, err
}

// clientSecret reads the secret of the portal at the identity provider; "" for a public client, whose codes PKCE protects.
func (o *options) clientSecret() (string, error) {
	if o.clientSecretFile == "" {
		return "", nil
	}
	data, err := os.ReadFile(o.clientSecretFile)
	if err != nil {
		return "", fmt.Errorf("--oidc-client-secret-file: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
