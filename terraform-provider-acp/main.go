// Command terraform-provider-acp is a provider of Terraform and OpenTofu for the portal of ACP.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/acp-io/acp/internal/version"
	"github.com/acp-io/acp/terraform-provider-acp/internal/provider"
)

// address is the source address of the provider in configurations.
const address = "registry.terraform.io/acp-io/acp"

func main() {
	debug := flag.Bool("debug", false, "serve for a debugger: print the address for TF_REATTACH_PROVIDERS and wait")
	flag.Parse()
	if err := providerserver.Serve(
		context.Background(),
		provider.New(version.String()),
		providerserver.ServeOpts{Address: address, Debug: *debug},
	); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
