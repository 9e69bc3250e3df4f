package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/manifest"
	"github.com/acp-io/acp/internal/policy"
)

// declarations are files with the members' declarations, by enforcer.
type declarations struct{ files []string }

// replace puts what the files declare in place of what the members of the sets do.
func (d *declarations) replace(declared map[v1alpha1.EnforcerName][]byte, sets ...*manifest.Set) error {
	for _, set := range sets {
		fleet, err := registry.WithDeclared(set.Input.Fleet(), declared)
		if err != nil {
			return invalid(fmt.Errorf("read what members declare: %w", err))
		}
		set.Input = policy.NewInput(set.Input.Objects(), fleet)
	}
	return nil
}

func (d *declarations) flag(cmd *cobra.Command) {
	cmd.Flags().
		StringArrayVar(&d.files, "capabilities", nil,
			"`ENFORCER=FILE` with what members declare about themselves, in place of what their KubeFedClusters do; repeatable")
}

func (d *declarations) declared() (map[v1alpha1.EnforcerName][]byte, error) {
	out := map[v1alpha1.EnforcerName][]byte{}
	for _, f := range d.files {
		name, file, ok := strings.Cut(f, "=")
		if !ok {
			return nil, usage("--capabilities %q is not ENFORCER=FILE", f)
		}
		if err := registry.Check(v1alpha1.EnforcerName(name)); err != nil {
			return nil, usage("--capabilities: %w", err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, invalid(fmt.Errorf("read what members declare: %w", err))
		}
		out[v1alpha1.EnforcerName(name)] = text
	}
	return out, nil
}
