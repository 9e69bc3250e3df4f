package answerapi

import (
	"fmt"
	"testing"
	"time"
)

func TestMemory(t *testing.T) {
	var m memory
	now := time.Unix(1_800_000_000, 0)
	if !m.first("a", now) || m.first("a", now.Add(10*time.Minute)) || !m.first("b", now) {
		t.Error("a request is new once")
	}
	if !m.first("a", now.Add(remembered)) {
		t.Error("a request is remembered longer than its signature is valid")
	}
	for i := range maxRemembered {
		m.first(fmt.Sprint("x", i), now.Add(remembered))
	}
	if len(m.at) > maxRemembered || m.first("one more", now.Add(remembered)) {
		t.Errorf("the memory has %d entries and takes more", len(m.at))
	}
	if !m.first("later", now.Add(2*remembered)) {
		t.Error("a full memory never takes requests again")
	}
}

func FuzzParseAnswer(f *testing.F) {
	f.Add([]byte(`{"ticket":"T-1","version":1,"digest":"d","token":"t","expires":"2026-03-02T10:00:00Z","decision":"approve","person":{"id":"a"}}`))
	f.Add([]byte(`{"decision":"reject","comment":"no","person":{"email":"a@example.com"}}`))
	f.Add([]byte(`{"decision":"reject","Decision":"approve"}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		x, err := ParseAnswer(body)
		if err == nil && (x.Decision != decisionApprove && x.Decision != decisionReject || (x.Person.ID == "") == (x.Person.Email == "")) {
			t.Errorf("%+v", x)
		}
	})
}
