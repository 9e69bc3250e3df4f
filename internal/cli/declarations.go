package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/enforcer/istio"
	"github.com/acp-io/acp/internal/enforcer/registry"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/manifest"
)

// declarations are files with what members declare about themselves, by enforcer.
type declarations struct{ files []string }

// withMembers adds what the registrations of the members declare, for enforcers that no file was given for.
func withMembers(declared map[v1alpha1.EnforcerName][]byte, members []manifest.Member) (map[v1alpha1.EnforcerName][]byte, error) {
	if _, given := declared[v1alpha1.EnforcerIstio]; given || len(members) == 0 {
		return declared, nil
	}
	texts := map[string]string{}
	for _, m := range members {
		texts[m.Name] = m.Annotations[federation.AnnotationIstio]
	}
	text, err := json.Marshal(istio.Declared(texts))
	if err != nil {
		return nil, invalid(fmt.Errorf("write down what the members declare: %w", err))
	}
	declared[v1alpha1.EnforcerIstio] = text
	return declared, nil
}

func (d *declarations) flag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&d.files, "capabilities", nil, "`ENFORCER=FILE` with what members declare about themselves, in place of what their KubeFedClusters do; repeatable")
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
