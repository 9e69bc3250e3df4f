//go:build drill

package wallclock

const forDrills = true
