package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/acp-io/acp/playground/internal/fleet"
	"github.com/acp-io/acp/playground/internal/run"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

func ctl(ctx context.Context, flags *flag.FlagSet, args []string) error {
	repo := repoFlag(flags)
	state := stateFlag(flags)
	output := flags.String("o", "", `"json" prints the status as JSON`)
	// Flags may stand before and after the words.
	var words []string
	for rest := args; ; {
		if err := parse(flags, rest); err != nil {
			return err
		}
		if flags.NArg() == 0 {
			break
		}
		words = append(words, flags.Arg(0))
		rest = flags.Args()[1:]
	}
	dir, err := findState(*state, *repo)
	if err != nil {
		return err
	}
	client := supervisor.NewClient(fleet.Layout{Dir: dir}.Run())
	switch {
	case len(words) == 1 && words[0] == "status":
		return status(ctx, client, *output)
	case len(words) == 2 && slices.Contains([]string{"stop", "kill", "start", "restart"}, words[0]):
		return client.Do(ctx, words[0], words[1])
	}
	flags.Usage()
	return errUsage
}

func findState(state, repo string) (string, error) {
	if state != "" {
		return stateDir(state, "")
	}
	root, err := run.FindRepo(repo)
	if err != nil {
		return "", err
	}
	return stateDir("", root)
}

func status(ctx context.Context, client *supervisor.Client, output string) error {
	all, err := client.Status(ctx)
	if err != nil {
		return err
	}
	switch output {
	case "json":
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(all)
	case "":
	default:
		return fmt.Errorf("-o accepts only json, not %q", output)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATE\tPID\tRSS\tRESTARTS\tUP\tLAST EXIT")
	var total int64
	for _, s := range all {
		pid, up := "-", "-"
		if s.PID != 0 {
			pid = fmt.Sprint(s.PID)
			up = time.Since(s.Started).Round(time.Second).String()
		}
		total += s.RSSBytes
		fmt.Fprintf(w, "%s\t%s\t%s\t%d MB\t%d\t%s\t%s\n", s.Name, s.State, pid, s.RSSBytes>>20, s.Restarts, up, s.LastExit)
	}
	fmt.Fprintf(w, "total\t\t\t%d MB\t\t\t\n", total>>20)
	return w.Flush()
}
