package membership

import (
	"context"
	"fmt"

	crds "github.com/cilium/cilium/pkg/k8s/apis/cilium.io/client/crds/v2"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/internal/federation"
)

// applyCiliumKinds creates Cilium's kinds that are pushed to members, as Cilium has them, in a member without Cilium: KubeFed reads
// the kinds in every member, and stops for all of them where one is missing. The kinds enforce nothing without agents. An existing
// kind stays as it is, and Cilium's operator updates these when Cilium is installed later, because they have no schema version.
func applyCiliumKinds(ctx context.Context, objects dynamic.Interface, cluster string, dry bool, record func(Step, error) error) error {
	for _, k := range []federation.Kind{federation.CiliumPolicy, federation.CiliumGroup} {
		name := k.TargetResource.Resource + ".yaml"
		text, err := crds.EmbedFS.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read Cilium's kind %s: %w", k.Target.Kind, err)
		}
		kinds, err := documents(name, text)
		if err != nil {
			return err
		}
		if err := applyMissing(ctx, objects, cluster, kinds, dry, record); err != nil {
			return err
		}
	}
	return nil
}
