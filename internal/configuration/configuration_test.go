package configuration

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

type options struct {
	Listen, URL, Secret, Format string
	Every                       time.Duration
	Many                        int
	Share                       float64
	On                          bool
	Proxies, Anchors            []string
	Level                       slog.Level
}

func settings() (*Settings, *options) {
	var o options
	s := New("acp-thing", "acp-thing does a thing.", func() string { return "v1" })
	f := s.Group("Listening")
	f.StringVar(&o.Listen, "listen", "127.0.0.1:1", "`address` to listen on")
	f.StringSliceVar(&o.Proxies, "trusted-proxies", nil, "prefixes")
	f = s.Group("Other")
	f.StringVar(&o.URL, "database", "", "URL")
	f.StringVar(&o.Secret, "client-secret-file", "", "`file` with the secret")
	f.DurationVar(&o.Every, "every", time.Minute, "`time` between two")
	f.IntVar(&o.Many, "many", 3, "how many")
	f.Float64Var(&o.Share, "share", 0.5, "share")
	f.BoolVar(&o.On, "on", false, "on")
	f.StringArrayVar(&o.Anchors, "anchor", []string{"configmap"}, "places")
	s.Logging(&o.Format, &o.Level, "text")
	return s, &o
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "thing.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var defaults = options{Listen: "127.0.0.1:1", Format: "text", Every: time.Minute, Many: 3, Share: 0.5, Anchors: []string{"configmap"}}

func with(change func(*options)) options {
	o := defaults
	change(&o)
	return o
}

func TestPrecedence(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		args    []string
		environ []string
		file    string
		want    options
	}{
		"defaults": {reason: "nothing is given", want: defaults},
		"file": {reason: "every type has its form in YAML",
			file: "listen: a:1\nevery: 2s\nmany: 7\nshare: 1\non: true\nanchor: [x, 'y,z']\nlog-level: warn\ntrusted-proxies:\n- 10.0.0.0/8\n",
			want: options{
				Listen: "a:1", Format: "text", Every: 2 * time.Second, Many: 7, Share: 1, On: true,
				Anchors: []string{"x", "y,z"}, Proxies: []string{"10.0.0.0/8"}, Level: slog.LevelWarn,
			}},
		"environment over file": {reason: "a pod's variable is more special than a shared file",
			environ: []string{"ACP_THING_LISTEN=b:1"}, file: "listen: a:1\nmany: 7\n",
			want: with(func(o *options) { o.Listen, o.Many = "b:1", 7 })},
		"flag over all": {reason: "the command line has the last word", args: []string{"--listen=c:1"},
			environ: []string{"ACP_THING_LISTEN=b:1"}, file: "listen: a:1\n",
			want: with(func(o *options) { o.Listen = "c:1" })},
		"flag with the default's value": {
			reason: "what is given is given, whatever it says", args: []string{"--many=3"}, environ: []string{"ACP_THING_MANY=9"},
			want: defaults,
		},
		"lists": {reason: "a list is replaced, never joined", args: []string{"--anchor=p", "--anchor=q"},
			environ: []string{"ACP_THING_TRUSTED_PROXIES=10.0.0.1\n10.0.0.2"}, file: "anchor: [x]\n",
			want: with(func(o *options) { o.Anchors, o.Proxies = []string{"p", "q"}, []string{"10.0.0.1", "10.0.0.2"} })},
		"empty list": {reason: "an empty list is none, not the default", file: "anchor: []\n", want: with(func(o *options) { o.Anchors = []string{} })},
		"empty file": {reason: "it sets nothing", file: "# nothing\n", want: defaults},
		"service": {
			reason: "the kubelet makes variables for a Service of the program's name",
			environ: []string{
				"ACP_THING_PORT=tcp://10.0.0.1:80", "ACP_THING_SERVICE_HOST=10.0.0.1",
				"ACP_THING_SERVICE_PORT_HTTP=80", "ACP_THING_PORT_80_TCP_ADDR=10.0.0.1",
			},
			want: defaults,
		},
		"others'": {reason: "variables of other programs are theirs", environ: []string{"ACP_PORTAL_LISTEN=x", "HOME=/"}, want: defaults},
	} {
		t.Run(name, func(t *testing.T) {
			s, o := settings()
			args := tc.args
			if tc.file != "" {
				args = append(args, "--config="+write(t, tc.file))
			}
			if err := s.Parse(args, tc.environ, t.Output()); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, *o); d != "" {
				t.Errorf("%s: %s", tc.reason, d)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		args    []string
		environ []string
		file    string
		want    string
	}{
		"unknown key":            {reason: "a typing mistake", file: "\nlisen: x\n", want: "thing.yaml line 2: lisen is no setting of acp-thing"},
		"unknown variable":       {reason: "a typing mistake", environ: []string{"ACP_THING_LISEN=x"}, want: "ACP_THING_LISEN is no setting"},
		"unknown flag":           {reason: "a typing mistake", args: []string{"--lisen=x"}, want: "unknown flag: --lisen"},
		"twice":                  {reason: "one of them would be ignored", file: "many: 1\nmany: 2\n", want: "line 2: many is there twice"},
		"type":                   {reason: "the schema says integer", file: "many: two\n", want: "line 1: many: give a value of the type integer"},
		"number for a text":      {reason: "YAML would change how it is written", file: "listen: 8080\n", want: "listen: give a text"},
		"text for a list":        {reason: "the schema says array", file: "anchor: x\n", want: "anchor: give a list"},
		"null":                   {reason: "it is not clear what is meant", file: "listen:\n", want: "listen: give a text"},
		"duration":               {reason: "a unit is missing", environ: []string{"ACP_THING_EVERY=5"}, want: "ACP_THING_EVERY (--every)"},
		"two documents":          {reason: "the second would be ignored", file: "many: 1\n---\nmany: 2\n", want: "more than one document"},
		"a list as file":         {reason: "there are no keys", file: "- a\n", want: "write NAME: VALUE"},
		"config in the file":     {reason: "files do not include files", file: "config: x\n", want: "only be given on the command line"},
		"print in the variables": {reason: "it is a question", environ: []string{"ACP_THING_PRINT_CONFIG=true"}, want: "is no setting"},
		"no file":                {reason: "it is named", args: []string{"--config=/no/such"}, want: "--config: open /no/such"},
		"no file, by variable": {
			reason: "so is the variable", environ: []string{"ACP_THING_CONFIG=/no/such"},
			want: "config is set by environment variable ACP_THING_CONFIG",
		},
		"secret flag":          {reason: "others see a command line", args: []string{"--client-secret=hush"}, want: "client-secret-file"},
		"secret key":           {reason: "a ConfigMap is no place for it", file: "client-secret: hush\n", want: "name the file with client-secret-file"},
		"secret variable":      {reason: "others see the environment", environ: []string{"ACP_THING_CLIENT_SECRET=hush"}, want: "ACP_THING_CLIENT_SECRET_FILE"},
		"password in a flag":   {reason: "others see a command line", args: []string{"--database=postgres://acp:hush@h/d"}, want: "--database has a password"},
		"password in the file": {reason: "a ConfigMap is no place for it", file: "database: clickhouse://h/d?password=hush\n", want: "database is set by "},
		"password in a list":   {reason: "every entry counts", file: "anchor: ['webhook:https://u:hush@h/p,k']\n", want: "--anchor has a password"},
		"value":                {reason: "the values are said", file: "log-format: xml\n", want: `--log-format "xml": use text or json (log-format is set by `},
		"level":                {reason: "four are known", args: []string{"--log-level=loud"}, want: "use debug, info, warn or error"},
		"argument":             {reason: "nothing is taken without a name", args: []string{"now"}, want: `unexpected argument "now"`},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := settings()
			args := tc.args
			if tc.file != "" {
				args = append(args, "--config="+write(t, tc.file))
			}
			var out bytes.Buffer
			err := s.Parse(args, tc.environ, &out)
			if err == nil || errors.Is(err, ErrAnswered) || !strings.Contains(err.Error(), tc.want) || out.Len() > 0 {
				t.Fatalf("%s: want %q, got %v and %q", tc.reason, tc.want, err, out.String())
			}
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("the error repeats the secret: %v", err)
			}
		})
	}
}

