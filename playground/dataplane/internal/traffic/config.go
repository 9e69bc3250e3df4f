// Package traffic generates the connections of the demo's pods to the pods of one member.
//
// The package defines the times of the connections. Other packages decide them.
package traffic

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/cilium/cilium/pkg/u8proto"
	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// Line is one kind of connection: every source makes one per interval to a destination in each member, or all sources together make
// a number of them at scheduled times.
type Line struct {
	Name string
	// SourceClusters is empty for all clusters. Either SourceSelector or SourceAddress is set.
	SourceClusters []string
	SourceSelector labels.Selector
	SourceAddress  string
	Destination    labels.Selector
	Protocol       u8proto.U8proto
	Port           uint16
	// Either Interval or Schedule is set. Connections is the number of connections at a scheduled time, per member.
	Interval    time.Duration
	Schedule    cron.Schedule
	Connections int
	// Jitter is the maximum relative deviation of a pause from the interval, from 0 to 1.
	Jitter float64
	// LongLived connections were opened before the observation: each interval shows a packet, never the opening.
	LongLived bool
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
	Port        uint16  `json:"port"`
	Protocol    string  `json:"protocol"`
	Interval    string  `json:"interval"`
	Schedule    string  `json:"schedule"`
	Connections int     `json:"connections"`
	Jitter      float64 `json:"jitter"`
	LongLived   bool    `json:"longLived"`
	// Since is used by the generated history of the playground, and not by the emulator.
	Since string `json:"since"`
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
	out := Line{Name: in.Name, SourceClusters: in.Source.Clusters, SourceAddress: in.Source.Address, Port: in.Port, Jitter: in.Jitter,
		Connections: in.Connections, LongLived: in.LongLived}
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
	if in.Jitter < 0 || in.Jitter > 1 {
		return out, fmt.Errorf("jitter must be from 0 to 1, not %g", in.Jitter)
	}
	return out, in.rhythm(&out)
}

// mostScheduled is the maximum number of connections per scheduled time.
const mostScheduled = 1000

func (in fileLine) rhythm(out *Line) error {
	if (in.Interval == "") == (in.Schedule == "") {
		return fmt.Errorf("it needs exactly one of interval and schedule")
	}
	var err error
	if in.Interval != "" {
		if out.Interval, err = time.ParseDuration(in.Interval); err != nil || out.Interval <= 0 {
			return fmt.Errorf("interval must be a positive duration such as 1s, not %q", in.Interval)
		}
		if in.Connections != 0 {
			return fmt.Errorf("connections belongs to a schedule, not to an interval")
		}
		return nil
	}
	if out.Schedule, err = cron.ParseStandard(in.Schedule); err != nil {
		return fmt.Errorf("schedule must be a cron expression such as \"0 2 * * 0\" (in UTC): %w", err)
	}
	if in.Connections < 1 || in.Connections > mostScheduled {
		return fmt.Errorf("connections must be from 1 to %d, not %d", mostScheduled, in.Connections)
	}
	if in.Jitter != 0 || in.LongLived {
		return fmt.Errorf("jitter and longLived belong to an interval, not to a schedule")
	}
	return nil
}
