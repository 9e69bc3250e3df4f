// Package traffic reads the lines of the playground's traffic file that clients in a mesh can make. The dataplane emulator defines and
// validates the file.
package traffic

import (
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// Line is one kind of connection: every source makes one per interval.
type Line struct {
	Name                string
	Source, Destination labels.Selector
	Clusters            []string
	Port                uint16
	Interval            time.Duration
	Jitter              float64
}

type fileLine struct {
	Name   string `json:"name"`
	Source struct {
		Clusters []string `json:"clusters"`
		Selector string   `json:"selector"`
	} `json:"source"`
	Destination struct {
		Selector string `json:"selector"`
	} `json:"destination"`
	Port      uint16  `json:"port"`
	Interval  string  `json:"interval"`
	Jitter    float64 `json:"jitter"`
	LongLived bool    `json:"longLived"`
}

// Load returns the lines of pods. Lines of addresses outside the fleet, scheduled lines, and connections that stay open are left out.
func Load(path string) ([]Line, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the traffic file: %w", err)
	}
	var file struct {
		Connections []fileLine `json:"connections"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("read the traffic file %s: %w", path, err)
	}
	var out []Line
	for _, in := range file.Connections {
		if in.Source.Selector == "" || in.Interval == "" || in.LongLived {
			continue
		}
		line := Line{Name: in.Name, Clusters: in.Source.Clusters, Port: in.Port, Jitter: in.Jitter}
		if line.Source, err = labels.Parse(in.Source.Selector); err != nil {
			return nil, fmt.Errorf("read %q in %s: %w", in.Name, path, err)
		}
		if line.Destination, err = labels.Parse(in.Destination.Selector); err != nil {
			return nil, fmt.Errorf("read %q in %s: %w", in.Name, path, err)
		}
		if line.Interval, err = time.ParseDuration(in.Interval); err != nil {
			return nil, fmt.Errorf("read %q in %s: %w", in.Name, path, err)
		}
		out = append(out, line)
	}
	return out, nil
}

// Pause returns the time until the next of n sources makes a connection.
func (l *Line) Pause(rate float64, n int) time.Duration {
	base := float64(l.Interval) / rate / float64(max(n, 1))
	return max(time.Duration(base*(1+l.Jitter*(2*rand.Float64()-1))), time.Millisecond) //nolint:gosec // not a secret
}
