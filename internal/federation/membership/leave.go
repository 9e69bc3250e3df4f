package membership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	"github.com/acp-io/acp/internal/federation/preflight"
)

// page is the number of objects in one response.
const page = 500

// Leave unregisters a member.
type Leave struct {
	Host *Host
	Name string
	// Member has the rights of the member's administrator. If it is nil, only the member's engine removes objects there.
	Member *rest.Config
	// Force unregisters the member whatever it still has.
	Force  bool
	DryRun bool
	// Timeout is how long Run waits until the member was seen without managed objects, and Every the interval of the
	// checks.
	Timeout, Every time.Duration
	// OnStep is called after each step.
	OnStep func(Step)
	// Waiting is called with what is left, whenever that has changed.
	Waiting func(Remaining)
}

// Remaining contains what prevents a member from leaving.
type Remaining struct {
	// Objects contains the objects that ACP manages in the member, by kind and name.
	Objects []string `json:"objects,omitempty"`
	// Federated are the Federated objects on the host that are placed in the member, or were and have not been seen
	// removed, with their subjects.
	Federated []string `json:"federated,omitempty"`
	// Unread is the reason why the member's objects are unknown.
	Unread string `json:"unread,omitempty"`
	// Works is the reason why ManifestWorks of a member that leaves by force remain on the host. Deleting them deletes the objects in the member.
	Works string `json:"works,omitempty"`
}

// IsEmpty reports whether nothing prevents the member from leaving.
func (r Remaining) IsEmpty() bool {
	return len(r.Objects) == 0 && len(r.Federated) == 0 && r.Unread == "" && r.Works == ""
}

// ErrNotEmpty is returned if the member still has, or may have, managed objects after the timeout. The member stays
// registered, and no placement includes it any more.
var ErrNotEmpty = errors.New("the member still has objects of ACP, and stays registered")

// ErrUnread is returned instead of ErrNotEmpty if it is not known what the member has.
var ErrUnread = errors.New("the member cannot be read, and stays registered")

// Run unregisters the member, and returns what is left in it: nothing, unless Force or DryRun is set or the error is
// ErrNotEmpty or ErrUnread.
func (l *Leave) Run(ctx context.Context) (Remaining, error) {
	if l.Member != nil {
		// A member that does not answer can leave. Its accounts are removed only if it is known not to be the host.
		if err := l.Host.refuseHostCluster(ctx, l.Member); errors.Is(err, ErrIsHostCluster) || apierrors.IsForbidden(err) {
			return Remaining{}, err
		}
	}
	u, c, err := l.Host.registration(ctx, l.Name)
	if err != nil {
		return Remaining{}, err
	}
	if u == nil {
		// An earlier call may have been interrupted after it removed the registration, whose engine is not known any more.
		return Remaining{}, l.clean(ctx, federation.PusherSecretName(l.Name), federation.Engines()...)
	}
	left, err := l.Host.Remaining(ctx, c)
	if err != nil {
		return left, err
	}
	if !l.DryRun && !l.Force {
		if left, err = l.wait(ctx, c); err != nil {
			return left, err
		}
	}
	if c.HasWorkAgent() && !l.DryRun {
		switch err := l.endPull(ctx); {
		case err == nil:
		case l.Force && errors.Is(err, ErrNotReleased):
			left.Works = err.Error()
		default:
			return left, err
		}
	}
	step, err := removeObject(ctx, l.Host.dynamic, "host", u, l.DryRun)
	if err != nil {
		return left, err
	}
	l.step(step)
	engines := []federation.Engine{federation.EngineKubeFed}
	if c.Engine == federation.EngineDirect || c.HasWorkAgent() || c.Secret == federation.DirectSecretName(l.Name) {
		engines = federation.Engines() // a move may have been interrupted
	}
	return left, l.clean(ctx, c.Secret, engines...)
}

