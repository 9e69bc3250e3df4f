package ocm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"
	"k8s.io/utils/clock"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/backoff"
)

// probePoll is how often Probe looks for the answer, and probeCleanup bounds the deletion of its ManifestWork.
const (
	probePoll    = 200 * time.Millisecond
	probeCleanup = 10 * time.Second
)

// ErrUnknownCluster means that Open Cluster Management does not manage a cluster of that name, or is not installed on the host.
var ErrUnknownCluster = errors.New("no cluster of that name is managed by Open Cluster Management on the host")

// ErrNoAnswer means that the work agent of a cluster did not answer in time.
var ErrNoAnswer = errors.New("the work agent does not answer")

// Probe makes the work agent of a cluster read the namespace kube-system, and returns the UID that it found, which identifies the cluster.
// The agent must have a right to that. It waits until the context ends.
func Probe(ctx context.Context, host dynamic.Interface, cluster string) (types.UID, error) {
	d := heartbeatRequest(cluster, time.Time{}, time.Time{})
	d.name, d.purpose = v1alpha1.ObjectPrefix+"probe-"+strings.ToLower(rand.Text()), purposeRead
	client := host.Resource(WorkResource).Namespace(cluster)
	u := d.unstructured(rand.Text())
	// Without ACP's label, the adapter ignores it.
	u.SetLabels(nil)
	_, err := client.Create(ctx, u, metav1.CreateOptions{FieldManager: v1alpha1.ManagedBy})
	if apierrors.IsNotFound(err) {
		return "", ErrUnknownCluster
	}
	if err != nil {
		return "", fmt.Errorf("create ManifestWork %s/%s: %w", cluster, d.name, err)
	}
	defer func() {
		cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeCleanup)
		defer cancel()
		_ = client.Delete(cleaning, d.name, metav1.DeleteOptions{}) // it does nothing, and whoever sees it can delete it
	}()
	last := "it has not handled the ManifestWork"
	for backoff.Pause(ctx, clock.RealClock{}, probePoll) {
		found, err := client.Get(ctx, d.name, metav1.GetOptions{})
		if err != nil {
			last = err.Error()
			continue
		}
		switch w := parseWork(found); {
		case !w.applied:
		case w.refused != "":
			last = w.refused
		case w.available == available && w.answered():
			return types.UID(w.report.uid), nil
		}
	}
	return "", fmt.Errorf("%w: %s", ErrNoAnswer, last)
}

// Remaining returns the number of ManifestWorks of the engine in the namespace of a cluster, whatever they are for.
func Remaining(ctx context.Context, host dynamic.Interface, cluster string) (int, error) {
	n := 0
	works := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return host.Resource(WorkResource).Namespace(cluster).List(ctx, o)
	})
	err := works.EachListItem(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelManagedBy + "=" + v1alpha1.ManagedBy}, func(runtime.Object) error {
		n++
		return nil
	})
	if apierrors.IsNotFound(err) {
		return 0, nil // the kind is not installed any more
	}
	if err != nil {
		return 0, fmt.Errorf("list the ManifestWorks of %s: %w", cluster, err)
	}
	return n, nil
}

// Heartbeat is the last heartbeat that the adapter sent to the agent of a member, as the host has it.
type Heartbeat struct {
	// Answered reports whether the agent has answered it.
	Answered bool
	// since is the time of the first heartbeat without an answer when this one was sent.
	since time.Time
}

// ErrNotAsked means that the adapter has not sent a heartbeat to the agent of a member lately, so that nothing is known about the agent.
var ErrNotAsked = errors.New("the adapter does not ask the work agent: it does not run, was started just now, or has no rights in the member's namespace")

// heartbeatLifetime is the age up to which a heartbeat shows whether the agent is alive. The adapter replaces it in a quarter of this time, and the
// clock of the reader may differ from the adapter's.
const heartbeatLifetime = 3 * time.Minute

// ReadHeartbeat returns the heartbeat of a member. It returns ErrNotAsked if there is none, or only an old one.
func ReadHeartbeat(ctx context.Context, host dynamic.Interface, cluster string, now time.Time) (Heartbeat, error) {
	found, err := host.Resource(WorkResource).Namespace(cluster).Get(ctx, heartbeatName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Heartbeat{}, ErrNotAsked
	}
	if err != nil {
		return Heartbeat{}, fmt.Errorf("read ManifestWork %s/%s: %w", cluster, heartbeatName, err)
	}
	w := parseWork(found)
	if now.Sub(w.asked) > heartbeatLifetime {
		return Heartbeat{}, ErrNotAsked
	}
	return Heartbeat{Answered: w.answered() && w.applied, since: w.since}, nil
}

// Silent reports whether the agent did not answer in time, and since when it has been asked.
func (h Heartbeat) Silent(now time.Time) (silent bool, since time.Time) {
	return !h.Answered && now.Sub(h.since) > DefaultHeartbeats.Timeout, h.since
}
