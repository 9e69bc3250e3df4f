// Package loopback decides which hosts are this machine itself, so that plain HTTP to them reveals nothing.
package loopback

import (
	"net"
	"strings"
)

// Is reports whether a host without a port is localhost or a loopback address.
func Is(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
