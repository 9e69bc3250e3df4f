package main

import (
	"testing"

	"github.com/acp-io/acp/internal/configuration/configurationtest"
)

func TestPublishedConfiguration(t *testing.T) {
	var o options
	var g given
	configurationtest.Published(t, "flow-collector", settings(&o, &g))
}
