package anchor

import (
	"fmt"
	"strings"
	"time"

	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/acp-io/acp/internal/webhooksender"
)

// Parse creates anchors from their specifications: configmap, file:PATH, webhook:URL,KEYFILE, or none. The namespace is that of
// the ConfigMap.
func Parse(specs []string, cluster typedcorev1.ConfigMapsGetter, namespace string) ([]Anchor, error) {
	var out []Anchor
	for _, s := range specs {
		kind, rest, _ := strings.Cut(s, ":")
		switch {
		case s == "none":
		case s == "configmap":
			out = append(out, &ConfigMap{Client: cluster, Namespace: namespace})
		case kind == "file" && rest != "":
			out = append(out, &File{Path: rest})
		case kind == "webhook" && rest != "":
			i := strings.LastIndexByte(rest, ',')
			if i < 0 {
				return nil, fmt.Errorf("%q: use webhook:URL,KEYFILE", s)
			}
			u, err := webhooksender.ParseURL(rest[:i])
			if err != nil {
				return nil, fmt.Errorf("webhook: %w", err)
			}
			if _, err := webhooksender.ReadKeys(rest[i+1:]); err != nil {
				return nil, err
			}
			out = append(
				out,
				&Webhook{Target: &webhooksender.Target{URL: u, KeyFile: rest[i+1:], Client: webhooksender.NewClient(webhooksender.Timeout), Now: time.Now}},
			)
		default:
			return nil, fmt.Errorf("%q: use configmap, file:PATH, webhook:URL,KEYFILE, or none", s)
		}
	}
	return out, nil
}
