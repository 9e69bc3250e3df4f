// Command coredns is CoreDNS with those plugins alone that the Corefile of a node uses. The others need the libraries of several clouds, which
// take minutes to build.
package main

import (
	"github.com/coredns/coredns/coremain"

	// The plugins register themselves.
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() { coremain.Run() }
