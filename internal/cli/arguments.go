package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

// noArguments refuses arguments of a command that takes flags only.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("unexpected argument %q", args[0])
	}
	return nil
}

// onlyCommands refuses what is no command, for commands that consist of others.
func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	return nil
}

// similarity is the number of letters by which a name may differ from that of a command that is suggested for it.
const similarity = 2

func unknownCommand(cmd *cobra.Command, name string) error {
	hint := ""
	cmd.SuggestionsMinimumDistance = similarity
	if similar := cmd.SuggestionsFor(name); len(similar) > 0 {
		hint = ": did you mean " + strings.Join(similar, " or ") + "?"
	}
	return usage("unknown command %q%s", name, hint)
}

// oneArgument requires exactly one argument, such as "the name of the member".
func oneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usage("%s is missing: %s", what, cmd.UseLine())
		case len(args) > 1:
			return usage("unexpected argument %q: %s", args[1], cmd.UseLine())
		}
		return nil
	}
}

// explain returns the text of an error with the errors of files and connections in plain words.
func explain(err error) string {
	text := err.Error()
	var file *fs.PathError
	if errors.As(err, &file) {
		text = strings.Replace(text, file.Error(), fmt.Sprintf("%s: %s", file.Path, file.Err), 1)
	}
	var request *url.Error
	if errors.As(err, &request) {
		address := request.URL
		if u, err := url.Parse(request.URL); err == nil && u.Host != "" {
			address = u.Scheme + "://" + u.Host
		}
		why := request.Err.Error()
		if i := strings.LastIndex(why, ": "); strings.HasPrefix(why, "dial ") && i >= 0 {
			why = why[i+2:]
		}
		text = strings.Replace(text, request.Error(), fmt.Sprintf("%s does not answer (%s): check the address, and that the server runs", address, why), 1)
	}
	return text
}
