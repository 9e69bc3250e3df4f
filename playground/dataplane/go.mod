module github.com/acp-io/acp/playground/dataplane

go 1.26.0

require github.com/cilium/cilium v1.20.2

// v0.8.4, which Cilium asks for, is not served by the module proxy; nothing used here differs.
replace github.com/cilium/statedb => github.com/cilium/statedb v0.8.3
