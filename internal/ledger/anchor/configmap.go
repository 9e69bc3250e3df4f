package anchor

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/ledger"
)

// ConfigMapNamespace is the default namespace of the ConfigMap, and ConfigMapName its name. deploy/rbac/host/portal.yaml allows
// the portal to update this one only.
const (
	// ConfigMapNamespace is the namespace of the ConfigMap.
	ConfigMapNamespace = "acp-system"
	// ConfigMapName is the name of the ConfigMap.
	ConfigMapName = "acp-ledger-anchor"
	configMapKey  = "heads.jsonl"
)

// maxHeads bounds the heads, about 70 kB; a ConfigMap can hold a megabyte.
const (
	maxHeads     = 500
	maxConflicts = 5
)

// ConfigMap stores heads in the host cluster, in the format of an anchor file. If there are too many, every second one of the
// older half is removed; the first and the newest always stay.
type ConfigMap struct {
	Client typedcorev1.ConfigMapsGetter
	// Namespace is the namespace of the ConfigMap. Default: ConfigMapNamespace.
	Namespace string
}

func (c *ConfigMap) namespace() string { return cmp.Or(c.Namespace, ConfigMapNamespace) }

// Name implements Anchor.
func (c *ConfigMap) Name() string { return "ConfigMap " + c.namespace() + "/" + ConfigMapName }

// Keep implements Anchor. Optimistic locking by the resource version prevents the loss of other replicas' heads.
func (c *ConfigMap) Keep(ctx context.Context, h ledger.Head) error {
	api := c.Client.ConfigMaps(c.namespace())
	for range maxConflicts {
		m, err := api.Get(ctx, ConfigMapName, metav1.GetOptions{})
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return fmt.Errorf("read the ConfigMap: %w", err)
		}
		if missing {
			m = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ConfigMapName, Namespace: c.namespace()}}
		}
		kept, err := heads(strings.NewReader(m.Data[configMapKey]))
		if err != nil {
			return err
		}
		if len(kept) > 0 && kept[len(kept)-1].Seq >= h.Seq {
			return nil // another replica was faster; the next round compares
		}
		if err := fill(m, thinned(append(kept, h))); err != nil {
			return err
		}
		if missing {
			_, err = api.Create(ctx, m, metav1.CreateOptions{})
		} else {
			_, err = api.Update(ctx, m, metav1.UpdateOptions{})
		}
		if err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("write the ConfigMap: %w", err)
		}
	}
	return fmt.Errorf("write the ConfigMap: it changed %d times in between", maxConflicts)
}

func fill(m *corev1.ConfigMap, kept []ledger.Head) error {
	var text strings.Builder
	for _, h := range kept {
		l, err := line(h)
		if err != nil {
			return err
		}
		text.WriteString(l)
	}
	if m.Labels == nil {
		m.Labels = map[string]string{}
	}
	m.Labels[v1alpha1.LabelManagedBy] = v1alpha1.ManagedByPortal
	m.Data = map[string]string{configMapKey: text.String()}
	return nil
}

func thinned(kept []ledger.Head) []ledger.Head {
	if len(kept) <= maxHeads {
		return kept
	}
	var out []ledger.Head
	for i, h := range kept {
		if i >= len(kept)/2 || i%2 == 0 {
			out = append(out, h)
		}
	}
	return out
}

// Heads implements Anchor.
func (c *ConfigMap) Heads(ctx context.Context) ([]ledger.Head, error) {
	m, err := c.Client.ConfigMaps(c.namespace()).Get(ctx, ConfigMapName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ConfigMap: %w", err)
	}
	return heads(strings.NewReader(m.Data[configMapKey]))
}
