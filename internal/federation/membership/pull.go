package membership

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/deploy/rbac/ocm"
	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/guard"
	pull "github.com/acp-io/acp/internal/propagation/ocm"
)

// DefaultAdapter is the name of the adapter's service account on the host.
const DefaultAdapter = "acp-adapter"

// ErrOtherAgent means that the work agent that fetches ManifestWorks under the member's name runs in another cluster.
var ErrOtherAgent = errors.New("the work agent that uses this name on the host runs in another cluster")

// ErrNotReleased means that the work agent still owns objects in the member. The member keeps them.
var ErrNotReleased = errors.New("the work agent still owns objects in the member")

// probeTimeout is how long Join waits for the work agent's answer. Its first attempt after a right was granted may fail, and the next one
// follows after some seconds.
const probeTimeout = time.Minute

// hostRights returns the objects that let the adapter manage the ManifestWorks in a member's namespace on the host.
func hostRights(cluster, adapterNamespace, adapter string) ([]*unstructured.Unstructured, error) {
	out, err := documents("host.yaml", ocm.Host)
	if err != nil {
		return nil, err
	}
	for _, o := range out {
		o.SetNamespace(cluster)
		subjects, _, err := unstructured.NestedSlice(o.Object, "subjects")
		if err != nil {
			return nil, fmt.Errorf("read the subjects of %s: %w", title(o), err)
		}
		for _, s := range subjects {
			if subject, ok := s.(map[string]any); ok {
				subject["namespace"], subject["name"] = adapterNamespace, adapter
			}
		}
		if len(subjects) == 0 {
			continue
		}
		if err := unstructured.SetNestedSlice(o.Object, subjects, "subjects"); err != nil {
			return nil, fmt.Errorf("write the subjects of %s: %w", title(o), err)
		}
	}
	return out, nil
}

// findLeftoverWorks makes a registration name the work agent as the former engine if the host still has ManifestWorks of ACP's for the member, which
// left by force while its agent was away.
func (j *Join) findLeftoverWorks(ctx context.Context, registered *federation.Cluster) error {
	if j.Cluster.Engine.Pulls() || registered.HasWorkAgent() {
		return nil
	}
	left, err := pull.Remaining(ctx, j.Host.dynamic, j.Cluster.Name)
	if err == nil && left > 0 {
		registered.FormerEngine = federation.EngineOCM
	}
	return err
}

// prepareHost lets the adapter manage the member's ManifestWorks, also while the member moves to another engine. Of an engine that pulls it must
// be known that the agent runs in the member.
func (j *Join) prepareHost(ctx context.Context, registered federation.Cluster) error {
	switch {
	case !j.Cluster.Engine.Pulls() && !registered.HasWorkAgent():
		return nil
	case j.Cluster.Engine.Pulls() && !j.DryRun:
		if err := j.Host.checkAgent(ctx, j.Cluster.Name, j.Member); err != nil {
			return err
		}
	}
	adapter, err := j.adapter(ctx)
	if err != nil {
		return err
	}
	if err := j.restrictWorks(ctx, adapter); err != nil {
		return err
	}
	rights, err := hostRights(j.Cluster.Name, j.Host.CredentialsNamespace, adapter)
	if err != nil {
		return err
	}
	for _, o := range rights {
		if err := j.step(applyObject(ctx, j.Host.dynamic, "host", o, j.DryRun)); err != nil {
			return err
		}
	}
	return nil
}

// restrictWorks restricts the ManifestWorks of the adapter on the host to what ACP distributes. A host that is too old for that gets none.
func (j *Join) restrictWorks(ctx context.Context, adapter string) error {
	objects, err := guard.WorksObjects("system:serviceaccount:" + j.Host.CredentialsNamespace + ":" + adapter)
	if err != nil {
		return err
	}
	return applyPolicies(ctx, j.Host.dynamic, "host", objects, j.DryRun, j.step)
}

