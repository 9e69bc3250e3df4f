// Package bench measures a fleet as its users meet it: through make, the browser's HTTP API and its event stream. It
// owns no part of the fleet and reads no store; every figure that it prints was measured in the same run.
package bench
