package approvaltest_test

import (
	"testing"

	"github.com/acp-io/acp/internal/approval/approvaltest"
)

// TestMemory: the store of the model test means by everything what the real ones do.
func TestMemory(t *testing.T) {
	approvaltest.Run(t, func(*testing.T) approvaltest.Store { return &approvaltest.Memory{} })
}
