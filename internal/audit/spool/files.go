package spool

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// A file holds one batch: a header and a body, each preceded by its length and checksum. If the body is damaged, the header says
// what is lost.
const (
	suffix         = ".batch"
	temporary      = ".tmp"
	partHeaderSize = 8 // length and checksum, 4 bytes each
	maxPart        = 1 << 30
)

var (
	errDamaged = errors.New("the checksum does not match")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// entry describes one file of the spool.
type entry struct {
	number uint64
	path   string
	size   int64
	header header
}

// header is the part of a file that describes its batch.
type header struct {
	ID     string `json:"id"`
	Holder string `json:"holder,omitempty"`
	// Counts are the connections in the batch's roll-ups, one item per cluster.
	Counts []clusterCount `json:"counts,omitempty"`
}

type clusterCount struct {
	Cluster string    `json:"cluster"`
	Count   int64     `json:"count"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
}

func headerOf(b *audit.Batch) header {
	h := header{ID: b.ID, Holder: b.Holder}
	for i := range b.Rollups {
		r := &b.Rollups[i]
		if r.Count == 0 {
			continue // nothing is counted, so nothing can be lost
		}
		at := slices.IndexFunc(h.Counts, func(c clusterCount) bool { return c.Cluster == r.Cluster })
		if at < 0 {
			h.Counts = append(h.Counts, clusterCount{r.Cluster, r.Count, r.FirstSeen, r.LastSeen})
			continue
		}
		c := &h.Counts[at]
		c.Count += r.Count
		if r.FirstSeen.Before(c.From) {
			c.From = r.FirstSeen
		}
		if r.LastSeen.After(c.To) {
			c.To = r.LastSeen
		}
	}
	return h
}

// lossBatch returns the batch that is stored in place of one whose body is damaged: it records the connections of the header as
// lost.
func (e *entry) lossBatch() *audit.Batch {
	b := &audit.Batch{ID: cmp.Or(e.header.ID, filepath.Base(e.path)), Holder: e.header.Holder}
	for _, c := range e.header.Counts {
		b.Losses = append(b.Losses, audit.Loss{Cluster: c.Cluster, Reason: audit.LossStore, Count: c.Count, From: c.From, To: c.To})
	}
	return b
}

// load lists the files of the spool and removes unfinished ones. It was never reported to the caller of Append that these were stored.
func (s *Spool) load() error {
	if err := os.MkdirAll(s.cfg.Dir, 0o700); err != nil {
		return err
	}
	files, err := os.ReadDir(s.cfg.Dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(s.cfg.Dir, f.Name())
		if strings.HasSuffix(f.Name(), temporary) {
			if err := os.Remove(path); err != nil {
				return err
			}
			continue
		}
		number, err := strconv.ParseUint(strings.TrimSuffix(f.Name(), suffix), 10, 64)
		if err != nil || !strings.HasSuffix(f.Name(), suffix) {
			continue
		}
		info, err := f.Info()
		if err != nil {
			return err
		}
		e := entry{number: number, path: path, size: info.Size()}
		if data, err := os.ReadFile(path); err == nil {
			if h, _, err := cutPart(data); err == nil {
				_ = json.Unmarshal(h, &e.header) // the checksum has been verified
			}
		}
		s.queue = append(s.queue, e)
		s.bytes += e.size
		s.next = max(s.next, number+1)
	}
	slices.SortFunc(s.queue, func(a, b entry) int { return cmp.Compare(a.number, b.number) })
	s.metrics.set(len(s.queue), s.bytes)
	return nil
}

// cutPart verifies the first part of the data, and returns its content and the data that follows it.
func cutPart(data []byte) (content, rest []byte, err error) {
	if len(data) < partHeaderSize {
		return nil, nil, errDamaged
	}
	n := int64(binary.BigEndian.Uint32(data))
	if n > maxPart || n > int64(len(data)-partHeaderSize) {
		return nil, nil, errDamaged
	}
	content, rest = data[partHeaderSize:partHeaderSize+n], data[partHeaderSize+n:]
	if crc32.Checksum(content, castagnoli) != binary.BigEndian.Uint32(data[4:]) {
		return nil, nil, errDamaged
	}
	return content, rest, nil
}

func appendPart(b, content []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(content)))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(content, castagnoli))
	return append(b, content...)
}

// storedBatch is a batch as it is encoded. The identities of seen events are most of it, so they are grouped.
type storedBatch struct {
	Batch audit.Batch
	Seen  []seenGroup
}

type seenGroup struct {
	Source string
	Time   time.Time
	IDs    []uint64
}

func encode(b *audit.Batch) ([]byte, error) {
	v := storedBatch{Batch: *b}
	v.Batch.Seen = nil
	at := map[audit.SeenEvent]int{}
	for _, e := range b.Seen {
		k := audit.SeenEvent{Source: e.Source, Time: e.Time}
		i, ok := at[k]
		if !ok {
			i = len(v.Seen)
			at[k] = i
			v.Seen = append(v.Seen, seenGroup{Source: e.Source, Time: e.Time})
		}
		v.Seen[i].IDs = append(v.Seen[i].IDs, e.ID)
	}
	var body bytes.Buffer
	z, err := gzip.NewWriterLevel(&body, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(gob.NewEncoder(z).Encode(&v), z.Close()); err != nil {
		return nil, err
	}
	h, err := json.Marshal(headerOf(b))
	if err != nil {
		return nil, err
	}
	return appendPart(appendPart(nil, h), body.Bytes()), nil
}

func decode(data []byte) (*audit.Batch, error) {
	_, rest, err := cutPart(data)
	if err != nil {
		return nil, err
	}
	body, _, err := cutPart(rest)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	defer z.Close()
	var v storedBatch
	if err := gob.NewDecoder(z).Decode(&v); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	for _, t := range v.Seen {
		for _, id := range t.IDs {
			v.Batch.Seen = append(v.Batch.Seen, audit.SeenEvent{Source: t.Source, Time: t.Time, ID: id})
		}
	}
	return &v.Batch, nil
}

// enqueue writes a batch to a new file. The file is complete or does not exist.
func (s *Spool) enqueue(b *audit.Batch) error {
	data, err := encode(b)
	if err != nil {
		return fmt.Errorf("encode a batch for the spool: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes+int64(len(data)) > s.cfg.MaxBytes {
		s.metrics.rejected.Inc()
		return fmt.Errorf("%w: %d bytes of %d are used: bring the store back, or give the spool more room", ErrFull, s.bytes, s.cfg.MaxBytes)
	}
	e := entry{number: s.next, path: filepath.Join(s.cfg.Dir, fmt.Sprintf("%020d%s", s.next, suffix)), size: int64(len(data)), header: headerOf(b)}
	if err := write(e.path, data); err != nil {
		s.metrics.rejected.Inc()
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	s.next++
	s.queue = append(s.queue, e)
	s.bytes += e.size
	s.metrics.set(len(s.queue), s.bytes)
	return nil
}

func write(path string, data []byte) (err error) {
	f, err := os.OpenFile(path+temporary, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+temporary, path)
	}
	if err != nil {
		return errors.Join(err, removeFile(path+temporary))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// read returns the batch of an entry, or an error that wraps errDamaged if the file is missing or its content differs from what
// was written.
func (s *Spool) read(e entry) (*audit.Batch, error) {
	data, err := os.ReadFile(e.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the spool: %w", err)
	}
	return decode(data)
}

// dequeue deletes the file of the entry, which must be the oldest, and removes it from the queue.
func (s *Spool) dequeue(e entry) error {
	if err := removeFile(e.path); err != nil {
		return fmt.Errorf("remove a batch from the spool: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = s.queue[1:]
	s.bytes -= e.size
	s.metrics.set(len(s.queue), s.bytes)
	return nil
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
