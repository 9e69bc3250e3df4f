package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
)

// change is a single change of a policy: a grant or a revocation. It began with the request to the host, which then answered it, and was done
// when the last member had it.
type change struct {
	give                  bool
	began, answered, done time.Time
}

// recording is the instant at which the host had a version of a record.
type recording struct {
	at      time.Time
	granted bool
}

// followRecord watches the record of an object on the host until the context ends, and returns what returns its versions until now.
func (s *scene) followRecord(ctx context.Context, object string) (func() []recording, error) {
	client := s.host.Resource(federated)
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", object).String()}
	now, err := client.List(ctx, only)
	if err != nil {
		return nil, fmt.Errorf("read the record of %s: %w", object, err)
	}
	only.ResourceVersion = now.GetResourceVersion()
	w, err := client.Watch(ctx, only)
	if err != nil {
		return nil, fmt.Errorf("watch the record of %s: %w", object, err)
	}
	var mu sync.Mutex
	var out []recording
	go func() {
		defer w.Stop()
		for event := range w.ResultChan() {
			at := time.Now()
			u, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			spec, err := json.Marshal(u.Object["spec"])
			if err != nil {
				continue
			}
			mu.Lock()
			out = append(out, recording{at, strings.Contains(string(spec), `"`+grantedApp+`"`)})
			mu.Unlock()
		}
	}()
	return func() []recording {
		mu.Lock()
		defer mu.Unlock()
		return append([]recording{}, out...)
	}, nil
}

// printStages prints how the time of changes divides: until the host answered, until the record on the host had the change, and until the
// last member had it.
func printStages(out io.Writer, changes []change, records []recording) error {
	var answer, record, members []time.Duration
	for _, c := range changes {
		at := time.Time{}
		for _, r := range records {
			if r.granted == c.give && r.at.After(c.began) && !r.at.After(c.done) {
				at = r.at
				break
			}
		}
		if at.IsZero() {
			continue // the watches of the record and of the members are not ordered
		}
		answer = append(answer, c.answered.Sub(c.began))
		record = append(record, at.Sub(c.answered))
		members = append(members, c.done.Sub(at))
	}
	if 2*len(answer) < len(changes) {
		return errors.New("the versions of the record do not belong to the changes")
	}
	for _, stage := range []struct {
		name  string
		times []time.Duration
	}{{"answer", answer}, {"record", record}, {"members", members}} {
		for _, q := range []struct {
			name string
			of   float64
		}{{"p50", 0.50}, {"p99", 0.99}} {
			fmt.Fprintf(out, "bench push_direct_%s_%s %.0f ms\n", stage.name, q.name, Millis(Quantile(stage.times, q.of)))
		}
	}
	return nil
}
