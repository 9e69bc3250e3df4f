package database

import (
	"context"
	"time"

	"gorm.io/gorm"
)

// clockTolerance is how far the clocks of replicas may be apart without one taking what another one holds.
const clockTolerance = time.Minute

// Lead reports whether the holder holds the named lease until now+ttl. It acquires the lease if it is free or expired. A
// lease that ends later than any that is given now was given by a clock that was ahead, and counts as expired.
func (db *DB) Lead(ctx context.Context, name, holder string, now time.Time, ttl time.Duration) (bool, error) {
	leads := false
	err := db.Write(ctx, func(tx *gorm.DB) error {
		if _, err := Exec(tx, "INSERT INTO rollout_lead (name, holder, lease_until) VALUES (?, '', 0) ON CONFLICT DO NOTHING", name); err != nil {
			return err
		}
		n, err := Exec(
			tx,
			"UPDATE rollout_lead SET holder = ?, lease_until = ? WHERE name = ? AND (holder = ? OR lease_until <= ? OR lease_until > ?)",
			holder,
			now.Add(ttl).UnixMicro(),
			name,
			holder,
			now.UnixMicro(),
			now.Add(ttl+clockTolerance).UnixMicro(),
		)
		leads = n == 1
		return err
	})
	return leads, err
}