func TestLargeFile(t *testing.T) {
	s, _ := settings()
	if err := s.Parse(
		[]string{"--config=" + write(t, "# "+strings.Repeat("x", maxFile))}, nil, t.Output(),
	); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("%v", err)
	}
}

// TestExplainNamesTheOrigin: programs check values themselves, and name settings as flags.
func TestExplainNamesTheOrigin(t *testing.T) {
	s, _ := settings()
	path := write(t, "many: 4\n")
	if err := s.Parse([]string{"--config=" + path, "--listen=x"}, []string{"ACP_THING_EVERY=1s"}, t.Output()); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("--many 4 needs --every, --listen and --share; --many is too large")
	got := s.Explain(cause)
	want := cause.Error() + " (many is set by " + path + " line 1; every is set by environment variable ACP_THING_EVERY)"
	if got.Error() != want || !errors.Is(got, cause) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if s.Explain(nil) != nil {
		t.Error("no error became one")
	}
}

// TestPrintedConfigurationIsAConfiguration: what is printed can be given again, and says the same.
func TestPrintedConfigurationIsAConfiguration(t *testing.T) {
	first, o := settings()
	var out bytes.Buffer
	args := []string{"--print-config", "--anchor=a: b", "--anchor=c,d", "--config=" + write(t, "share: 0.25\nlog-level: error\n")}
	if err := first.Parse(args, []string{"ACP_THING_DATABASE=postgres://h/d # no comment"}, &out); err != nil {
		t.Fatal(err)
	}
	if err := first.Print(&out); !errors.Is(err, ErrAnswered) {
		t.Fatal(err)
	}
	for _, want := range []string{"many: 3 # default\n", "# command line\n", "# environment variable ACP_THING_DATABASE\n", "thing.yaml line 1\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	second, again := settings()
	if err := second.Parse([]string{"--config=" + write(t, out.String())}, nil, t.Output()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if o.Proxies == nil {
		o.Proxies = []string{}
	}
	if d := cmp.Diff(*o, *again); d != "" {
		t.Error(d)
	}
}

func TestHelpAndVersion(t *testing.T) {
	for arg, want := range map[string][]string{
		"--version": {"acp-thing v1\n"},
		"--help":    {"Listening:\n", "Other:\n", "Logging:\n", "--trusted-proxies", "--print-config", "ACP_THING_LOG_LEVEL"},
	} {
		s, _ := settings()
		var out bytes.Buffer
		if err := s.Parse([]string{arg}, []string{"ACP_THING_WRONG=1"}, &out); !errors.Is(err, ErrAnswered) {
			t.Errorf("%s: %v", arg, err)
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: %q is not in %s", arg, w, out.String())
			}
		}
	}
}

// TestSchema: the schema names every setting and no other, and its defaults are a configuration.
func TestSchema(t *testing.T) {
	s, o := settings()
	if err := s.Parse(nil, nil, t.Output()); err != nil {
		t.Fatal(err)
	}
	data, err := s.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		AdditionalProperties bool
		Properties           map[string]struct {
			Type, Description, Pattern string
			Enum                       []string
			Default                    any
		}
	}
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	given, types := map[string]any{}, map[string]string{}
	for name, p := range schema.Properties {
		given[name], types[name] = p.Default, p.Type
		if p.Description == "" {
			t.Errorf("%s has no description", name)
		}
	}
	want := map[string]string{
		"listen":             "string",
		"trusted-proxies":    "array",
		"database":           "string",
		"client-secret-file": "string",
		"every":              "string",
		"many":               "integer",
		"share":              "number",
		"on":                 "boolean",
		"anchor":             "array",
		"log-format":         "string",
		"log-level":          "string",
	}
	if d := cmp.Diff(want, types); d != "" || schema.AdditionalProperties {
		t.Errorf("%s; additional properties %v", d, schema.AdditionalProperties)
	}
	if d := cmp.Diff([]string{"debug", "info", "warn", "error"}, schema.Properties["log-level"].Enum); d != "" {
		t.Error(d)
	}
	text, err := yaml.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	again, same := settings()
	if err := again.Parse([]string{"--config=" + write(t, string(text))}, nil, t.Output()); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	o.Proxies = []string{}
	if d := cmp.Diff(*o, *same); d != "" {
		t.Error(d)
	}
}

func TestInFolder(t *testing.T) {
	for in, want := range map[string]string{
		"sqlite:a.db": "sqlite:/data/a.db", "sqlite:/x/a.db": "sqlite:/x/a.db",
		"postgres://h/d": "postgres://h/d", "sqlite:": "sqlite:", "@/run/a": "@/run/a",
	} {
		if got := InFolder("/data", "sqlite:", in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	if got := InFolder(".", "sqlite:", "sqlite:a.db"); got != "sqlite:a.db" {
		t.Errorf("in the working folder: %s", got)
	}
}
