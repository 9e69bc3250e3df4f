package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/portalclient"
)

// What the commands about flows read of the portal's answers (api/openapi.yaml); -o json and yaml show all of them.
type (
	portalName struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	portalSeen struct {
		Count        int64     `json:"count"`
		First        time.Time `json:"firstSeen"`
		Last         time.Time `json:"lastSeen"`
		Days         int       `json:"days"`
		DaysObserved int       `json:"daysObserved"`
		Clusters     []string  `json:"clusters"`
	}
	portalProposal struct {
		Lines []struct {
			Subject  portalName `json:"subject"`
			Action   string     `json:"action"`
			State    string     `json:"state"`
			Evidence portalSeen `json:"evidence"`
		} `json:"lines"`
		Unattributed []struct {
			Source   string     `json:"source"`
			Ports    []string   `json:"ports"`
			Evidence portalSeen `json:"evidence"`
		} `json:"unattributed"`
		UnknownPorts []struct {
			Port     uint16     `json:"port"`
			Protocol string     `json:"protocol"`
			Source   string     `json:"source"`
			Evidence portalSeen `json:"evidence"`
		} `json:"unknownPorts"`
		YAML string `json:"yaml"`
	}
	portalImpactLine struct {
		Cluster  string     `json:"cluster"`
		Subject  portalName `json:"subject"`
		Resource portalName `json:"resource"`
		Action   string     `json:"action"`
		Port     uint16     `json:"port"`
		Protocol string     `json:"protocol"`
		Count    int64      `json:"count"`
		First    time.Time  `json:"firstSeen"`
		Last     time.Time  `json:"lastSeen"`
		Before   string     `json:"before"`
		After    string     `json:"after"`
	}
	portalImpact struct {
		Available    bool                `json:"available"`
		Message      string              `json:"message"`
		NewlyAllowed []portalImpactLine  `json:"newlyAllowed"`
		NewlyDenied  []portalImpactLine  `json:"newlyDenied"`
		Uncertain    []insight.Uncertain `json:"uncertain"`
	}
	portalUnused struct {
		Items []struct {
			Policy    string       `json:"policy"`
			SID       string       `json:"sid"`
			Subjects  []portalName `json:"subjects"`
			Actions   []string     `json:"actions"`
			Resources []portalName `json:"resources"`
			LastUsed  time.Time    `json:"lastUsed"`
			Why       string       `json:"why"`
		} `json:"items"`
		Unobserved []string `json:"unobserved"`
		Next       string   `json:"nextCursor"`
	}
	portalFlow struct {
		Cluster  string     `json:"cluster"`
		Subject  portalName `json:"subject"`
		Resource portalName `json:"resource"`
		Port     uint16     `json:"port"`
		Protocol string     `json:"protocol"`
		Decision string     `json:"decision"`
		Verdict  string     `json:"verdict"`
		Policy   string     `json:"policy"`
		SID      string     `json:"sid"`
		Ticket   string     `json:"ticket"`
		Count    int64      `json:"count"`
		First    time.Time  `json:"firstSeen"`
		Last     time.Time  `json:"lastSeen"`
	}
	portalFlows struct {
		Available bool              `json:"available"`
		Items     []json.RawMessage `json:"items"`
		Next      string            `json:"nextCursor"`
	}
)

var errNoFlows = errors.New("the portal cannot read its flow store now: try again in a moment")

// get reads an answer twice: as it came, for -o json and yaml, and what a table needs of it.
func get(ctx context.Context, c *portalclient.Client, path string, query url.Values, out any) (json.RawMessage, error) {
	var all json.RawMessage
	if err := c.Get(ctx, path, query, &all); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(all, out); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", path, err)
	}
	return all, nil
}

// query has the window; the portal takes the evidence window when none was asked for.
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

func (s portalSeen) cells() []string {
	return []string{fmt.Sprint(s.Count), moment(s.First), moment(s.Last), fmt.Sprintf("%d of %d", s.Days, s.DaysObserved), join(s.Clusters)}
}
