// Package configuration reads the settings of a program from its command line, its environment and a YAML file, in that order of
// precedence. Each setting is defined once, as a pflag flag; its environment variable, its key in the file, the published JSON schema,
// the help and the reference in the documentation follow from the flag. The package must not depend on any other package of ACP.
package configuration

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// ErrAnswered is returned when the command line only requested output (--help, --version, --print-config), which was printed. The program
// then ends with code 0.
var ErrAnswered = errors.New("the command line requested output, which was printed")

// Names of the settings that every program has.
const (
	configFlag  = "config"
	printFlag   = "print-config"
	versionFlag = "version"
)

// Settings are the settings of one program.
type Settings struct {
	program, about string
	version        func() string
	groups         []*group
	all            *pflag.FlagSet
	// origins maps the name of a setting that was not given on the command line to where its value was read.
	origins     map[string]string
	allowed     map[string][]string
	secretHints map[string]string
	file        string
	show        bool
	showVersion bool
}

type group struct {
	title string
	flags *pflag.FlagSet
}

// New returns the settings of a program; about is one sentence for its help, and version returns its version.
func New(program, about string, version func() string) *Settings {
	return &Settings{program: program, about: about, version: version, all: newFlagSet(program),
		origins: map[string]string{}, allowed: map[string][]string{}, secretHints: map[string]string{}}
}

func newFlagSet(name string) *pflag.FlagSet {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SortFlags = false
	f.SetOutput(io.Discard) // the caller writes errors, once
	f.Usage = func() {}
	return f
}

// Group returns the flag set in which the program defines settings that the help and the reference show under the title.
func (s *Settings) Group(title string) *pflag.FlagSet {
	g := &group{title: title, flags: newFlagSet(title)}
	s.groups = append(s.groups, g)
	return g.flags
}

// Allow restricts a setting to the values.
func (s *Settings) Allow(name string, values ...string) { s.allowed[name] = values }

// SecretHint sets the advice for users whose value of a setting contains a password. Parse refuses such a value, and its error ends with
// the hint, which says how to give the value instead.
func (s *Settings) SecretHint(name, hint string) { s.secretHints[name] = hint }

// Parse reads the settings. It returns ErrAnswered after it has written the help or the version to out.
func (s *Settings) Parse(args, environ []string, out io.Writer) error {
	general := s.Group("Configuration")
	general.StringVar(
		&s.file,
		configFlag,
		"",
		"YAML `file` with settings; its keys are the names of the flags. A flag overrides the environment, which overrides the file",
	)
	general.BoolVar(&s.show, printFlag, false, "print the effective settings as such a file, with where each comes from, and exit")
	general.BoolVar(&s.showVersion, versionFlag, false, "print the version and exit")
	for _, g := range s.groups {
		s.all.AddFlagSet(g.flags)
	}
	if err := s.all.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return s.answer(out, s.help())
	} else if err != nil {
		return s.explainUnknown(err)
	}
	if s.showVersion {
		return s.answer(out, s.program+" "+s.version()+"\n")
	}
	if s.all.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: every setting is given as --NAME=VALUE", s.all.Arg(0))
	}
	if err := s.readEnvironment(environ); err != nil {
		return err
	}
	if s.file != "" {
		if err := s.readFile(s.file); err != nil {
			return err
		}
	}
	return s.Explain(s.check())
}

// ParseProcess is Parse with the environment of the process.
func (s *Settings) ParseProcess(args []string, out io.Writer) error {
	return s.Parse(args, os.Environ(), out)
}

// Given reports whether a setting was given in any way.
func (s *Settings) Given(name string) bool { return s.all.Changed(name) || s.origins[name] != "" }

// Print writes the effective settings and returns ErrAnswered if the command line requested them. The program calls it after it has
// checked the settings.
func (s *Settings) Print(out io.Writer) error {
	if !s.show {
		return nil
	}
	text, err := s.effective()
	if err != nil {
		return err
	}
	return s.answer(out, text)
}

func (s *Settings) answer(out io.Writer, text string) error {
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return ErrAnswered
}

// mention matches the names of settings in errors: a program writes --NAME.
var mention = regexp.MustCompile(`--([a-z][a-z0-9-]*)`)

// Explain adds to an error where the settings that it names come from, unless they come from the command line or are defaults.
func (s *Settings) Explain(err error) error {
	if err == nil {
		return nil
	}
	var from []string
	for _, m := range mention.FindAllStringSubmatch(err.Error(), -1) {
		if o := s.origins[m[1]]; o != "" {
			if note := m[1] + " is set by " + o; !slices.Contains(from, note) {
				from = append(from, note)
			}
		}
	}
	if len(from) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(from, "; "))
}

// secretSuffix ends the names of settings that name files with secrets.
const secretSuffix = "-file"

// explainUnknown returns an error with the file into which a secret belongs that was given as a flag.
func (s *Settings) explainUnknown(err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if hint := s.fileFor(unknown.GetSpecifiedName()); hint != "" {
			return fmt.Errorf("unknown flag: --%s: %s", unknown.GetSpecifiedName(), hint)
		}
	}
	return err
}

func (s *Settings) fileFor(name string) string {
	if s.all.Lookup(name+secretSuffix) == nil {
		return ""
	}
	return "secrets are only read from files: name the file with " + name + secretSuffix
}

// password matches values that hold a password: a URL with one, or a query's parameter.
var password = regexp.MustCompile(passwordPattern)

const passwordPattern = `://[^/\s@]*:[^/\s@]+@|[?&]([Pp]assword|sslpassword|token|secret)=.` //nolint:gosec // it finds credentials

// check holds every value, wherever it comes from, against the rules that hold for all programs.
func (s *Settings) check() error {
	var problem error
	s.all.VisitAll(func(f *pflag.Flag) {
		if problem != nil {
			return
		}
		for _, v := range values(f) {
			if password.MatchString(v) {
				problem = fmt.Errorf("--%s has a password, which others can read there: %s", f.Name, s.secretHint(f.Name))
				return
			}
		}
		if allowed := s.allowed[f.Name]; allowed != nil && !slices.Contains(allowed, f.Value.String()) {
			problem = fmt.Errorf("--%s %q: use %s", f.Name, f.Value.String(), alternatives(allowed))
		}
	})
	return problem
}

func (s *Settings) secretHint(name string) string {
	if hint := s.secretHints[name]; hint != "" {
		return hint
	}
	return "secrets are only read from files"
}

func alternatives(values []string) string {
	last := len(values) - 1
	if last < 1 {
		return strings.Join(values, "")
	}
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// values of a flag, one by one where it is a list.
func values(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{f.Value.String()}
}