// endPull makes the adapter delete the member's ManifestWorks. The objects that the member still has stay there.
func (l *Leave) endPull(ctx context.Context) error {
	err := l.Host.annotate(ctx, l.Name, map[string]any{
		federation.AnnotationEngine: string(federation.EngineNone), federation.AnnotationFormerEngine: string(federation.EngineOCM)})
	if err != nil {
		return err
	}
	return l.Host.untilReleased(ctx, l.Name)
}

// wait removes the member from all placements, and waits until nothing is left.
func (l *Leave) wait(ctx context.Context, c federation.Cluster) (Remaining, error) {
	left := Remaining{Unread: "it was not looked at yet"}
	if err := l.Host.setLeaving(ctx, l.Name, true); err != nil {
		return left, err
	}
	reported := ""
	err := wait.PollUntilContextTimeout(ctx, l.Every, l.Timeout, true, func(context.Context) (bool, error) {
		var err error
		if left, err = l.Host.Remaining(ctx, c); err != nil {
			return false, err
		}
		if now := fmt.Sprint(left); now != reported && l.Waiting != nil && !left.IsEmpty() {
			reported = now
			l.Waiting(left)
		}
		return left.IsEmpty(), nil
	})
	if wait.Interrupted(err) {
		if ctx.Err() != nil {
			return left, context.Cause(ctx) // it says nothing about the member
		}
		if left.Unread != "" {
			return left, ErrUnread
		}
		return left, ErrNotEmpty
	}
	return left, err
}

// Remaining returns what prevents a member from leaving. It reads the member with the adapter's token, and the host's
// Federated objects.
func (h *Host) Remaining(ctx context.Context, c federation.Cluster) (Remaining, error) {
	var out Remaining
	kinds, err := h.Needed(ctx)
	if err != nil {
		return out, err
	}
	members, err := h.Members(ctx)
	if err != nil {
		return out, err
	}
	for _, k := range kinds {
		placed, err := h.placed(ctx, k, c.Name, federation.UsesKubeFed(members))
		if err != nil {
			return out, err
		}
		out.Federated = append(out.Federated, placed...)
	}
	token, err := h.token(ctx, h.CredentialsNamespace, federation.SecretName(c.Name))
	if err != nil {
		return out, err
	}
	if c.HasWorkAgent() && token == "" {
		return out, nil // The records name the member until its agent has reported that it has nothing of them.
	}
	if out.Objects, err = managedIn(ctx, c, token, kinds); err != nil {
		out.Unread = err.Error()
	}
	return out, nil
}

// managedIn returns the objects of ACP in a member.
func managedIn(ctx context.Context, c federation.Cluster, token string, kinds []federation.Kind) ([]string, error) {
	config, err := federation.RESTConfig(c, token)
	if err != nil {
		return nil, err
	}
	config.Timeout = preflight.Timeout
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("the registration of member %s is unusable: %w", c.Name, err)
	}
	var out []string
	for _, k := range kinds {
		found, err := managed(ctx, client, k)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// placed returns the Federated objects whose placement includes the member, or that the member may still have. KubeFed's status counts
// only if the fleet uses KubeFed.
func (h *Host) placed(ctx context.Context, k federation.Kind, cluster string, usesKubeFed bool) ([]string, error) {
	var out []string
	err := each(ctx, h.dynamic.Resource(k.FederatedResource), func(u *unstructured.Unstructured) {
		o := federation.ParseObject(k, u)
		if !usesKubeFed {
			o = o.WithoutKubeFed()
		}
		if o.WasPlacedIn(cluster) {
			out = append(out, strings.TrimSpace(k.Target.Kind+" "+o.Meta.Name+" "+o.Resource()))
		}
	})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil // The kind is not installed, so nothing was pushed.
	}
	if err != nil {
		return nil, fmt.Errorf("list the host's %s: %w", k.FederatedResource.Resource, err)
	}
	return out, nil
}

