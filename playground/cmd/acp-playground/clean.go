package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/acp-io/acp/playground/internal/fleet"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

func clean(_ context.Context, flags *flag.FlagSet, args []string) error {
	repo := repoFlag(flags)
	state := stateFlag(flags)
	if err := parse(flags, args); err != nil {
		return err
	}
	dir, err := findState(*state, *repo)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	// A mistyped --state-dir must not delete another folder of the user.
	if _, err := os.Stat(filepath.Join(dir, "lock")); err != nil {
		return fmt.Errorf("%s is not the state of a playground (it has no lock file); nothing was removed", dir)
	}
	lock, err := supervisor.Acquire(dir)
	if err != nil {
		return err
	}
	defer lock.Release()
	if _, err := supervisor.EndStale(fleet.Layout{Dir: dir}.Run()); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the state: %w", err)
	}
	return nil
}
