package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/acp-io/acp/internal/portalclient"
)

type ledgerExportOptions struct {
	remote
	out  string
	from int64
}

func newLedgerExport(s Streams) *cobra.Command {
	o := &ledgerExportOptions{remote: remote{streams: s}}
	cmd := &cobra.Command{
		Use:   "export [--out FILE]",
		Short: "Write the ledger as JSON lines, which can be verified offline",
		Long: `Write the ledger as JSON lines, which can be verified offline: {"seq":1,"hash":"...","text":"..."}. The text is the line itself,
JSON whose bytes the hash covers; jq reads it with '.text | fromjson'. Only the security team and auditors may export it.`,
		Example: `  kubectl acp ledger export --out ledger.jsonl
  kubectl acp ledger export | jq -r '.text | fromjson | [.at, .actor, .action, .object] | @tsv'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&o.out, "out", "", "`FILE` to write; it is created only when it is complete (default: standard output)")
	cmd.Flags().Int64Var(&o.from, "from", 1, "first `LINE` to export")
	o.flags(cmd)
	return cmd
}

func (o *ledgerExportOptions) run(ctx context.Context) error {
	if o.from < 1 {
		return usage("--from %d: lines count from 1", o.from)
	}
	client, err := o.connect()
	if err != nil {
		return err
	}
	if o.out == "" {
		return remotely(export(ctx, client, o.from, o.streams.Out))
	}
	part := o.out + ".part"
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return &failure{code: ExitFailed, err: fmt.Errorf("write the export: %w", err)}
	}
	err = errors.Join(export(ctx, client, o.from, file), file.Close())
	if err == nil {
		err = os.Rename(part, o.out)
	}
	if err != nil {
		return remotely(errors.Join(err, os.Remove(part)))
	}
	return nil
}

func export(ctx context.Context, client *portalclient.Client, from int64, w io.Writer) error {
	return client.Stream(ctx, "/ledger/export", url.Values{"afterSeq": {strconv.FormatInt(from-1, 10)}}, w)
}
