package federation

import (
	"errors"
	"fmt"
	"time"
)

const (
	// maxObjects is the largest number of objects of one kind in one member. ACP aims at 10,000 resources in a member, and a Cilium cluster has at most
	// 65,536 identities, of which there may be more than of any other kind.
	maxObjects = 100_000
	// maxKept is about the largest number of bytes that is kept of these objects: an average of 26 KB for each of 10,000 policies. Policies that ACP
	// wrote count little, because only what the read-back compares is kept of them.
	maxKept = 256 << 20
	// boundedRetryDelay is the time between a list that exceeded a limit and the next one. Such a list takes as long as that of the largest member, and
	// the same answer can be expected again.
	boundedRetryDelay = time.Minute
)

var (
	// errTooManyObjects means that a member has more objects of a kind than are read.
	errTooManyObjects = errors.New("there are too many objects")
	// errObjectsTooLarge means that a member's objects of a kind are larger than what is kept of them.
	errObjectsTooLarge = errors.New("the objects are too large")
)

// bounds limit the objects of a Watch, which otherwise grow with what the API server answers. Zero means no limit.
type bounds struct {
	objects int
	bytes   int
}

// memberBounds are the limits of one kind in one member.
var memberBounds = bounds{objects: maxObjects, bytes: maxKept}

// check returns an error if a number of objects, or of bytes that are kept of them, exceeds a limit.
func (b bounds) check(objects, bytes int) error {
	switch {
	case b.objects > 0 && objects > b.objects:
		return fmt.Errorf("%w: more than %d", errTooManyObjects, b.objects)
	case b.bytes > 0 && bytes > b.bytes:
		return fmt.Errorf("%w: more than %d bytes together", errObjectsTooLarge, b.bytes)
	}
	return nil
}

// exceedsBounds reports whether an error means that an API server sends more than is read.
func exceedsBounds(err error) bool {
	return errors.Is(err, errTooManyObjects) || errors.Is(err, errObjectsTooLarge) || errors.Is(err, errAnswerTooLarge)
}

// Bytes of what Go keeps, about, in addition to texts.
const (
	bytesOfValue = 16 // an interface, or the header of a text
	bytesOfMap   = 48
)

// sizeOf returns about how many bytes a decoded object takes in memory, without its managed fields, which are never kept.
func sizeOf(value any) int {
	switch v := value.(type) {
	case map[string]any:
		size := bytesOfMap
		for name, field := range v {
			if name == "managedFields" {
				continue
			}
			size += bytesOfValue + len(name) + sizeOf(field)
		}
		return size
	case []any:
		size := bytesOfValue
		for _, element := range v {
			size += sizeOf(element)
		}
		return size
	case string:
		return bytesOfValue + len(v)
	default:
		return bytesOfValue
	}
}
