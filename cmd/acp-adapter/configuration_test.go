package main

import (
	"testing"

	"github.com/acp-io/acp/internal/configuration/configurationtest"
)

func TestPublishedConfiguration(t *testing.T) {
	var o options
	configurationtest.Published(t, "acp-adapter", settings(&o))
}
