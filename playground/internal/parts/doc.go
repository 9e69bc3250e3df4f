// Package parts builds the programs of a playground from their sources in the Go module proxy, once per content, into a cache that
// is shared by all clones of the repository and all users of this package.
//
// The package manages the cache folder. It runs only the go command, and apt-get and dpkg-deb for parts that consist of Debian
// packages.
package parts
