package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/portalclient"
)

// call is one request that the portal's stand-in got.
type call struct{ Method, Path, Query, Authorization, Key, Body string }

// standIn answers as a portal would, and records the requests. Every answer is used once, in order, for its path.
type standIn struct {
	*httptest.Server
	t       *testing.T
	answers map[string][]answerOf
	calls   []call
}

type answerOf struct {
	status int
	body   any
}

func newStandIn(t *testing.T, answers map[string][]answerOf) *standIn {
	s := &standIn{t: t, answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	t.Setenv(envServer, s.URL)
	t.Setenv(envToken, "acp_test")
	return s
}

func (s *standIn) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.calls = append(s.calls, call{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Authorization"), r.Header.Get("Idempotency-Key"), string(body)})
	key := r.Method + " " + strings.TrimPrefix(r.URL.Path, "/api/v1")
	if len(s.answers[key]) == 0 {
		s.t.Errorf("unexpected call %s", key)
		w.WriteHeader(http.StatusTeapot)
		return
	}
	a := s.answers[key][0]
	s.answers[key] = s.answers[key][1:]
	if a.status >= http.StatusBadRequest {
		w.Header().Set("Content-Type", "application/problem+json")
	} else {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(a.status)
	if err := json.NewEncoder(w).Encode(a.body); err != nil {
		s.t.Error(err)
	}
}

func ok(body any) answerOf { return answerOf{http.StatusOK, body} }

func problem(status int, code, detail string) answerOf {
	return answerOf{status, portalclient.Problem{Code: code, Detail: &detail, Status: status, Title: http.StatusText(status), Type: "about:blank"}}
}

func ticket(id string, state portalclient.TicketState, version int64) portalclient.Ticket {
	step := portalclient.Step{
		Name:      "leader",
		State:     portalclient.StepStateCurrent,
		Quorum:    1,
		Approvers: []portalclient.Person{{Id: "carol", DisplayName: "Carol"}},
		Votes:     []portalclient.Vote{},
	}
	if state != portalclient.TicketStatePending {
		step.State = portalclient.StepStateApproved
	}
	return portalclient.Ticket{
		Id:        id,
		Kind:      portalclient.TicketKindGrant,
		State:     state,
		Version:   version,
		Requester: portalclient.Person{Id: "alice", DisplayName: "Alice"},
		Reason:    "cache",
		Events:    []portalclient.Event{},
		Items: []portalclient.TicketItem{
			{
				Position: 0,
				State:    state,
				Steps:    []portalclient.Step{step},
				Clusters: []portalclient.ClusterState{},
				Application: &portalclient.CatalogRef{
					Title: "App 888",
				},
				Resource: &portalclient.CatalogRef{Title: "Bob's cluster"},
				Actions:  &[]string{"redis:connect"},
				Can:      portalclient.ItemMay{Extend: true},
			},
		},
	}
}

type outcome struct {
	code     int
	out, err string
}

func portalRun(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	code, out, errs := run(t, stdin, args...)
	return outcome{code, out, errs}
}

func TestLogin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "acp", "credentials.yaml")
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	s := newStandIn(t, map[string][]answerOf{
		"POST /auth/device": {
			ok(portalclient.DeviceStart{DeviceCode: "dev", UserCode: "BCDF-GHJK", VerificationUri: "https://acp.example/device", ExpiresIn: 60}),
		},
		"POST /auth/device/token": {
			problem(400, "authorization-pending", "Nobody agreed yet."),
			ok(portalclient.DeviceToken{Token: "acp_device", ExpiresAt: until}),
		},
		"GET /me": {
			ok(portalclient.Me{Person: portalclient.Person{Id: "alice", DisplayName: "Alice"}}),
			ok(portalclient.Me{Person: portalclient.Person{Id: "alice", DisplayName: "Alice"}}),
		},
	})
	t.Setenv(envToken, "")
	if o := portalRun(t, "", "whoami", "--credentials", file); o.code != ExitFailed || !strings.Contains(o.err, "kubectl acp login") {
		t.Errorf("without a login: %+v", o)
	}
	o := portalRun(t, "", "login", "--server", s.URL, "--credentials", file)
	if o.code != ExitFine || !strings.Contains(o.err, "BCDF-GHJK") || !strings.Contains(o.out, "as Alice") {
		t.Fatalf("login: %+v", o)
	}
	if begun := s.calls[0]; !strings.Contains(begun.Body, `"client":"kubectl acp`) {
		t.Errorf("the one who is asked sees what asks: %+v", begun)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the logins must be private: %v %v", info.Mode(), err)
	}
	t.Setenv(envServer, "")
	if o := portalRun(t, "", "whoami", "--credentials", file); o.code != ExitFine || !strings.Contains(o.out, "Alice (alice)") {
		t.Errorf("the last portal is the default: %+v", o)
	}
	if last := s.calls[len(s.calls)-1]; last.Authorization != "Bearer acp_device" {
		t.Errorf("sent %q", last.Authorization)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if o := portalRun(t, "", "whoami", "--credentials", file); o.code != ExitFailed || !strings.Contains(o.err, "chmod 600") {
		t.Errorf("logins that others can read: %+v", o)
	}
}

func TestLoginThatIsNotApproved(t *testing.T) {
	s := newStandIn(t, map[string][]answerOf{
		"POST /auth/device":       {ok(portalclient.DeviceStart{DeviceCode: "dev", UserCode: "X", ExpiresIn: 60})},
		"POST /auth/device/token": {problem(400, "expired-code", "The code is over: log in again.")},
	})
	o := portalRun(t, "", "login", "--server", s.URL, "--credentials", filepath.Join(t.TempDir(), "c.yaml"))
	if o.code != ExitFailed || !strings.Contains(o.err, "The code is over") {
		t.Errorf("%+v", o)
	}
}

func TestLogout(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	s := newStandIn(t, map[string][]answerOf{"DELETE /me/tokens/current": {problem(503, "unavailable", "Not now."), ok(nil)}})
	t.Setenv(envToken, "")
	c, err := portalclient.ReadCredentials(file)
	if err != nil {
		t.Fatal(err)
	}
	c.Current, c.Logins[s.URL] = s.URL, portalclient.Login{Token: "acp_x", ExpiresAt: time.Now().Add(time.Hour)}
	if err := c.Save(); err != nil {
		t.Fatal(err)
	}
	if o := portalRun(t, "", "logout", "--credentials", file); o.code != ExitFailed || !strings.Contains(o.err, "is kept") {
		t.Errorf("a login that the portal did not end must not be forgotten: %+v", o)
	}
	if o := portalRun(t, "", "logout", "--credentials", file); o.code != ExitFine {
		t.Errorf("%+v", o)
	}
	if after, err := portalclient.ReadCredentials(file); err != nil || len(after.Logins) != 0 {
		t.Errorf("%+v %v", after, err)
	}
}

func TestServerAddress(t *testing.T) {
	for address, tc := range map[string]struct {
		reason string
		ok     bool
	}{
		"https://acp.example.com":      {"the usual", true},
		"https://acp.example.com/sub/": {"below a path", true},
		"http://127.0.0.1:8080":        {"this machine", true},
		"http://acp.example.com":       {"the token would be sent in the clear", false},
		"acp.example.com":              {"no scheme", false},
		"https://user:pw@acp.example":  {"a password in an address ends in logs", false},
		"ftp://acp.example.com":        {"not the web", false},
		"":                             {"nothing", false},
	} {
		if _, err := portalclient.ParseServer(address); (err == nil) != tc.ok {
			t.Errorf("%q (%s): %v", address, tc.reason, err)
		}
	}
}

func TestTicketsArePaged(t *testing.T) {
	next := "c2"
	pages := func() map[string][]answerOf {
		return map[string][]answerOf{"GET /tickets": {
			ok(portalclient.TicketList{Items: []portalclient.Ticket{ticket("T-2", portalclient.TicketStatePending, 1)}, NextCursor: &next}),
			ok(portalclient.TicketList{Items: []portalclient.Ticket{ticket("T-1", portalclient.TicketStateEffective, 5)}})}}
	}
	s := newStandIn(t, pages())
	o := portalRun(t, "", "tickets", "--view", "all", "--state", "pending,effective", "--limit", "0")
	if o.code != ExitFine || !strings.Contains(o.out, "T-2") || !strings.Contains(o.out, "T-1") || !strings.Contains(o.out, "Carol") {
		t.Errorf("%+v", o)
	}
	want := []string{"limit=200&state=pending&state=effective&view=all", "cursor=c2&limit=200&state=pending&state=effective&view=all"}
	if d := cmp.Diff(want, []string{s.calls[0].Query, s.calls[1].Query}); d != "" {
		t.Error(d)
	}
	newStandIn(t, pages())
	if o := portalRun(t, "", "tickets", "--limit", "1"); o.code != ExitFine || strings.Contains(o.out, "T-1 ") || !strings.Contains(o.err, "--limit 0") {
		t.Errorf("a cut list must say so: %+v", o)
	}
}

// TestPrintedTextIsHarmless: what people write on tickets is shown in other people's terminals.
func TestPrintedTextIsHarmless(t *testing.T) {
	x := ticket("T-1", portalclient.TicketStatePending, 1)
	x.Reason = "harmless\x1b[2J\r\nT-1 is approved\u202e"
	newStandIn(t, map[string][]answerOf{"GET /tickets/T-1": {ok(x)}})
	o := portalRun(t, "", "tickets", "T-1")
	if o.code != ExitFine || strings.ContainsAny(o.out, "\x1b\r\u202e") || strings.Contains(o.out, "\nT-1 is approved") {
		t.Errorf("%q", o.out)
	}
}

// TestTablesAreHarmless: what flows are named by comes from the members.
func TestTablesAreHarmless(t *testing.T) {
	var out strings.Builder
	if err := table(&out, [][]string{{"FROM", "TO"}, {"app\x1b[2J\r\nall is\tallowed\u202e", "订单 缓存"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "FROM                   TO\napp[2J all is allowed  订单 缓存\n"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestApprove(t *testing.T) {
	answers := func() map[string][]answerOf {
		return map[string][]answerOf{
			"GET /tickets/T-1":           {ok(ticket("T-1", portalclient.TicketStatePending, 7))},
			"POST /tickets/T-1/decision": {ok(ticket("T-1", portalclient.TicketStateApproved, 8))},
		}
	}
	for name, tc := range map[string]struct {
		reason, stdin string
		args          []string
		code          int
		sent          string // the decision's body, or empty
	}{
		"yes":         {"what was shown is what is approved", "y\n", []string{"approve", "T-1"}, ExitFine, `{"decision":"approve","version":7}`},
		"no":          {"nothing is sent", "n\n", []string{"approve", "T-1"}, ExitFine, ""},
		"no terminal": {"the end of the input is no agreement", "", []string{"approve", "T-1"}, ExitFine, ""},
		"not asked": {
			"for scripts", "", []string{"approve", "T-1", "--yes", "--comment", "fine"},
			ExitFine, `{"comment":"fine","decision":"approve","version":7}`,
		},
		"one item": {"the others wait", "", []string{"approve", "T-1", "-y", "--item", "0"}, ExitFine, `{"decision":"approve","item":0,"version":7}`},
		"reject": {
			"with its reason", "", []string{"reject", "T-1", "-y", "--comment", "no"},
			ExitFine, `{"comment":"no","decision":"reject","version":7}`,
		},
		"silent reject": {"a rejection says why", "", []string{"reject", "T-1", "-y"}, ExitUsage, ""},
		"not a ticket":  {"it would be part of a path", "", []string{"approve", "../me"}, ExitUsage, ""},
		"nothing":       {"which?", "", []string{"approve"}, ExitUsage, ""},
		"item of two":   {"of which?", "", []string{"approve", "T-1", "T-2", "--item", "0"}, ExitUsage, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStandIn(t, answers())
			o := portalRun(t, tc.stdin, tc.args...)
			sent := ""
			for _, c := range s.calls {
				if c.Method == http.MethodPost {
					sent = c.Body
				}
			}
			if o.code != tc.code || sent != tc.sent {
				t.Errorf("%s: %+v, sent %q, want %q", tc.reason, o, sent, tc.sent)
			}
		})
	}
}

// TestApproveManyContinuesAfterARefusal checks that a refused ticket does not stop the others, and that the exit code reports it.
func TestApproveManyContinuesAfterARefusal(t *testing.T) {
	newStandIn(t, map[string][]answerOf{
		"GET /tickets/T-1": {
			ok(ticket("T-1", portalclient.TicketStatePending, 1)),
		},
		"GET /tickets/T-2":           {ok(ticket("T-2", portalclient.TicketStatePending, 1))},
		"POST /tickets/T-1/decision": {problem(409, "stale", "The ticket changed since you looked.")},
		"POST /tickets/T-2/decision": {ok(ticket("T-2", portalclient.TicketStateApproved, 2))},
	})
	o := portalRun(t, "", "approve", "T-1", "T-2", "--yes")
	if o.code != ExitFailed || !strings.Contains(o.err, "T-1: The ticket changed") || !strings.Contains(o.out, "T-2 is approved") {
		t.Errorf("%+v", o)
	}
}

func TestRequest(t *testing.T) {
	args := []string{"request", "--app", "app-888", "--resource", "bobs-cluster", "--action", "redis:connect", "--reason", "cache"}
	t.Run("effective", func(t *testing.T) {
		s := newStandIn(t, map[string][]answerOf{
			"POST /tickets":    {{http.StatusCreated, ticket("T-9", portalclient.TicketStatePending, 1)}},
			"GET /tickets/T-9": {ok(ticket("T-9", portalclient.TicketStateEffective, 4))},
		})
		o := portalRun(t, "", append(args, "--for", "30d", "--wait")...)
		if o.code != ExitFine || !strings.Contains(o.out, "T-9  grant  effective") {
			t.Errorf("%+v", o)
		}
		const want = `{"durationSeconds":2592000,"items":[{"actions":["redis:connect"],"application":"app-888","resource":"bobs-cluster"}],` +
			`"kind":"grant","reason":"cache"}`
		if d := cmp.Diff(want, s.calls[0].Body); d != "" {
			t.Error(d)
		}
		if len(s.calls[0].Key) < 8 {
			t.Errorf("a request needs an idempotency key: %q", s.calls[0].Key)
		}
	})
	t.Run("rejected", func(t *testing.T) {
		newStandIn(t, map[string][]answerOf{
			"POST /tickets":    {{http.StatusCreated, ticket("T-9", portalclient.TicketStatePending, 1)}},
			"GET /tickets/T-9": {ok(ticket("T-9", portalclient.TicketStateRejected, 2))},
		})
		if o := portalRun(t, "", append(args, "--wait")...); o.code != ExitFindings {
			t.Errorf("%+v", o)
		}
	})
	t.Run("duplicate", func(t *testing.T) {
		p := problem(409, "duplicate", "It is asked for already.")
		body := p.body.(portalclient.Problem)
		other := "T-3"
		body.Ticket = &other
		newStandIn(t, map[string][]answerOf{"POST /tickets": {{409, body}}})
		if o := portalRun(t, "", args...); o.code != ExitFailed || !strings.Contains(o.err, "kubectl acp tickets T-3") {
			t.Errorf("%+v", o)
		}
	})
	for name, bad := range map[string][]string{
		"mode and action": {"request", "--resource", "r", "--mode", "Enforce", "--action", "x", "--reason", "r"},
		"odd mode":        {"request", "--resource", "r", "--mode", "enforce", "--reason", "r"},
		"no reason":       {"request", "--resource", "r", "--mode", "Enforce"},
		"no resource":     {"request", "--app", "a", "--action", "x", "--reason", "r"},
		"odd time":        append(args, "--for", "soon"),
		"endless time":    append(args, "--for", "99999999999d"),
	} {
		newStandIn(t, nil)
		if o := portalRun(t, "", bad...); o.code != ExitUsage {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestExtendRequestsOnlyWhatMayBeExtended(t *testing.T) {
	s := newStandIn(t, map[string][]answerOf{
		"GET /tickets/T-1": {ok(ticket("T-1", portalclient.TicketStateEffective, 5))},
		"POST /tickets":    {{http.StatusCreated, ticket("T-2", portalclient.TicketStatePending, 1)}},
	})
	if o := portalRun(t, "", "extend", "T-1", "--for", "8h", "--reason", "longer"); o.code != ExitFine {
		t.Fatalf("%+v", o)
	}
	const want = `{"durationSeconds":28800,"items":[{"target":{"item":0,"ticket":"T-1"}}],"kind":"extend","reason":"longer"}`
	if d := cmp.Diff(want, s.calls[1].Body); d != "" {
		t.Error(d)
	}
	newStandIn(t, map[string][]answerOf{"GET /tickets/T-1": {ok(ticket("T-1", portalclient.TicketStateEffective, 5))}})
	if o := portalRun(
		t, "", "extend", "T-1", "--item", "3", "--reason", "longer",
	); o.code != ExitFailed || !strings.Contains(o.err, "nothing that you could extend") {
		t.Errorf("%+v", o)
	}
}

func TestOddAnswers(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
	}))
	defer s.Close()
	t.Setenv(envToken, "acp_x")
	if o := portalRun(t, "", "whoami", "--server", s.URL); o.code != ExitFailed || !strings.Contains(o.err, "not what an ACP portal says") {
		t.Errorf("a redirect would carry the token away: %+v", o)
	}
	s.Close()
	if o := portalRun(t, "", "whoami", "--server", s.URL); o.code != ExitFailed || !strings.Contains(o.err, "cannot be reached") {
		t.Errorf("%+v", o)
	}
}

func FuzzPeriod(f *testing.F) {
	for _, s := range []string{"", "8h", "30d", "12w", "-1h", "d", "1.5d", "99999999999999999d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := parsePeriod(s); err == nil && d != nil && *d < 1 {
			t.Errorf("%q gives %d seconds", s, *d)
		}
	})
}
