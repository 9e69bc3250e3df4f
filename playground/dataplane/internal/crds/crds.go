// Package crds prints the CRDs that a member cluster needs, from the version of Cilium that the engine uses, so that the API server
// and the engine always accept the same fields.
package crds

import (
	"fmt"
	"io"

	crdv2 "github.com/cilium/cilium/pkg/k8s/apis/cilium.io/client/crds/v2"
)

// Write writes the CRDs as one YAML stream.
func Write(w io.Writer) error {
	for _, name := range []string{"ciliumclusterwidenetworkpolicies", "ciliumcidrgroups", "ciliumidentities"} {
		data, err := crdv2.EmbedFS.ReadFile(name + ".yaml")
		if err != nil {
			return fmt.Errorf("read the CRD %s: %w", name, err)
		}
		if _, err := fmt.Fprintf(w, "---\n%s", data); err != nil {
			return fmt.Errorf("write the CRD %s: %w", name, err)
		}
	}
	return nil
}
