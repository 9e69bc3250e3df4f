package cli

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The portal's answers, as far as the tables have them, and with a field that only -o json shows.
const (
	answerProposal = `{"resource":{"name":"trnv1:x","title":"X"},"since":"2026-11-06T12:00:00Z","until":"2026-11-20T12:00:00Z",
		"yaml":"# proposed\napiVersion: acp.io/v1alpha1\n","canAdopt":true,
		"lines":[{"subject":{"id":"a1","name":"trnv1:a1","title":"A"},"action":"redis:connect","state":"new",
			"evidence":{"count":3,"firstSeen":"2026-11-10T10:00:00Z","lastSeen":"2026-11-11T10:00:00Z",
			"days":2,"daysObserved":14,"clusters":["m1","m2"],"decisions":{}}}],
		"unattributed":[{"source":"203.0.113.0/24","ports":["TCP/6379"],
			"evidence":{"count":1,"firstSeen":"2026-11-10T10:00:00Z","lastSeen":"2026-11-10T10:00:00Z",
			"days":1,"daysObserved":14,"clusters":["m1"],"decisions":{}}}],
		"unknownPorts":[{"port":9121,"protocol":"TCP","source":"trnv1:m",
			"evidence":{"count":1,"firstSeen":"2026-11-10T10:00:00Z","lastSeen":"2026-11-10T10:00:00Z",
			"days":1,"daysObserved":14,"clusters":["m1"],"decisions":{}}}]}`
	answerImpact = `{"available":true,"since":"2026-11-06T12:00:00Z","until":"2026-11-20T12:00:00Z","newlyAllowed":[],
		"newlyDenied":[{"cluster":"m1","subject":{"name":"trnv1:a1"},"resource":{"name":"trnv1:x"},"action":"redis:connect","port":6379,"protocol":"TCP",
			"count":5,"firstSeen":"2026-11-10T10:00:00Z","lastSeen":"2026-11-11T10:00:00Z","before":"audited","after":"default-denied"}],
		"allowed":{},"denied":{},"unchanged":3,
		"uncertain":[{"cluster":"m2","from":"2026-11-06T12:00:00Z","to":"2026-11-07T00:00:00Z",
			"reason":"The flows of m2 were not watched for 12h."}],"truncated":false}`
	answerEvidence = `{"value":64,"threshold":70,"enough":false,"windowSeconds":1209600,"parts":[{"name":"observed","points":24,"of":40,` +
		`"missing":{"code":"evidence.window-not-full","params":{"member":"m1","watched":"8d","window":"14d"},"text":"Flows of m1 were watched for ` +
		`8d of 14d: wait until the window is full."}},{"name":"weekly","points":20,"of":20}]}`
	answerUnused = `{"quietDays":10,"items":[{"policy":"p","sid":"s","effect":"Allow","subjects":[{"name":"trnv1:a1"}],` +
		`"resources":[{"name":"trnv1:x"}],"actions":["redis:connect"],"daysObserved":10,"reason":{"code":"unused.from-the-future","text":"Never ` +
		`seen in use."}}],"unobserved":["trnv1:y"]}`
	answerFlows = `{"available":true,"since":"2026-11-19T12:00:00Z","until":"2026-11-20T12:00:00Z","nextCursor":"c1","items":[{"cluster":"m1",` +
		`"subject":{"name":"trnv1:a1"},"resource":{"id":"bobs","name":"trnv1:x"},"port":6379,"protocol":"TCP","decision":"allowed",` +
		`"verdict":"forwarded","policy":"p","sid":"s","ticket":"T-4","count":5,"firstSeen":"2026-11-10T10:00:00Z","lastSeen":"2026-11-11T10:00:00Z"}]}`
	answerNoMore = `{"available":true,"since":"2026-11-19T12:00:00Z","until":"2026-11-20T12:00:00Z","items":[]}`
)

