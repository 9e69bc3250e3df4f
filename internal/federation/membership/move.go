package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/acp-io/acp/internal/federation"
	"github.com/acp-io/acp/internal/federation/tokens"
)

// A member moves from one engine to another without a change of what it must have, because the records of the objects are the same
// for all engines. The order of the steps makes sure that there is always an engine that may write, and that an engine that was left
// behind can write nothing:
//
//  1. The new engine's account is created, and the guard admits both accounts.
//  2. The new engine begins: the direct engine when the registration names it, and KubeFed when the registration names its Secret.
//  3. When KubeFed is the new engine, the former one continues until KubeFed finds the member ready. Both write the same,
//     unless KubeFed's watch is behind: nothing that the former engine wrote counts as realized before KubeFed has handled it. When an agent
//     is the new engine, the command waits until the agent has answered the adapter.
//  4. When an agent is the former engine, it stops owning the objects in the member, which stay there, and its ManifestWorks are deleted. Until
//     then the registration names it as the former engine, and nothing that it may still write counts as realized.
//  5. The guard admits only the new engine's account.
//  6. The former engine's account and Secret are deleted, or the rights of the agent, whose account is not ACP's.

// ErrNotTakenOver means that the new engine did not begin in time. The former one continues.
var ErrNotTakenOver = errors.New("the new engine did not take over, and the former one continues")

const (
	// handOverTimeout is how long KubeFed may take to find the member ready, or to give it up.
	handOverTimeout = 2 * time.Minute
	// handOverInterval is the interval of the checks.
	handOverInterval = time.Second
)

// formerEngines returns the engines from which the member moves, or may have moved in a call that was interrupted. Looking for
// the remains of an engine costs nothing, but waiting for an agent that never worked in the member would not end.
func (j *Join) formerEngines(present bool, registered federation.Cluster) []federation.Engine {
	if !present {
		return nil
	}
	var out []federation.Engine
	add := func(e federation.Engine) {
		if e != "" && e != federation.EngineNone && e != j.Cluster.Engine && !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	switch j.Cluster.Engine {
	case federation.EngineKubeFed:
		add(registered.Engine)
	case federation.EngineDirect:
		add(federation.EngineKubeFed)
	default:
		add(federation.EngineKubeFed)
		add(federation.EngineDirect)
	}
	if registered.HasWorkAgent() {
		add(federation.EngineOCM)
	}
	return out
}

// admitAll lets the guard admit the accounts of all engines.
func (j *Join) admitAll(ctx context.Context, objects dynamic.Interface, former []federation.Engine) error {
	var pushers []string
	for _, e := range append(slices.Clone(former), j.Cluster.Engine) {
		pushers = append(pushers, e.Writer())
	}
	return applyGuard(ctx, objects, j.Cluster.Name, j.Keys, j.ClassLabels, pushers, j.DryRun, j.step)
}

// activeEngine returns the engine that the registration has to name at first: a member that moves to KubeFed keeps its engine until
// KubeFed reaches it.
func (j *Join) activeEngine(ctx context.Context) federation.Engine {
	_, registered, err := j.Host.registration(ctx, j.Cluster.Name)
	if err == nil && registered.Name != "" && j.Cluster.Engine == federation.EngineKubeFed {
		return registered.Engine
	}
	return j.Cluster.Engine
}

// handOver waits until the new engine reaches the member, and ends the former ones.
func (j *Join) handOver(ctx context.Context, former []federation.Engine) error {
	agent := slices.Contains(former, federation.EngineOCM)
	if j.Cluster.Engine != federation.EngineKubeFed {
		// The new engine began with the registration, and KubeFed has no Secret for the member any more. KubeFed must notice that
		// before its account goes: a ready member that refuses its requests would stop it for every member.
		if err := j.untilKubeFed(ctx, false); err != nil {
			return err
		}
		if j.Cluster.Engine.Pulls() {
			return j.Host.untilAgentAnswers(ctx, j.Cluster.Name, j.Now)
		}
	} else {
		if err := j.untilKubeFed(ctx, true); err != nil {
			return err
		}
		annotations := map[string]any{federation.AnnotationEngine: nil}
		if agent {
			annotations[federation.AnnotationFormerEngine] = string(federation.EngineOCM)
		}
		if err := j.Host.annotate(ctx, j.Cluster.Name, annotations); err != nil {
			return err
		}
	}
	if !agent {
		return nil
	}
	return j.Host.endPull(ctx, j.Cluster.Name)
}

// untilKubeFed waits until KubeFed finds the member ready, or not ready.
func (j *Join) untilKubeFed(ctx context.Context, ready bool) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, handOverInterval, handOverTimeout, true, func(ctx context.Context) (bool, error) {
		u, err := j.Host.registrations().Get(ctx, j.Cluster.Name, metav1.GetOptions{})
		if err != nil {
			last = fmt.Errorf("read KubeFedCluster %s: %w", j.Cluster.Name, err)
			return false, nil
		}
		var c federation.Cluster
		c, last = federation.ParseCluster(u)
		return last == nil && c.ReadyForKubeFed == ready, nil
	})
	switch {
	case err == nil:
		return nil
	case last != nil:
		return last
	case !wait.Interrupted(err):
		return fmt.Errorf("wait for KubeFed: %w", err)
	case ready:
		return fmt.Errorf("%w: KubeFed does not find %s ready; look at the status of its KubeFedCluster", ErrNotTakenOver, j.Cluster.Name)
	}
	return fmt.Errorf("KubeFed still finds %s ready, so its account there is kept: if KubeFed runs, look at its log, and repeat the command; "+
		"if it does not run any more, delete the condition Ready in the status of the KubeFedCluster, and repeat the command", j.Cluster.Name)
}

