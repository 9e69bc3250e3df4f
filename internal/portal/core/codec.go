package core

import (
	"crypto/sha256"
	"maps"
	"time"

	"github.com/alexedwards/scs/v2"
	lru "github.com/hashicorp/golang-lru/v2"
)

// cachedSessions is the number of cached sessions, some megabytes.
const cachedSessions = 4096

// codec is the codec of the session manager with a cache of decoded sessions. gob builds a new decoder for each session, which
// costs more than everything else about it. The store is still read on each request; only equal data is not decoded twice.
type codec struct {
	scs.GobCodec
	cache *lru.Cache[[sha256.Size]byte, cachedSession] // by the hash of the data
}

type cachedSession struct {
	deadline time.Time
	values   map[string]any // is never changed
}

func newCodec() codec {
	cache, err := lru.New[[sha256.Size]byte, cachedSession](cachedSessions)
	if err != nil {
		panic(err) // only a size below one is an error
	}
	return codec{cache: cache}
}

// Decode implements scs.Codec.
func (x codec) Decode(data []byte) (time.Time, map[string]any, error) {
	key := sha256.Sum256(data)
	if s, ok := x.cache.Get(key); ok {
		return s.deadline, maps.Clone(s.values), nil
	}
	deadline, values, err := x.GobCodec.Decode(data)
	if err == nil {
		x.cache.Add(key, cachedSession{deadline, maps.Clone(values)})
	}
	return deadline, values, err
}
