package protectedresource

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/acp-io/acp/internal/federation"
)

func TestInFlight(t *testing.T) {
	object := func(name string, seen bool) *federation.Object {
		return &federation.Object{Meta: metav1.ObjectMeta{Name: name}, Propagation: federation.Propagation{Seen: seen}}
	}
	now := time.Unix(1e9, 0)
	for _, c := range []struct {
		reason  string
		written []string
		before  *federation.Object
		limit   time.Duration
		want    bool
	}{
		{"KubeFed is busy with it", []string{"a"}, object("a", false), time.Hour, true},
		{"KubeFed is done with it", []string{"a"}, object("a", true), time.Hour, false},
		{"it had its time", []string{"a"}, object("a", false), 0, false},
		{"another object was written", []string{"b"}, object("a", false), time.Hour, false},
		{"nothing was written by this process", nil, object("a", false), time.Hour, false},
	} {
		var s recentWrites
		for _, w := range c.written {
			s.written(w, now)
		}
		next := []*federation.Object{object("a", false)}
		if got := s.inFlight([]*federation.Object{c.before}, next, now, c.limit); got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
		if !c.want && len(c.written) > 0 && c.written[0] == "a" && len(s.wrote) > 0 {
			t.Errorf("%s: it is kept in mind", c.reason)
		}
	}
}
