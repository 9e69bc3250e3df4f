package host

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
)

// MemberEvent is an observation of the adapter in a member that the portal did not cause.
type MemberEvent struct {
	// ID is the UID of the Event. The same Event is reported again after a restart.
	ID string
	At time.Time
	// Resource is the name of the ProtectedResource, Reason the Event's, as MemberDrifted, and Cluster the member.
	Resource, Reason, Cluster string
	// Message is what was observed. An Event has only its English text; the code is that of the same text in the status of the
	// ProtectedResource. It is Verbatim if the status does not have the text, such as when the state has changed since.
	Message message.Message
}

const (
	// adapter is the reporter of the Events, in the namespace of Events about cluster-scoped objects.
	adapter         = "acp-adapter"
	eventsNamespace = metav1.NamespaceDefault
	// memberReason is the prefix of the reasons of the adapter's Events about one member (controllers/protectedresource).
	memberReason = "Member"
)

// memberEvent converts an Event. It returns false if it is not an Event of the adapter about a member.
func memberEvent(e *eventsv1.Event) (MemberEvent, bool) {
	if e.ReportingController != adapter || !strings.HasPrefix(e.Reason, memberReason) || e.Regarding.Kind != "ProtectedResource" || e.UID == "" {
		return MemberEvent{}, false
	}
	at := e.EventTime.Time
	if at.IsZero() {
		at = e.CreationTimestamp.Time
	}
	cluster, text, _ := strings.Cut(e.Note, ": ")
	return MemberEvent{ID: string(e.UID), At: at, Resource: e.Regarding.Name, Reason: e.Reason, Cluster: cluster, Message: message.OfText(text)}, true
}

// addCode returns an event with the code that the status of its ProtectedResource has for the text. It returns false if the status does
// not have the text, which the adapter writes at the same time as the Event.
func addCode(e MemberEvent, o *v1alpha1.ProtectedResource) (MemberEvent, bool) {
	for c := range o.Status.All() {
		if string(c.Name) == e.Cluster && c.MessageCode != "" && c.Message == e.Message.Text {
			e.Message = message.Restore(c.Message, c.MessageCode, c.MessageParams)
			return e, true
		}
	}
	return e, false
}

// FollowMemberEvents follows the adapter's Events about members until the context ends, and calls record for each one. It repeats
// failed calls, and calls record again for existing Events after a restart. Events are stored for an hour: what happened while no
// portal ran for longer is not recorded.
func (h *Host) FollowMemberEvents(ctx context.Context, record func(context.Context, MemberEvent) error) error {
	clients, err := kubernetes.NewForConfig(h.config)
	if err != nil {
		return fmt.Errorf("make a client for events: %w", err)
	}
	return follow(ctx, clients, h.addStatusCode, record, h.log)
}

// addStatusCode returns an event with the code of its text, see addCode.
func (h *Host) addStatusCode(ctx context.Context, e MemberEvent) (MemberEvent, bool) {
	var o v1alpha1.ProtectedResource
	if !h.Ready() || h.cache.Get(ctx, client.ObjectKey{Name: e.Resource}, &o) != nil {
		return e, false
	}
	return addCode(e, &o)
}

const (
	// codeDelay and mostCodeDelays bound how long an Event waits for the status that has the code of its text.
	codeDelay      = 500 * time.Millisecond
	mostCodeDelays = 10
)

func follow(
	ctx context.Context,
	clients kubernetes.Interface,
	addStatusCode func(context.Context, MemberEvent) (MemberEvent, bool),
	record func(context.Context, MemberEvent) error,
	log *slog.Logger,
) error {
	delays := map[string]int{}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute))
	lw := toolscache.NewFilteredListWatchFromClient(clients.EventsV1().RESTClient(), "events", eventsNamespace, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("regarding.kind", "ProtectedResource").String()
	})
	informer := toolscache.NewSharedIndexInformer(lw, &eventsv1.Event{}, 0, nil)
	add := func(o any) {
		if e, ok := o.(*eventsv1.Event); ok {
			if _, about := memberEvent(e); about {
				queue.Add(e.Name)
			}
		}
	}
	// An Event that is repeated within minutes increases the count of the existing one.
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: add}); err != nil {
		return fmt.Errorf("watch events: %w", err)
	}
	go informer.Run(ctx.Done())
	go func() {
		<-ctx.Done()
		queue.ShutDown()
	}()
	for {
		name, over := queue.Get()
		if over {
			return nil
		}
		o, _, err := informer.GetIndexer().GetByKey(eventsNamespace + "/" + name)
		if e, ok := o.(*eventsv1.Event); ok && err == nil {
			one, _ := memberEvent(e)
			one, coded := addStatusCode(ctx, one)
			if !coded && delays[name] < mostCodeDelays {
				delays[name]++
				queue.AddAfter(name, codeDelay)
				queue.Done(name)
				continue
			}
			err = record(ctx, one)
		}
		if err == nil {
			delete(delays, name)
		}
		if err != nil && ctx.Err() == nil {
			log.Error("an event about a member could not be recorded in the ledger; retrying", "event", name, "error", err)
			queue.AddRateLimited(name)
		} else {
			queue.Forget(name)
		}
		queue.Done(name)
	}
}
