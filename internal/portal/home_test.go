package portal

import (
	"fmt"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/catalog"
)

// Of many applications the home page shows a few, and says how many it leaves out.
func TestHomeSaysWhatItLeavesOut(t *testing.T) {
	x := newSite(t)
	var owned []catalog.Entity
	for i := range homeApplications + 3 {
		e := catalog.Entity{ID: fmt.Sprint("app-", i), Name: fmt.Sprint("trnv1:rsc:trip-com:iam:sa:app/many-", i)}
		owned = append(owned, e)
		x.flows.see(time.Now().Add(-time.Hour), refused("m1", e.Name), int64(i+1))
	}
	owned = append(owned, catalog.Entity{ID: "quiet", Name: "trnv1:rsc:trip-com:iam:sa:app/quiet"})
	a := newAPI(x.Server, x.config)
	for n, want := range map[int]int{homeApplications: 0, homeApplications + 3: 3, homeApplications + 4: 3} {
		list, leftOut, known := a.deniedLately(t.Context(), x.Catalog(), owned[:n])
		if !known || leftOut != want || len(list) != homeApplications {
			t.Errorf("%d applications: %d rows, %d left out, want %d; known: %v", n, len(list), leftOut, want, known)
		}
	}
}
