//go:build race

package norace

const raceDetector = true
