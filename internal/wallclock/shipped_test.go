//go:build !drill

package wallclock

const forDrills = false
