// Command acp-dataplane stands in for the Cilium agents of one member cluster of a playground.
package main

import (
	"fmt"
	"os"

	"github.com/acp-io/acp/playground/dataplane/internal/crds"
)

func main() {
	if err := crds.Write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "acp-dataplane:", err)
		os.Exit(1)
	}
}
