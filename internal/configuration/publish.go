package configuration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

const helpWidth = 110

// help is the text of --help: the settings of each group, and how else they can be given.
func (s *Settings) help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s [--config FILE] [--NAME=VALUE ...]\n", s.about, s.program)
	for _, g := range s.groups {
		fmt.Fprintf(&b, "\n%s:\n%s", g.title, g.flags.FlagUsagesWrapped(helpWidth))
	}
	fmt.Fprintf(&b, "\nEach setting can also be given as an environment variable (--log-level is %s; entries of a list on lines of their own)\n"+
		"or in the file of --config. Secrets are only read from files.\n", s.Variable(levelFlag))
	return b.String()
}

// effective writes the settings as a configuration file with the origin of each value.
func (s *Settings) effective() (string, error) {
	var b strings.Builder
	for _, g := range s.groups {
		var lines strings.Builder
		var problem error
		g.flags.VisitAll(func(f *pflag.Flag) {
			if onlyCommandLine(f.Name) {
				return
			}
			origin := s.origins[f.Name]
			switch {
			case f.Changed:
				origin = "command line"
			case origin == "":
				origin = "default"
			}
			value, err := json.Marshal(typed(f, values(f)))
			if err != nil {
				problem = fmt.Errorf("print --%s: %w", f.Name, err)
				return
			}
			fmt.Fprintf(&lines, "%s: %s # %s\n", f.Name, value, origin)
		})
		if problem != nil {
			return "", problem
		}
		if lines.Len() > 0 {
			fmt.Fprintf(&b, "# %s\n%s", g.title, lines.String())
		}
	}
	// The output is read back, so that it is a valid file whatever the values are.
	if err := yaml.Unmarshal([]byte(b.String()), &map[string]any{}); err != nil {
		return "", fmt.Errorf("print the settings: %w", err)
	}
	return b.String(), nil
}

// jsonType is the type of a setting in JSON schema.
func jsonType(f *pflag.Flag) string {
	if _, ok := f.Value.(pflag.SliceValue); ok {
		return "array"
	}
	switch f.Value.Type() {
	case "bool":
		return "boolean"
	case "int", "int64":
		return "integer"
	case "float64":
		return "number"
	}
	return "string"
}

func typed(f *pflag.Flag, of []string) any {
	if jsonType(f) == "array" {
		return append([]string{}, of...)
	}
	switch v := of[0]; jsonType(f) {
	case "boolean":
		return v == "true"
	case "integer", "number":
		return json.Number(v)
	default:
		return v
	}
}

const durationPattern = `^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`

// Schema returns the JSON schema of the program's configuration file.
func (s *Settings) Schema() ([]byte, error) {
	properties := map[string]any{}
	s.visit(func(_ string, f *pflag.Flag) {
		_, usage := pflag.UnquoteUsage(f)
		p := map[string]any{"description": usage, "type": jsonType(f), "default": defaultOf(f)}
		text := map[string]any{"not": map[string]any{"pattern": passwordPattern}}
		switch {
		case s.allowed[f.Name] != nil:
			p["enum"] = s.allowed[f.Name]
		case f.Value.Type() == "duration":
			p["pattern"] = durationPattern
		case jsonType(f) == "string":
			p["not"] = text["not"]
		case jsonType(f) == "array":
			text["type"] = "string"
			p["items"] = text
		}
		properties[f.Name] = p
	})
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:acp:configuration:" + s.program,
		"title": "Configuration of " + s.program, "description": s.about, "type": "object", "additionalProperties": false, "properties": properties})
	return out.Bytes(), err
}

func defaultOf(f *pflag.Flag) any {
	if jsonType(f) != "array" {
		return typed(f, []string{f.DefValue})
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(f.DefValue, "["), "]")
	if inner == "" {
		return []string{}
	}
	return strings.Split(inner, ",")
}

// Reference returns the settings as tables in Markdown, one for each group.
func (s *Settings) Reference() string {
	var b strings.Builder
	last := ""
	s.visit(func(title string, f *pflag.Flag) {
		if title != last {
			fmt.Fprintf(&b, "\n#### %s of %s\n\n| setting | default | meaning |\n| --- | --- | --- |\n", title, s.program)
			last = title
		}
		_, usage := pflag.UnquoteUsage(f)
		shown := ""
		if value, err := json.Marshal(defaultOf(f)); err == nil && string(value) != `""` && string(value) != "[]" {
			if unquoted, err := strconv.Unquote(string(value)); err == nil {
				value = []byte(unquoted)
			}
			shown = "`" + short(f, string(value)) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, shown, markdown.Replace(usage))
	})
	return b.String()
}

// markdown escapes what would end a cell of a table or begin a tag.
var markdown = strings.NewReplacer("|", `\|`, "<", "&lt;")

// short leaves out the zeros by which Go ends a duration, as in 8h0m0s.
func short(f *pflag.Flag, value string) string {
	if f.Value.Type() != "duration" {
		return value
	}
	if cut, ok := strings.CutSuffix(value, "m0s"); ok {
		value = cut + "m"
	}
	if cut, ok := strings.CutSuffix(value, "h0m"); ok {
		value = cut + "h"
	}
	return value
}

// visit calls a function for each setting that the environment and the file can give.
func (s *Settings) visit(each func(group string, f *pflag.Flag)) {
	for _, g := range s.groups {
		g.flags.VisitAll(func(f *pflag.Flag) {
			if !onlyCommandLine(f.Name) {
				each(g.title, f)
			}
		})
	}
}
