package memberapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// encoder returns the encoder for the format that the client accepts.
func (q *request) encoder() (encode func(*object, []byte) []byte, metadataOnly bool) {
	for accepted := range strings.SplitSeq(q.Header.Get("Accept"), ",") {
		if strings.HasPrefix(strings.TrimSpace(accepted), "application/json") && strings.Contains(accepted, "as=PartialObjectMetadata") {
			return (*object).encodeMetadata, true
		}
	}
	return (*object).encode, false
}

func (m *Member) get(w http.ResponseWriter, q *request) error {
	o := q.store.get(keyOf(q.namespace, q.name))
	if o == nil {
		return q.notFound()
	}
	encode, _ := q.encoder()
	write(w, http.StatusOK, encode(o, nil))
	return nil
}

func (q *request) notFound() error {
	return apierrors.NewNotFound(q.store.resource.GroupResource(), q.name)
}

// selected returns the condition of the request's selectors. A field that is not one of the metadata is compared with "".
func (q *request) selected() (func(*object) bool, error) {
	byLabel, err := labels.Parse(q.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(q.URL.Query().Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return func(o *object) bool {
		return (byLabel.Empty() || byLabel.Matches(o.labels)) &&
			(byField.Empty() || byField.Matches(fields.Set{"metadata.name": o.name, "metadata.namespace": o.namespace}))
	}, nil
}

// list answers with a page. Later pages show the objects as they are then; the version is that of the first page, so that a watch from
// there repeats what changed meanwhile.
func (m *Member) list(w http.ResponseWriter, q *request) error {
	is, err := q.selected()
	if err != nil {
		return err
	}
	limit, _ := strconv.Atoi(q.URL.Query().Get("limit")) // absent means no limit
	after, version, err := parseContinue(q.URL.Query().Get("continue"))
	if err != nil {
		return err
	}
	objects, more, now := q.store.list(q.namespace, after, limit, is)
	if version == 0 {
		version = now
	}
	next := ""
	if more {
		next = formatContinue(objects[len(objects)-1].key(), version)
	}
	encode, metadataOnly := q.encoder()
	apiVersion, kind := q.store.resource.GroupVersion().String(), q.store.resource.Kind
	switch {
	case metadataOnly:
		apiVersion, kind = "meta.k8s.io/v1", "PartialObjectMetadata"
	case !q.store.resource.custom():
		encode = (*object).encodeItem
	}
	body := fmt.Appendf(nil, `{"apiVersion":%q,"kind":"%sList","metadata":{"continue":%q,"resourceVersion":"%d"},"items":[`, apiVersion, kind, next, version)
	for i, o := range objects {
		if i > 0 {
			body = append(body, ',')
		}
		body = encode(o, body)
	}
	write(w, http.StatusOK, append(body, "]}"...))
	return nil
}

func formatContinue(after string, version uint64) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", version, after))
}

func parseContinue(token string) (after string, version uint64, err error) {
	if token == "" {
		return "", 0, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", 0, apierrors.NewBadRequest("continue key is not valid: " + err.Error())
	}
	number, after, _ := strings.Cut(string(raw), " ")
	if version, err = strconv.ParseUint(number, 10, 64); err != nil {
		return "", 0, apierrors.NewBadRequest("continue key is not valid: " + err.Error())
	}
	return after, version, nil
}

// bookmarkInterval is the time between two bookmarks of a watch.
const bookmarkInterval = time.Minute

// watch sends the changes after a version, or, without a version, first all objects.
func (m *Member) watch(w http.ResponseWriter, q *request) error {
	is, err := q.selected()
	if err != nil {
		return err
	}
	seconds, _ := strconv.ParseInt(q.URL.Query().Get("timeoutSeconds"), 10, 64) // absent means no limit
	ctx, cancel := contextOf(q.Context(), seconds)
	defer cancel()
	stream := &eventStream{w: w, flush: http.NewResponseController(w), store: q.store, namespace: q.namespace, is: is}
	stream.encode, _ = q.encoder()
	w.Header().Set("Content-Type", "application/json")
	if asked := q.URL.Query().Get("resourceVersion"); asked != "" && asked != "0" {
		if stream.version, err = strconv.ParseUint(asked, 10, 64); err != nil {
			return apierrors.NewBadRequest("resourceVersion: " + err.Error())
		}
	} else if !stream.all() {
		return nil
	}
	if stream.flush.Flush() != nil {
		return nil
	}
	m.stream(ctx, stream, isTrue(q.URL.Query().Get("allowWatchBookmarks")))
	return nil
}

func (m *Member) stream(ctx context.Context, s *eventStream, bookmarks bool) {
	mark := time.NewTicker(bookmarkInterval)
	defer mark.Stop()
	for {
		events, next, err := s.store.since(s.version)
		if err != nil {
			s.fail(err)
			return
		}
		if len(events) > 0 {
			if !m.wait(ctx) || !s.send(events) {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-next:
		case <-mark.C:
			if bookmarks && (!m.wait(ctx) || !s.bookmark()) {
				return
			}
		}
	}
}

// eventStream writes events to a client.
type eventStream struct {
	w         http.ResponseWriter
	flush     *http.ResponseController
	store     *store
	namespace string
	is        func(*object) bool
	encode    func(*object, []byte) []byte
	version   uint64
	buffer    bytes.Buffer
}

// all sends every object as an added one.
func (s *eventStream) all() bool {
	objects, _, version := s.store.list(s.namespace, "", 0, s.is)
	s.version = version
	for _, o := range objects {
		s.add(added, s.encode(o, nil))
	}
	return s.write()
}

func (s *eventStream) send(events []event) bool {
	for _, e := range events {
		s.version = e.version
		if (s.namespace == "" || s.namespace == e.namespace) && s.is(e.object) {
			s.add(e.kind, s.encode(e.object, nil))
		}
	}
	return s.write()
}

// bookmark sends the version up to which everything was sent. Other kinds may have newer versions.
func (s *eventStream) bookmark() bool {
	r := s.store.resource
	s.add("BOOKMARK", fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"creationTimestamp":null,"resourceVersion":"%d"}}`,
		r.GroupVersion().String(), r.Kind, s.version))
	return s.write()
}

func (s *eventStream) fail(err error) {
	body, encodeErr := encodeStatusOf(err)
	if encodeErr == nil {
		s.add("ERROR", body)
		s.write()
	}
}

func (s *eventStream) add(kind string, object []byte) {
	fmt.Fprintf(&s.buffer, `{"type":%q,"object":`, kind)
	s.buffer.Write(object)
	s.buffer.WriteString("}\n")
}

func (s *eventStream) write() bool {
	defer s.buffer.Reset()
	_, err := s.w.Write(s.buffer.Bytes())
	return err == nil && s.flush.Flush() == nil
}
