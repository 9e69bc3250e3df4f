package bench

import (
	"strings"
	"testing"
	"time"
)

// TestStages checks how the times of changes divide, without a change whose record was seen after the members.
func TestStages(t *testing.T) {
	began := time.Unix(1000, 0)
	after := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	changes := []change{
		{give: false, began: after(0), answered: after(5), done: after(40)},
		{give: true, began: after(100), answered: after(105), done: after(140)},
		{give: false, began: after(200), answered: after(205), done: after(240)},
	}
	records := []recording{{after(20), false}, {after(115), false}, {after(120), true}, {after(241), false}}
	var out strings.Builder
	if err := printStages(&out, changes, records); err != nil {
		t.Fatal(err)
	}
	want := `bench push_direct_answer_p50 5 ms
bench push_direct_answer_p99 5 ms
bench push_direct_record_p50 15 ms
bench push_direct_record_p99 15 ms
bench push_direct_members_p50 20 ms
bench push_direct_members_p99 20 ms
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
	if err := printStages(&out, changes, nil); err == nil {
		t.Error("changes without records are accepted")
	}
}
