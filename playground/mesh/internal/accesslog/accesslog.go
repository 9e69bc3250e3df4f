// Package accesslog writes the access log of gRPC servers in the format that docs/flows.md describes for the proxies of Istio.
package accesslog

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Entry is one request. The names of its fields are those of docs/flows.md.
type Entry struct {
	StartTime               time.Time         `json:"start_time"`
	Duration                int64             `json:"duration"` // milliseconds
	Method                  string            `json:"method"`
	Path                    string            `json:"path"`
	Protocol                string            `json:"protocol"`
	ResponseCode            int               `json:"response_code"`
	ResponseCodeDetails     string            `json:"response_code_details"`
	UpstreamCluster         string            `json:"upstream_cluster"`
	DownstreamLocalAddress  string            `json:"downstream_local_address"`
	DownstreamRemoteAddress string            `json:"downstream_direct_remote_address"`
	SourcePrincipal         string            `json:"source_principal,omitempty"`
	DestinationPod          string            `json:"destination_pod"`
	DestinationNamespace    string            `json:"destination_namespace"`
	DestinationLabels       map[string]string `json:"destination_labels"`
}

// kept is the number of rotated files that are kept.
const kept = 2

// Log is a file that is rotated by renaming.
type Log struct {
	path string
	most int64

	mu   sync.Mutex
	file *os.File
	size int64
}

// Open opens the log for appending. It is rotated when it exceeds most bytes.
func Open(path string, most int64) (*Log, error) {
	l := &Log{path: path, most: most}
	return l, l.open()
}

func (l *Log) open() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the access log: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("stat the access log: %w", err)
	}
	l.file, l.size = file, info.Size()
	return nil
}

// Write appends an entry.
func (l *Log) Write(e *Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode an entry of the access log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(line)) > l.most {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	n, err := l.file.Write(append(line, '\n'))
	l.size += int64(n)
	if err != nil {
		return fmt.Errorf("write the access log: %w", err)
	}
	return nil
}

// rotate renames the file to NAME-TIME.EXT, and deletes the oldest files of the earlier rotations.
func (l *Log) rotate() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("close the access log: %w", err)
	}
	ext := filepath.Ext(l.path)
	stem := strings.TrimSuffix(l.path, ext)
	if err := os.Rename(l.path, stem+"-"+time.Now().UTC().Format("2006-01-02T15-04-05.000000000")+ext); err != nil {
		return fmt.Errorf("rotate the access log: %w", err)
	}
	rotated, err := filepath.Glob(stem + "-*" + ext)
	if err != nil {
		return fmt.Errorf("list the rotated access logs: %w", err)
	}
	slices.Sort(rotated)
	for _, old := range rotated[:max(0, len(rotated)-kept)] {
		if err := os.Remove(old); err != nil {
			return fmt.Errorf("delete a rotated access log: %w", err)
		}
	}
	return l.open()
}

// Close closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
