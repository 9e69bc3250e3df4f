// Package parts builds the programs that a playground is made of from their sources in the Go module proxy, once per
// content, into a cache shared by all clones of the repository and all users of this package.
//
// It owns the cache folder. It starts nothing but the go command, and apt-get and dpkg-deb for a part that is made of Debian packages.
package parts
