package approval_test

import (

	"github.com/acp-io/acp/internal/approval"
)


