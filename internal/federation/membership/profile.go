package membership

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/inventory"
)

// ErrProfileMismatch is returned if a ClusterProfile and a member do not belong together: the member is registered with another
// ClusterProfile, another member is registered with this one, or the ClusterProfile names another certificate authority.
var ErrProfileMismatch = errors.New("the ClusterProfile and the member do not belong together")

// Profile reads a ClusterProfile.
func (h *Host) Profile(ctx context.Context, name types.NamespacedName) (inventory.Profile, error) {
	return inventory.Get(ctx, h.dynamic, name)
}

// Profiles returns all ClusterProfiles of the host, none if it does not serve the kind. One that cannot be parsed has only its name.
func (h *Host) Profiles(ctx context.Context) ([]inventory.Profile, error) {
	var out []inventory.Profile
	err := each(ctx, h.dynamic.Resource(inventory.Resource), func(u *unstructured.Unstructured) {
		p, err := inventory.Parse(u)
		if err != nil {
			p.Access = nil
		}
		out = append(out, p)
	})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the host's ClusterProfiles: %w", err)
	}
	return out, nil
}

// checkProfile returns an error if the member is registered with another ClusterProfile, or another member with this one.
func (j *Join) checkProfile(ctx context.Context, registered federation.Cluster) error {
	profile := j.Cluster.Profile
	if profile == "" {
		return nil
	}
	if registered.Profile != "" && registered.Profile != profile {
		return fmt.Errorf("%w: %s is registered with ClusterProfile %s, not %s", ErrProfileMismatch, j.Cluster.Name, registered.Profile, profile)
	}
	members, err := j.Host.Members(ctx)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(members, func(c federation.Cluster) bool { return c.Name != j.Cluster.Name && c.Profile == profile }); i >= 0 {
		return fmt.Errorf("%w: ClusterProfile %s is that of member %s", ErrProfileMismatch, profile, members[i].Name)
	}
	return nil
}

// FromProfile sets the address and the proxy of a registration to those in a ClusterProfile. The certificate authority, which the caller has
// from a source that they trust, stays: those who may change ClusterProfiles must not be able to have tokens of a member sent elsewhere. It is
// an error if the ClusterProfile names another authority.
func FromProfile(c federation.Cluster, p inventory.Profile, provider string) (federation.Cluster, error) {
	way, err := p.Use(provider)
	if err != nil {
		return c, err
	}
	if len(bytes.TrimSpace(way.CABundle)) > 0 && !inventory.SameAuthority(way.CABundle, c.CABundle) {
		return c, fmt.Errorf("%w: %s names another certificate authority than the member's context, or --ca-file", ErrProfileMismatch, p.Name)
	}
	c.Endpoint, c.ProxyURL, c.Profile = way.Endpoint, way.ProxyURL, p.Name.String()
	return c, nil
}
