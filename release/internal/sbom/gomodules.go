package sbom

import "runtime/debug"

// goModule returns a module that is linked into a program. sum is what go.sum has of it.
func goModule(path, version, sum string, replaced *debug.Module) component {
	note := ""
	if replaced != nil {
		if replaced.Version == "" { // a folder of the main module's repository
			return component{
				name:    path,
				version: version,
				purl:    "pkg:golang/" + path + "@" + version,
				license: "Apache-2.0",
				note:    "replaced by the folder " + replaced.Path,
			}
		}
		note = "replaces " + path + " " + version
		if path == replaced.Path {
			note = "in place of " + version
		}
		path, version, sum = replaced.Path, replaced.Version, replaced.Sum
	}
	if sum != "" {
		if note != "" {
			note += "; "
		}
		note += "go.sum " + sum
	}
	return component{name: path, version: version, purl: "pkg:golang/" + path + "@" + version, note: note}
}
