package cli

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/acp-io/acp/internal/portalclient"
)

var errNoFlows = errors.New("the portal cannot read its flow store now: try again in a moment")

// query contains the window; without one, the portal uses the evidence window.
func (w *window) query(now time.Time, preset string) (url.Values, error) {
	q := url.Values{}
	if w.since == preset && w.until == "" {
		return q, nil
	}
	since, until, err := w.bounds(now)
	if err != nil {
		return nil, err
	}
	q.Set("since", since.UTC().Format(time.RFC3339))
	q.Set("until", until.UTC().Format(time.RFC3339))
	return q, nil
}

func seenCells(s portalclient.SeenEvidence) []string {
	return []string{fmt.Sprint(s.Count), moment(s.FirstSeen), moment(s.LastSeen), fmt.Sprintf("%d of %d", s.Days, s.DaysObserved), join(s.Clusters)}
}