func TestFlowsFromThePortal(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		args   []string
		// answers by path; asked are the queries in the order of the calls.
		answers map[string][]answerOf
		asked   []string
		want    outcome
	}{
		"Propose": {
			reason:  "the tables are those of a store",
			args:    []string{"propose", "--resource", "bobs"},
			answers: map[string][]answerOf{"GET /resources/bobs/proposal": {ok(json.RawMessage(answerProposal))}},
			asked:   []string{""},
			want: outcome{ExitFindings, "ACTION         SUBJECT   STATE  CONNECTIONS  FIRST             LAST              DAYS     CLUSTERS\n" +
				"redis:connect  trnv1:a1  new    3            2026-11-10 10:00  2026-11-11 10:00  2 of 14  m1,m2\n\n" +
				"Without a name\nSOURCE          PORTS     CONNECTIONS  FIRST             LAST              DAYS     CLUSTERS\n" +
				"203.0.113.0/24  TCP/6379  1            2026-11-10 10:00  2026-11-10 10:00  1 of 14  m1\n\n" +
				"At ports that no action has\nPORT      SOURCE   CONNECTIONS  FIRST             LAST              DAYS     CLUSTERS\n" +
				"TCP/9121  trnv1:m  1            2026-11-10 10:00  2026-11-10 10:00  1 of 14  m1\n",
				""},
		},
		"ProposeYAML": {
			reason:  "the policy as the portal wrote it, for a window of one's own",
			args:    []string{"propose", "--resource", "a/b", "-o", "yaml", "--since", "3d"},
			answers: map[string][]answerOf{"GET /resources/a/b/proposal": {ok(json.RawMessage(answerProposal))}},
			asked:   []string{"since=2026-11-17T12:00:00Z&until=2026-11-20T12:00:00Z"},
			want:    outcome{ExitFindings, "# proposed\napiVersion: acp.io/v1alpha1\n", ""},
		},
		"Replay": {
			reason:  "what the ticket changes",
			args:    []string{"replay", "--ticket", "T-4"},
			answers: map[string][]answerOf{"GET /tickets/T-4/impact": {ok(json.RawMessage(answerImpact))}},
			asked:   []string{""},
			want: outcome{ExitFindings,
				"Newly denied\nCLIENT    RESOURCE  ACTION         PORT      CLUSTER  CONNECTIONS  FIRST             LAST              BEFORE   AFTER\n" +
					"trnv1:a1  trnv1:x   redis:connect  TCP/6379  m1       5            2026-11-10 10:00  2026-11-11 10:00  audited  default-denied\n\n" +
					"Uncertain\nCLUSTER  FROM              TO                WHY\n" +
					"m2       2026-11-06 12:00  2026-11-07 00:00  The flows of m2 were not watched for 12h.\n",
				""},
		},
		"ReplayUnavailable": {
			reason:  "an empty replay would read like no impact",
			args:    []string{"replay", "--ticket", "T-4"},
			answers: map[string][]answerOf{"GET /tickets/T-4/impact": {ok(json.RawMessage(`{"available":false,"message":"The replay took too long."}`))}},
			asked:   []string{""},
			want:    outcome{ExitFailed, "", "error: The replay took too long.\n"},
		},
		"Evidence": {
			reason:  "the score and what is missing",
			args:    []string{"evidence", "--resource", "bobs"},
			answers: map[string][]answerOf{"GET /resources/bobs/evidence": {ok(json.RawMessage(answerEvidence))}},
			asked:   []string{""},
			want: outcome{ExitFindings, "RESOURCE  SCORE  NEEDED  ENOUGH\nbobs      64     70      no\n\nMissing\nRESOURCE  PART      POINTS    MISSING\n" +
				"bobs      observed  24 of 40  Flows of m1 were watched for 8 days of 14 days: wait until the window is full.\n", ""},
		},
		"Unused": {
			reason:  "members that were not watched are listed, because an empty result would mean that nothing is unused",
			args:    []string{"unused", "--app", "a1", "--quiet", "10d"},
			answers: map[string][]answerOf{"GET /applications/a1/unused": {ok(json.RawMessage(answerUnused))}},
			asked:   []string{"quietDays=10"},
			want: outcome{ExitFindings,
				"STATEMENT  SUBJECTS  ACTIONS        RESOURCES  LAST USED  WHY\n" +
					"p/s        trnv1:a1  redis:connect  trnv1:x    never      Never seen in use.\n",
				"trnv1:y was not watched well enough to say anything.\n"},
		},
		"Flows": {
			reason: "every filter is the portal's, and all pages are read",
			args: []string{
				"flows", "--resource", "bobs", "--decision", "allowed,audited",
				"--port", "6379", "--unattributed", "--search", "x y", "--limit", "0",
			},
			answers: map[string][]answerOf{"GET /flows": {ok(json.RawMessage(answerFlows)), ok(json.RawMessage(answerNoMore))}},
			asked: []string{"decision=allowed&decision=audited&limit=200&port=6379&q=x y&resource=bobs&since=2026-11-19T12:00:00Z&" +
				"unattributed=true&until=2026-11-20T12:00:00Z",
				"cursor=c1&decision=allowed&decision=audited&limit=200&port=6379&q=x y&resource=bobs&since=2026-11-19T12:00:00Z&unattributed=true&" +
					"until=2026-11-20T12:00:00Z"},
			want: outcome{ExitFine,
				"LAST              CLIENT    RESOURCE  PORT      CLUSTER  DECISION  VERDICT    CONNECTIONS  FIRST             STATEMENT  TICKET\n" +
					"2026-11-11 10:00  trnv1:a1  bobs      TCP/6379  m1       allowed   forwarded  5            2026-11-10 10:00  p/s        T-4\n", ""},
		},
		"FlowsUnavailable": {
			reason:  "no rows would read like no connections",
			args:    []string{"flows"},
			answers: map[string][]answerOf{"GET /flows": {ok(json.RawMessage(`{"available":false,"items":[]}`))}},
			asked:   []string{"limit=100&since=2026-11-19T12:00:00Z&until=2026-11-20T12:00:00Z"},
			want:    outcome{ExitFailed, "", "error: the portal cannot read its flow store now: try again in a moment\n"},
		},
		"Forbidden": {
			reason:  "a refusal is printed with the portal's text",
			args:    []string{"evidence", "--resource", "bobs"},
			answers: map[string][]answerOf{"GET /resources/bobs/evidence": {problem(http.StatusForbidden, "forbidden", "Only its owners see it.")}},
			asked:   []string{""},
			want:    outcome{ExitFailed, "", "error: bobs: Only its owners see it.\n"},
		},
		"OnlyWithAStore": {
			reason: "a flag that the portal does not know is not ignored",
			args:   []string{"propose", "--resource", "bobs", "--reviewed", "3d"},
			want:   outcome{ExitUsage, "", "error: --reviewed and --min-count go with --store; see --help\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStandIn(t, tc.answers)
			got := portalRun(t, "", tc.args...)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			var asked []string
			for _, c := range s.calls {
				q, err := url.QueryUnescape(c.Query)
				if err != nil {
					t.Fatal(err)
				}
				asked = append(asked, q)
			}
			if diff := cmp.Diff(tc.asked, asked); diff != "" {
				t.Errorf("%s: asked (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPortalAnswersInFull(t *testing.T) {
	newStandIn(t, map[string][]answerOf{"GET /resources/bobs/proposal": {ok(json.RawMessage(answerProposal))}})
	got := portalRun(t, "", "propose", "--resource", "bobs", "-o", "json")
	var p map[string]any
	if err := json.Unmarshal([]byte(got.out), &p); err != nil || p["canAdopt"] != true {
		t.Errorf("-o json leaves out what the tables do not need: %v\n%s", err, got.out)
	}
}
