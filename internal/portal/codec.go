package portal

import (
	"crypto/sha256"
	"maps"
	"time"

	"github.com/alexedwards/scs/v2"
	"k8s.io/utils/lru"
)

// keepSessions is the number of cached sessions, some megabytes.
const keepSessions = 4096

// codec is the codec of the session manager with a cache of decoded sessions. gob builds a new decoder for each session, which
// costs more than everything else about it. The store is still read on each request; only equal data is not decoded twice.
type codec struct {
	scs.GobCodec
	read *lru.Cache // by the hash of the data
}

type readSession struct {
	deadline time.Time
	values   map[string]any // nobody changes it or what is in it
}

func newCodec() codec { return codec{read: lru.New(keepSessions)} }

// Decode implements scs.Codec.
func (x codec) Decode(data []byte) (time.Time, map[string]any, error) {
	key := sha256.Sum256(data)
	if v, ok := x.read.Get(key); ok {
		s := v.(readSession)
		return s.deadline, maps.Clone(s.values), nil
	}
	deadline, values, err := x.GobCodec.Decode(data)
	if err == nil {
		x.read.Add(key, readSession{deadline, maps.Clone(values)})
	}
	return deadline, values, err
}
