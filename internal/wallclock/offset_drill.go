//go:build drill

package wallclock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// offsetVariable is the environment variable with the name of a file that holds the offset of the clock, such as 10m or
// -10m. The file is read once, when the program starts, so that the offset can be changed by a restart.
const offsetVariable = "ACP_DRILL_CLOCK"

var offset = readOffset()

// readOffset reads the offset, and writes to the log that this program must not be released.
func readOffset() time.Duration {
	by, err := read(os.Getenv(offsetVariable))
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", offsetVariable, err)
		os.Exit(2)
	}
	fmt.Fprintf(os.Stderr, "built for drills: the clock is off by %s\n", by)
	return by
}

func read(file string) (time.Duration, error) {
	if file == "" {
		return 0, nil
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return time.ParseDuration(strings.TrimSpace(string(data)))
}
