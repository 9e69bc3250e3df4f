package preflight

import (
	"testing"

	"github.com/acp-io/acp/internal/message"
)

func TestIdentityLimit(t *testing.T) {
	for _, c := range []struct {
		reason string
		cilium Cilium
		want   int32
	}{
		{"nothing is configured", ParseCilium(map[string]string{"cluster-id": "0"}), 65280},
		{"nothing was read", Cilium{Unread: message.Verbatim("forbidden")}, 65280},
		{"a cluster of a mesh has its own range", ParseCilium(map[string]string{"cluster-id": "7", "max-connected-clusters": "255"}), 65536},
		{"more clusters, fewer identities", ParseCilium(map[string]string{"cluster-id": "7", "max-connected-clusters": "511"}), 32768},
		{"of which the lowest are reserved", ParseCilium(map[string]string{"cluster-id": "0", "max-connected-clusters": "511"}), 32512},
	} {
		if got := c.cilium.IdentityLimit(); got != c.want {
			t.Errorf("%s: %d, want %d", c.reason, got, c.want)
		}
	}
}