// adapter returns the name of the adapter's service account: the given one, the one that has rights in the member's namespace, or the default.
func (j *Join) adapter(ctx context.Context) (string, error) {
	if j.Adapter != "" {
		return j.Adapter, nil
	}
	binding, err := j.Host.dynamic.Resource(resources["RoleBinding"]).Namespace(j.Cluster.Name).Get(ctx, rightsName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return DefaultAdapter, nil
	}
	if err != nil {
		return "", fmt.Errorf("read the adapter's rights in namespace %s of the host: %w", j.Cluster.Name, err)
	}
	subjects, _, err := unstructured.NestedSlice(binding.Object, "subjects")
	if err != nil {
		return "", fmt.Errorf("read the subjects of %s: %w", title(binding), err)
	}
	for _, s := range subjects {
		if subject, ok := s.(map[string]any); ok && subject["namespace"] == j.Host.CredentialsNamespace {
			if name, ok := subject["name"].(string); ok {
				return name, nil
			}
		}
	}
	return DefaultAdapter, nil
}

// rightsName is the name of the adapter's Role in the namespace of a member on the host, and of its binding.
const rightsName = "acp-adapter"

// checkAgent checks that the work agent that fetches the ManifestWorks in a namespace of the host answers, and that it runs in a cluster.
func (h *Host) checkAgent(ctx context.Context, name string, member *rest.Config) error {
	core, err := kubernetes.NewForConfig(member)
	if err != nil {
		return fmt.Errorf("the member's configuration cannot be used: %w", err)
	}
	system, err := core.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the namespace %s of %s: %w", metav1.NamespaceSystem, name, err)
	}
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	found, err := pull.Probe(limited, h.dynamic, name)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case found != system.GetUID():
		return fmt.Errorf("%s: %w", name, ErrOtherAgent)
	}
	return nil
}

// untilReleased waits until the adapter has deleted the member's ManifestWorks, whose objects stay in the member. It ends with ErrNotReleased when
// none was deleted for handOverTimeout.
func (h *Host) untilReleased(ctx context.Context, name string) error {
	left, since := -1, time.Now()
	err := wait.PollUntilContextCancel(ctx, handOverInterval, true, func(ctx context.Context) (bool, error) {
		n, err := pull.Remaining(ctx, h.dynamic, name)
		switch {
		case err == nil && n != left:
			left, since = n, time.Now()
		case time.Since(since) <= handOverTimeout:
		case err != nil:
			return false, fmt.Errorf("%w: %w", ErrNotReleased, err)
		default:
			return false, fmt.Errorf("%w: %d ManifestWorks remain in namespace %s of the host: check that the adapter runs, that the agent answers, "+
				"and that the member is not quarantined", ErrNotReleased, n, name)
		}
		return err == nil && n == 0, nil
	})
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// ErrAgentUnused means that the adapter did not begin to use the work agent. The accounts of the former engines are kept.
var ErrAgentUnused = errors.New("the adapter does not use the work agent yet, and the former engine's account is kept")

// untilAgentAnswers waits until the member's agent has answered a heartbeat of the adapter, so that the former engine is not needed any more.
func (h *Host) untilAgentAnswers(ctx context.Context, name string, now func() time.Time) error {
	last := pull.ErrNoAnswer
	err := wait.PollUntilContextTimeout(ctx, handOverInterval, handOverTimeout, true, func(ctx context.Context) (bool, error) {
		heartbeat, err := pull.ReadHeartbeat(ctx, h.dynamic, name, now())
		if last = err; err == nil && !heartbeat.Answered {
			last = pull.ErrNoAnswer
		}
		return last == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w: check that the adapter runs, has this version, and uses the service account that --adapter-service-account names, and "+
		"repeat the command", ErrAgentUnused, last)
}

// endPull waits until the adapter has deleted the ManifestWorks of a member that moved to another engine, and then removes the former engine from
// the registration.
func (h *Host) endPull(ctx context.Context, name string) error {
	if err := h.untilReleased(ctx, name); err != nil {
		return err
	}
	return h.annotate(ctx, name, map[string]any{federation.AnnotationFormerEngine: nil})
}

// removeRights removes the adapter's rights in the namespace of a member on the host, if it has any.
func (h *Host) removeRights(ctx context.Context, name string, dry bool, record func(Step, error) error) error {
	rights, err := hostRights(name, h.CredentialsNamespace, DefaultAdapter)
	if err != nil {
		return err
	}
	for _, o := range rights {
		step, err := removeObject(ctx, h.dynamic, "host", o, dry)
		if err == nil && step.Outcome == Absent {
			continue
		}
		if err := record(step, err); err != nil {
			return err
		}
	}
	return nil
}
