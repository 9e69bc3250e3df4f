// Package traffic makes the connections of the demo's pods to the pods of one member.
//
// It owns the rhythm. What becomes of a connection is decided elsewhere.
package traffic

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/cilium/cilium/pkg/u8proto"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// Line is one kind of connection: every source makes one per interval to a destination in each member.
type Line struct {
	Name string
	// SourceClusters are all when empty. Either SourceSelector or SourceAddress is set.
	SourceClusters []string
	SourceSelector labels.Selector
	SourceAddress  string
	Destination    labels.Selector
	Protocol       u8proto.U8proto
	Port           uint16
	Interval       time.Duration
	// Jitter is the part of the interval, from 0 to 1, by which a pause may be shorter or longer.
	Jitter float64
}

type fileLine struct {
	Name   string `json:"name"`
	Source struct {
		Clusters []string `json:"clusters"`
		Selector string   `json:"selector"`
		Address  string   `json:"address"`
	} `json:"source"`
	Destination struct {
		Selector string `json:"selector"`
	} `json:"destination"`
	Port     uint16  `json:"port"`
	Protocol string  `json:"protocol"`
	Interval string  `json:"interval"`
	Jitter   float64 `json:"jitter"`
}

// Load reads a traffic file.
func Load(path string) ([]Line, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the traffic file: %w", err)
	}
	lines, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("read the traffic file %s: %w", path, err)
	}
	return lines, nil
}

// Parse reads traffic lines.
func Parse(data []byte) ([]Line, error) {
	var file struct {
		Connections []fileLine `json:"connections"`
	}
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return nil, err
	}
	out := make([]Line, 0, len(file.Connections))
	for i, in := range file.Connections {
		line, err := in.line()
		if err != nil {
			return nil, fmt.Errorf("connection %d (%q): %w", i+1, in.Name, err)
		}
		out = append(out, line)
	}
	return out, nil
}

func (in fileLine) line() (Line, error) {
	out := Line{Name: in.Name, SourceClusters: in.Source.Clusters, SourceAddress: in.Source.Address, Port: in.Port, Jitter: in.Jitter}
	if (in.Source.Selector == "") == (in.Source.Address == "") {
		return out, fmt.Errorf("source needs exactly one of selector and address")
	}
	var err error
	if in.Source.Address != "" {
		if _, err := netip.ParseAddr(in.Source.Address); err != nil {
			return out, fmt.Errorf("source.address: %w", err)
		}
	} else if out.SourceSelector, err = labels.Parse(in.Source.Selector); err != nil {
		return out, fmt.Errorf("source.selector: %w", err)
	}
	if in.Destination.Selector == "" {
		return out, fmt.Errorf("destination.selector is missing")
	}
	if out.Destination, err = labels.Parse(in.Destination.Selector); err != nil {
		return out, fmt.Errorf("destination.selector: %w", err)
	}
	if in.Port == 0 {
		return out, fmt.Errorf("port must be from 1 to 65535")
	}
	switch strings.ToUpper(in.Protocol) {
	case "", "TCP":
		out.Protocol = u8proto.TCP
	case "UDP":
		out.Protocol = u8proto.UDP
	case "SCTP":
		out.Protocol = u8proto.SCTP
	default:
		return out, fmt.Errorf("protocol must be TCP, UDP or SCTP, not %q", in.Protocol)
	}
	if out.Interval, err = time.ParseDuration(in.Interval); err != nil || out.Interval <= 0 {
		return out, fmt.Errorf("interval must be a positive duration such as 1s, not %q", in.Interval)
	}
	if in.Jitter < 0 || in.Jitter > 1 {
		return out, fmt.Errorf("jitter must be from 0 to 1, not %g", in.Jitter)
	}
	return out, nil
}