// leftBehind returns the engine whose account or token a move left behind that was interrupted or given up, or "".
func (j *Join) leftBehind(ctx context.Context, objects dynamic.Interface) (federation.Engine, error) {
	if j.Cluster.Engine != federation.EngineKubeFed {
		return "", nil // Every join with another engine retires KubeFed.
	}
	_, err := objects.Resource(resources["ServiceAccount"]).Namespace(tokens.Namespace).Get(ctx, tokens.Direct, metav1.GetOptions{})
	if err == nil {
		return federation.EngineDirect, nil
	}
	if !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("look for the account %s in %s: %w", tokens.Direct, j.Cluster.Name, err)
	}
	namespace, name := j.writerSecret(federation.EngineDirect)
	token, err := j.Host.token(ctx, namespace, name)
	if err != nil || token == "" {
		return "", err
	}
	return federation.EngineDirect, nil
}

// allAccounts returns the accounts of the adapter and of an engine, with all their roles, in the order in which they are needed.
func allAccounts(e federation.Engine) ([]*unstructured.Unstructured, error) {
	all, err := accounts(e)
	if err != nil {
		return nil, err
	}
	roles, err := istioRoles(e)
	return append(all, roles...), err
}

// retireFormer retires the engines from which the member moved, or what an earlier move left behind. registered is the Secret that the
// registration named before.
func (j *Join) retireFormer(ctx context.Context, objects dynamic.Interface, former []federation.Engine, registered string) error {
	if len(former) == 0 {
		left, err := j.leftBehind(ctx, objects)
		if err != nil {
			return err
		}
		if left != "" {
			former = []federation.Engine{left}
		}
	}
	if !j.Cluster.Engine.Pulls() && !slices.Contains(former, federation.EngineOCM) {
		former = append(former, federation.EngineOCM) // a move may have been interrupted, or given up
	}
	for _, e := range former {
		if err := j.retire(ctx, objects, e, registered); err != nil {
			return err
		}
	}
	return nil
}

// retire deletes the former engine's account in the member, and its Secret on the host. registered is the Secret that the registration
// named before.
func (j *Join) retire(ctx context.Context, objects dynamic.Interface, former federation.Engine, registered string) error {
	kept, err := allAccounts(j.Cluster.Engine)
	if err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, o := range kept {
		keep[title(o)] = true
	}
	all, err := allAccounts(former)
	if err != nil {
		return err
	}
	for i := len(all) - 1; i >= 0; i-- {
		if keep[title(all[i])] {
			continue
		}
		step, err := removeObject(ctx, objects, j.Cluster.Name, all[i], j.DryRun)
		if err == nil && step.Outcome == Absent {
			continue // Not every fleet distributes Istio's policies, and an earlier move may have been interrupted.
		}
		if err := j.step(step, err); err != nil {
			return err
		}
	}
	if former.Pulls() {
		return j.Host.removeRights(ctx, j.Cluster.Name, j.DryRun, j.step)
	}
	namespace, name := j.writerSecret(former)
	if former == federation.EngineKubeFed && registered != federation.DirectSecretName(j.Cluster.Name) {
		name = registered
	}
	o, err := toUnstructured(secret(namespace, name, ""))
	if err != nil {
		return err
	}
	return j.step(removeObject(ctx, j.Host.dynamic, "host", o, j.DryRun))
}
