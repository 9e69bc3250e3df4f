//go:build !drill

package wallclock

import "time"

const offset time.Duration = 0
