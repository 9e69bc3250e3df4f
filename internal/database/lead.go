package database

import (
	"context"
	"time"

	"gorm.io/gorm"
)

// clockTolerance is how far the clocks of two replicas may differ before one acquires a lease that the other one holds.
const clockTolerance = time.Minute

// Lead reports whether the holder holds the named lease until now+ttl. It acquires the lease if the lease is free or has
// expired. A lease that ends more than ttl and clockTolerance from now was written by a replica whose clock was ahead, and
// counts as expired, so that a wrong clock does not stop the work until that time.
func (db *DB) Lead(ctx context.Context, name, holder string, now time.Time, ttl time.Duration) (bool, error) {
	leads := false
	err := db.Write(ctx, func(tx *gorm.DB) error {
		leads = false // the transaction may run again
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
