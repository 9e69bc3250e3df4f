// Package event defines the Kubernetes Events by which the adapter's webhook reports to the portal who changed an
// object of ACP. It performs no I/O.
package event

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/acp-io/acp/api/v1alpha1"
)

const (
	// Namespace is the namespace of the Events. With deploy/rbac/host only the adapter may create Events there, which
	// is why the names in them can be trusted; Events about cluster-scoped objects are otherwise in the namespace
	// default, where others write, too.
	Namespace = "acp-system"
	// Reason is the reason of all these Events, and Controller their reporting controller.
	Reason = "ObjectChanged"
	// Controller is the reporting controller of these Events.
	Controller = "acp-adapter-webhook"
)

const (
	annotationUser       = "acp.io/user"
	annotationOperation  = "acp.io/operation"
	annotationGeneration = "acp.io/generation"
	annotationSpec       = "acp.io/spec-sha256"
)

const (
	maxUser = 256
	maxNote = 1024
)

// Operation is an operation on an object.
type Operation string

// Operations, in the notation of admission reviews.
const (
	// Create is the creation of an object.
	Create Operation = "CREATE"
	// Update is an update of an object.
	Update Operation = "UPDATE"
	// Delete is the deletion of an object.
	Delete Operation = "DELETE"
)

// Kinds are the kinds whose changes are reported.
var Kinds = []string{"AccessControlPolicy", "ProtectedResource", "ResourceClass", "SubjectClass", "ApprovalPolicy", "Organization"}

// Change is a request that the webhook admitted. The webhook cannot know whether the API server then stored it.
type Change struct {
	At   time.Time
	User string
	// Kind, Name and UID identify the object.
	Kind, Name, UID string
	Operation       Operation
	// Generation is the generation that the request creates, and Digest the hash of its spec. For a deletion,
	// Generation is the last one and Digest is empty.
	Generation int64
	Digest     string
}

// Of returns the Event for a change. Values that a caller controls are cut to a bounded length.
func Of(c Change, namespace, instance string) *eventsv1.Event {
	user := clip(c.User, maxUser)
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "acp-change-", Namespace: namespace, Annotations: map[string]string{
			annotationUser: user, annotationOperation: string(c.Operation), annotationGeneration: strconv.FormatInt(c.Generation, 10), annotationSpec: c.Digest,
		}},
		EventTime: metav1.NewMicroTime(
			c.At,
		),
		ReportingController: Controller,
		ReportingInstance:   clip(instance, 128),
		Action:              string(c.Operation),
		Type:                corev1.EventTypeNormal,
		Reason:              Reason,
		Note:                clip(fmt.Sprintf("%s by %s", c.Operation, user), maxNote),
		// An Event must be in the namespace of its object, so the object is given the adapter's namespace.
		Regarding: corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: c.Kind, Name: c.Name, UID: types.UID(c.UID), Namespace: namespace},
	}
}

// Parse reads the change from an Event. It returns false if the Event is not one of the adapter's webhook in the namespace.
func Parse(e *eventsv1.Event, namespace string) (Change, bool) {
	generation, err := strconv.ParseInt(e.Annotations[annotationGeneration], 10, 64)
	c := Change{At: e.EventTime.Time, User: e.Annotations[annotationUser], Kind: e.Regarding.Kind, Name: e.Regarding.Name, UID: string(e.Regarding.UID),
		Operation: Operation(e.Annotations[annotationOperation]), Generation: generation, Digest: e.Annotations[annotationSpec]}
	known := e.Namespace == namespace && e.ReportingController == Controller && e.Reason == Reason && slices.Contains(Kinds, c.Kind) &&
		slices.Contains([]Operation{Create, Update, Delete}, c.Operation)
	if !known || err != nil || c.UID == "" || c.User == "" || len(c.User) > maxUser {
		return Change{}, false
	}
	return c, true
}

// Digest returns the SHA-256 of an object's spec. The object must be decoded into maps.
func Digest(object map[string]any) (string, error) {
	text, err := json.Marshal(object["spec"]) // The keys are sorted.
	if err != nil {
		return "", fmt.Errorf("encode a spec: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

func clip(s string, most int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-3], "") + "..."
}
