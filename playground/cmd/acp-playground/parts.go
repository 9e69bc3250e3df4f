package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/acp-io/acp/playground/internal/parts"
	"github.com/acp-io/acp/playground/internal/run"
)

const kubebuilderAssets = "kubebuilder-assets"

func printParts(ctx context.Context, flags *flag.FlagSet, args []string) error {
	repo := repoFlag(flags)
	show := flags.String("print", "", `"`+kubebuilderAssets+`" prints only a folder with kube-apiserver and etcd, for KUBEBUILDER_ASSETS`)
	if err := parse(flags, args); err != nil {
		return err
	}
	names := flags.Args()
	switch *show {
	case "":
	case kubebuilderAssets:
		names = []string{parts.Kubernetes}
	default:
		return fmt.Errorf("--print accepts only %s, not %q", kubebuilderAssets, *show)
	}
	selected, err := parts.Select(names...)
	if err != nil {
		return err
	}
	root, err := run.FindRepo(*repo)
	if err != nil {
		return err
	}
	dir, err := parts.DefaultDir()
	if err != nil {
		return err
	}
	// Standard output carries the paths only.
	progress := &run.Printer{Out: os.Stderr, TTY: isTerminal(os.Stderr)}
	cache := &parts.Cache{Repo: root, Dir: dir, Assets: os.Getenv("KUBEBUILDER_ASSETS"), Progress: progress}
	built, err := cache.Ensure(ctx, selected)
	if err != nil {
		return err
	}
	for _, p := range selected {
		if *show == kubebuilderAssets {
			fmt.Println(built[p.Name])
		} else {
			fmt.Printf("%s\t%s\n", p.Name, built[p.Name])
		}
	}
	return nil
}
