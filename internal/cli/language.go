package cli

import (
	"cmp"
	"os"

	"github.com/acp-io/acp/internal/message"
)

// language returns the language of the user's locale, in which messages of the portal are shown.
func language() message.Language {
	return message.LanguageOf(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG")))
}
