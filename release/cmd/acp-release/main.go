// Command acp-release makes what is published of ACP: container images with their bills of materials, provenance and signatures, and the files of a release.
// The targets images, push and release of the Makefile call it; docs/releasing.md describes what it makes.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	slog.SetLogLoggerLevel(slog.LevelWarn) // libraries report what they do
	root := &cobra.Command{
		Use:           "acp-release",
		Short:         "Make images and releases of ACP",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(imagesCommand(), pushCommand(), sizesCommand(), releaseCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "acp-release:", err)
		stop()
		os.Exit(1)
	}
}
