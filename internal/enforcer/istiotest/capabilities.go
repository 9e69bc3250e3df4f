package istiotest

// Capabilities is the file of capabilities of the members of the worlds: m1 evaluates requests and requires mutual TLS, m2 evaluates connections
// only, the Istio of m3 is too old. Other members are as the default.
const Capabilities = `
default: {dataplane: sidecar, version: 1.31.0, ranges: [10.0.0.0/14]}
members:
  m1: {dataplane: sidecar, version: 1.30.1, strictMTLS: true, ranges: [10.0.0.0/16]}
  m2: {dataplane: ambient, version: "1.29", ranges: [10.1.0.0/16, "fd00::/16"]}
  m3: {dataplane: sidecar, version: 1.28.9, ranges: [10.2.0.0/16]}
`
