// Package backup writes what ACP cannot derive again into one file, and restores it into an empty database and an empty host
// cluster: the portal's tables, the ledger with its anchored heads, and ACP's objects.
//
// A backup is older than what was lost, so a grant that it contains may have been revoked since. Restore therefore needs to know
// what happened after the backup (Mode), and does not restore allows that are not known to be still approved.
//
// The restored state is computed in a scratch database by the same transitions that the portal uses, so that a grant that does not
// come back has a timeline, a ledger line and a job that removes it like any other. The target database gets everything in one
// transaction, after the host cluster: a restore that is cut short leaves a database that is still empty, and is run again.
//
// Federated objects are not in a backup. KubeFed would push them to the members before the adapter has compiled what is restored,
// and with them grants that were revoked.
package backup
