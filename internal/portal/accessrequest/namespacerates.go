package accessrequest

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// namespaceRates bounds how many objects of one namespace are handled in a second. It is for one worker.
type namespaceRates struct {
	limiters *lru.Cache[string, *rate.Limiter]
	delayed  int
}

func newNamespaceRates() *namespaceRates {
	limiters, err := lru.New[string, *rate.Limiter](maxNamespaces)
	if err != nil {
		panic(err) // the size is a positive constant
	}
	return &namespaceRates{limiters: limiters}
}

// delay returns 0 if an object of a namespace may be handled now, and otherwise after which time it is to be tried again. It waits for
// nothing, so that the objects of other namespaces are handled meanwhile.
func (n *namespaceRates) delay(namespace string, now time.Time) time.Duration {
	l, ok := n.limiters.Get(namespace)
	if !ok {
		l = rate.NewLimiter(namespacePerSecond, namespaceBurst)
		n.limiters.Add(namespace, l)
	}
	if l.AllowN(now, 1) {
		return 0
	}
	n.delayed++
	return leastDelay + time.Duration(n.delayed%delaySpread)*time.Second
}
