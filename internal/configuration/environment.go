package configuration

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Variable returns the name of the environment variable of a setting: ACP_, the program's name, and the setting's name.
func (s *Settings) Variable(name string) string { return s.prefix() + upper(name) }

func (s *Settings) prefix() string {
	program, _, _ := strings.Cut(s.program, " ") // a command of a program reads the settings of the program
	return "ACP_" + upper(strings.TrimPrefix(program, "acp-")) + "_"
}

func upper(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }

// serviceLink matches the variables that the kubelet makes for a Service, such as ACP_PORTAL_SERVICE_HOST for the Service acp-portal.
var serviceLink = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// readEnvironment takes from the environment what the command line does not say. Variables with the program's prefix that are no
// setting are refused, because a typing mistake in a name would otherwise leave a default in force.
func (s *Settings) readEnvironment(environ []string) error {
	names := map[string]*pflag.Flag{}
	s.all.VisitAll(func(f *pflag.Flag) {
		if f.Name == configFlag || !onlyCommandLine(f.Name) {
			names[s.Variable(f.Name)] = f
		}
	})
	for _, e := range slices.Sorted(slices.Values(environ)) {
		variable, value, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(variable, s.prefix()) {
			continue
		}
		f := names[variable]
		if f == nil {
			if serviceLink.MatchString(variable) {
				continue
			}
			name := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, s.prefix()), "_", "-"))
			if hint := s.fileFor(name); hint != "" {
				return fmt.Errorf("environment variable %s: %s, by %s", variable, hint, s.Variable(name+secretSuffix))
			}
			return fmt.Errorf("environment variable %s is no setting of %s", variable, s.program)
		}
		if f.Changed {
			continue
		}
		var err error
		if list, ok := f.Value.(pflag.SliceValue); ok {
			err = list.Replace(split(value))
		} else {
			err = f.Value.Set(value)
		}
		if err != nil {
			return fmt.Errorf("environment variable %s (--%s): %w", variable, f.Name, err)
		}
		s.origins[f.Name] = "environment variable " + variable
	}
	return nil
}

// split returns the entries of a list in an environment variable, of which each is on a line of its own.
func split(value string) []string {
	out := []string{}
	for _, line := range strings.Split(value, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// onlyCommandLine reports whether a setting requests output, which is useful only on a command line.
func onlyCommandLine(name string) bool {
	return name == configFlag || name == printFlag || name == versionFlag
}
