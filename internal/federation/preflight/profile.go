package preflight

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/inventory"
	"github.com/acp-io/acp/internal/message"
)

// Profile is what the inventory of a cluster manager says about a member.
type Profile struct {
	// Name is the ClusterProfile that the registration names, or "". Then everything else is zero.
	Name string
	// Invalid reports whether the name is not NAMESPACE/NAME, and Missing whether there is no such ClusterProfile.
	Invalid, Missing bool
	// Unread is the reason why it is not known, or zero.
	Unread message.Message
	// Malformed reports whether it is not known because the content of the ClusterProfile cannot be parsed.
	Malformed bool
	// Deleting, Healthy and Reason describe the state of the ClusterProfile, and Manager is its cluster manager.
	Deleting        bool
	Healthy         metav1.ConditionStatus
	Reason, Manager string
	// Same reports whether the ClusterProfile contains the address, the certificate authority and the proxy of the registration.
	Same bool
}

// profileTimeout is the timeout of the request to the host. The member's own facts do not depend on it.
const profileTimeout = 3 * time.Second

// ReadProfile reads the ClusterProfile that a registration names, from the host. Without a name it makes no request, so that a host needs
// neither the kind nor a right to it.
func ReadProfile(ctx context.Context, host dynamic.Interface, c federation.Cluster) Profile {
	out := Profile{Name: c.Profile}
	if c.Profile == "" {
		return out
	}
	name, err := inventory.ParseName(c.Profile)
	if err != nil {
		out.Invalid = true
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, profileTimeout)
	defer cancel()
	found, err := inventory.Get(ctx, host, name)
	switch {
	case apierrors.IsNotFound(err):
		out.Missing = true
		return out
	case err != nil:
		out.Malformed = errors.Is(err, inventory.ErrMalformed)
		out.Unread = unread(err, inventory.Resource.GroupResource().String())
		return out
	}
	out.Deleting, out.Healthy, out.Reason, out.Manager, out.Same = found.Deleting, found.Healthy, found.Reason, found.Manager, found.Has(c)
	return out
}

// profileFindings compares a member with its ClusterProfile. All of them are warnings: an inventory neither opens nor closes anything, and does
// not keep changes from a member.
func profileFindings(f Facts, others []Facts) []Finding {
	p, name := f.Profile, f.Profile.Name
	if name == "" {
		return nil
	}
	var out []Finding
	add := func(code string, m, remedy message.Message) {
		out = append(out, Finding{Severity: Warns, Code: code, Message: m, Remedy: remedy})
	}
	if i := slices.IndexFunc(others, func(o Facts) bool { return o.Member != f.Member && o.Profile.Name == name }); i >= 0 && !p.Invalid {
		add(ProfileShared, message.PreflightProfileShared(name, others[i].Member), message.RemedyProfileShared(federation.AnnotationClusterProfile))
	}
	switch {
	case p.Invalid:
		add(ProfileInvalid, message.PreflightPlaceInvalid(federation.AnnotationClusterProfile),
			message.RemedyCorrectAnnotation(federation.AnnotationClusterProfile))
		return out
	case p.Missing:
		add(ProfileMissing, message.PreflightProfileMissing(name), message.RemedyProfileMissing(f.Member, federation.AnnotationClusterProfile))
		return out
	case !p.Unread.IsZero():
		remedy := message.RemedyApplyHostRbac()
		if p.Malformed {
			remedy = message.RemedyProfileMalformed(name)
		}
		add(ProfileUnread, message.PreflightProfileUnread(name, p.Unread), remedy)
		return out
	case p.Deleting:
		add(ProfileLeaving, message.PreflightProfileLeaving(name), message.RemedyProfileMissing(f.Member, federation.AnnotationClusterProfile))
	}
	switch p.Healthy {
	case metav1.ConditionTrue:
	case metav1.ConditionFalse:
		add(ProfileUnhealthy, message.PreflightProfileUnhealthy(name, clip(p.Reason)), message.RemedyAskManager(clip(p.Manager)))
	default:
		add(ProfileHealthUnknown, message.PreflightProfileHealthUnknown(name), message.RemedyAskManager(clip(p.Manager)))
	}
	if !p.Same {
		add(ProfileDiffers, message.PreflightProfileDiffers(name), message.RemedyProfileDiffers())
	}
	return out
}
