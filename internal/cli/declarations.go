package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/registry"
)

// declarations are files with what members declare about themselves, by enforcer.
type declarations struct{ files []string }

func (d *declarations) flag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&d.files, "capabilities", nil, "`ENFORCER=FILE` with what members declare about themselves; repeatable")
}

func (d *declarations) declared() (map[v1alpha1.EnforcerName][]byte, error) {
	out := map[v1alpha1.EnforcerName][]byte{}
	for _, f := range d.files {
		name, file, ok := strings.Cut(f, "=")
		if !ok {
			return nil, usage("--capabilities %q is not ENFORCER=FILE", f)
		}
		if err := registry.Known(v1alpha1.EnforcerName(name)); err != nil {
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
