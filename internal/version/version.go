// Package version owns the version that every program reports. It imports nothing of ACP.
package version

import "runtime/debug"

// version is set by the linker (see the Makefile).
var version string

// String is the version of the build: the value that the linker set, else the module's, else "devel".
func String() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