// managed returns the objects in a member that ACP wrote, by label or by reserved name.
func managed(ctx context.Context, client dynamic.Interface, k federation.Kind) ([]string, error) {
	var out []string
	objects := dynamic.ResourceInterface(client.Resource(k.TargetResource))
	if k.Namespace != "" {
		objects = client.Resource(k.TargetResource).Namespace(k.Namespace)
	}
	err := each(ctx, objects, func(u *unstructured.Unstructured) {
		if u.GetLabels()[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy || strings.HasPrefix(u.GetName(), v1alpha1.ObjectPrefix) {
			out = append(out, k.Target.Kind+" "+u.GetName())
		}
	})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the member's %s: %w", k.TargetResource.Resource, err)
	}
	return out, nil
}

func each(ctx context.Context, r dynamic.ResourceInterface, do func(*unstructured.Unstructured)) error {
	for next := ""; ; {
		found, err := r.List(ctx, metav1.ListOptions{Limit: page, Continue: next})
		if err != nil {
			return err
		}
		for i := range found.Items {
			do(&found.Items[i])
		}
		if next = found.GetContinue(); next == "" {
			return nil
		}
	}
}

// clean removes the Secrets on the host, and the accounts in the member, of the engines that the member uses or used. registered is the
// Secret that the registration names.
func (l *Leave) clean(ctx context.Context, registered string, engines ...federation.Engine) error {
	var gone []*unstructured.Unstructured
	names := map[string]string{federation.SecretName(l.Name): l.Host.CredentialsNamespace}
	if direct := federation.DirectSecretName(l.Name); slices.Contains(engines, federation.EngineDirect) {
		names[direct], names[federation.PusherSecretName(l.Name)] = l.Host.CredentialsNamespace, l.Host.KubeFedNamespace
	}
	if registered != federation.DirectSecretName(l.Name) {
		names[registered] = l.Host.KubeFedNamespace
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		o, err := toUnstructured(secret(names[name], name, ""))
		if err != nil {
			return err
		}
		gone = append(gone, o)
	}
	for _, o := range gone {
		step, err := removeObject(ctx, l.Host.dynamic, "host", o, l.DryRun)
		if err != nil {
			return err
		}
		l.step(step)
	}
	if slices.Contains(engines, federation.EngineOCM) {
		err := l.Host.removeRights(ctx, l.Name, l.DryRun, func(s Step, err error) error {
			if err == nil {
				l.step(s)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if l.Member == nil {
		return nil
	}
	if err := l.Host.refuseHostCluster(ctx, l.Member); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(l.Member)
	if err != nil {
		return fmt.Errorf("the member's configuration cannot be used: %w", err)
	}
	all, err := accounts(engines...)
	if err != nil {
		return err
	}
	guarding, err := guard.Objects(guard.Credentials{Labels: []string{"any"}}) // The objects' names do not depend on the keys.
	if err != nil {
		return err
	}
	roles, err := istioRoles(engines...)
	if err != nil {
		return err
	}
	all = append(append(all, roles...), guarding...)
	slices.Reverse(all)
	for _, o := range all {
		if o.GetKind() == "Namespace" {
			continue // Others may have created objects in it.
		}
		step, err := removeObject(ctx, client, l.Name, o, l.DryRun)
		if err != nil {
			return err
		}
		if step.Outcome == Absent && slices.Contains(roles, o) {
			continue // Not every fleet distributes Istio's policies.
		}
		l.step(step)
	}
	return nil
}

func (l *Leave) step(s Step) {
	if l.OnStep != nil {
		l.OnStep(s)
	}
}

// setLeaving writes or removes the annotation that excludes a member from all placements.
func (h *Host) setLeaving(ctx context.Context, name string, leaving bool) error {
	var mark any
	if leaving {
		mark = "true"
	}
	return h.annotate(ctx, name, map[string]any{federation.AnnotationLeaving: mark})
}

// annotate changes annotations of a registration; nil removes one.
func (h *Host) annotate(ctx context.Context, name string, annotations map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return fmt.Errorf("encode the mark of KubeFedCluster %s: %w", name, err)
	}
	if _, err := h.registrations().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
		return fmt.Errorf("mark KubeFedCluster %s: %w", name, err)
	}
	return nil
}
