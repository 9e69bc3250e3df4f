package history

import (
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// line contains the fields of a line of the traffic file that the history needs. The dataplane emulator defines and validates the
// file.
type line struct {
	Name   string `json:"name"`
	Source struct {
		Clusters []string `json:"clusters"`
		Selector string   `json:"selector"`
		Address  string   `json:"address"`
	} `json:"source"`
	Destination struct {
		Selector string `json:"selector"`
	} `json:"destination"`
	Port        uint16  `json:"port"`
	Protocol    string  `json:"protocol"`
	Interval    string  `json:"interval"`
	Schedule    string  `json:"schedule"`
	Connections int     `json:"connections"`
	Jitter      float64 `json:"jitter"`
	LongLived   bool    `json:"longLived"`
	Since       string  `json:"since"`

	from, to labels.Selector
	address  netip.Addr
	interval time.Duration
	schedule cron.Schedule
	since    time.Duration
}

func loadLines(path string) ([]line, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the traffic file: %w", err)
	}
	lines, err := parseLines(data)
	if err != nil {
		return nil, fmt.Errorf("read the traffic file %s: %w", path, err)
	}
	return lines, nil
}

func parseLines(data []byte) ([]line, error) {
	var file struct {
		Connections []line `json:"connections"`
	}
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return nil, err
	}
	for i := range file.Connections {
		if err := file.Connections[i].complete(); err != nil {
			return nil, fmt.Errorf("connection %d (%q): %w", i+1, file.Connections[i].Name, err)
		}
	}
	return file.Connections, nil
}

func (l *line) complete() error {
	var err error
	if l.Source.Address != "" {
		if l.address, err = netip.ParseAddr(l.Source.Address); err != nil {
			return fmt.Errorf("source.address: %w", err)
		}
	} else if l.from, err = labels.Parse(l.Source.Selector); err != nil {
		return fmt.Errorf("source.selector: %w", err)
	}
	if l.to, err = labels.Parse(l.Destination.Selector); err != nil {
		return fmt.Errorf("destination.selector: %w", err)
	}
	if l.Schedule != "" {
		if l.schedule, err = cron.ParseStandard(l.Schedule); err != nil {
			return fmt.Errorf("schedule: %w", err)
		}
	} else if l.interval, err = time.ParseDuration(l.Interval); err != nil || l.interval <= 0 {
		return fmt.Errorf("interval must be a positive duration such as 1s, not %q", l.Interval)
	}
	if l.Since != "" {
		if l.since, err = time.ParseDuration(l.Since); err != nil || l.since <= 0 {
			return fmt.Errorf("since must be a positive duration such as 48h, not %q", l.Since)
		}
	}
	if l.Protocol == "" {
		l.Protocol = "TCP"
	}
	return nil
}
