package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

const (
	asJSON  = "json"
	asYAML  = "yaml"
	asTable = "table"
)

var formats = []string{asJSON, asYAML, asTable}

// output is the flag -o.
type output struct{ format string }

func (o *output) flag(cmd *cobra.Command, preset string) {
	cmd.Flags().StringVarP(&o.format, "output", "o", preset, "`FORMAT`: json, yaml or table")
}

func (o *output) check() error {
	if !slices.Contains(formats, o.format) {
		return usage("-o %q is not json, yaml or table", o.format)
	}
	return nil
}

// document prints a value as one indented JSON document or one YAML document.
func (o *output) document(w io.Writer, v any) error {
	text, err := o.encode(v)
	if err != nil {
		return err
	}
	return write(w, text)
}

func (o *output) encode(v any) ([]byte, error) {
	if o.format == asYAML {
		text, err := yaml.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("encode the output: %w", err)
		}
		return text, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode the output: %w", err)
	}
	return b.Bytes(), nil
}

// table prints rows in columns; the first row is the heading.
func table(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		for i := range r {
			r[i] = printable(r[i]) // it may contain text from a member or other users
		}
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

func write(w io.Writer, text []byte) error {
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}
