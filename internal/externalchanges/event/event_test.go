package event_test

import (
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/acp-io/acp/internal/externalchanges/event"
)

func TestOnlyTheWebhooksEventsCount(t *testing.T) {
	c := event.Change{
		At:         time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC),
		User:       "alice",
		Kind:       "ProtectedResource",
		Name:       "bobs",
		UID:        "u1",
		Operation:  event.Update,
		Generation: 3,
		Digest:     "d",
	}
	if got, ok := event.Parse(event.Of(c, event.Namespace, "x"), event.Namespace); !ok || got != c {
		t.Errorf("Parse(Of(change)) = %+v, %v, want the change", got, ok)
	}
	for what, spoil := range map[string]func(*eventsv1.Event){
		"another namespace":  func(e *eventsv1.Event) { e.Namespace = "default" },
		"another controller": func(e *eventsv1.Event) { e.ReportingController = "acp-adapter" },
		"another reason":     func(e *eventsv1.Event) { e.Reason = "MemberDrifted" },
		"another kind":       func(e *eventsv1.Event) { e.Regarding.Kind = "Pod" },
		"no object":          func(e *eventsv1.Event) { e.Regarding.UID = "" },
		"no user":            func(e *eventsv1.Event) { delete(e.Annotations, "acp.io/user") },
		"a long user":        func(e *eventsv1.Event) { e.Annotations["acp.io/user"] = strings.Repeat("a", 300) },
		"no generation":      func(e *eventsv1.Event) { e.Annotations["acp.io/generation"] = "many" },
		"another operation":  func(e *eventsv1.Event) { e.Annotations["acp.io/operation"] = "CONNECT" },
	} {
		e := event.Of(c, event.Namespace, "x")
		spoil(e)
		if got, ok := event.Parse(e, event.Namespace); ok {
			t.Errorf("%s: Parse accepted %+v", what, got)
		}
	}
}

func TestTextIsBounded(t *testing.T) {
	c := event.Change{User: strings.Repeat("ä", 10_000) + "\xff", Kind: "ProtectedResource", Name: "bobs", UID: "u1", Operation: event.Update, Generation: 3}
	e := event.Of(c, event.Namespace, strings.Repeat("i", 1000))
	got, ok := event.Parse(e, event.Namespace)
	if !ok || len(got.User) > 256 || len(e.Note) > 1024 || len(e.ReportingInstance) > 128 {
		t.Errorf("got %d bytes of the user, %d of the note and %d of the instance, parsed: %v", len(got.User), len(e.Note), len(e.ReportingInstance), ok)
	}
}
