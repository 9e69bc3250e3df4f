package main

import (
	"bytes"
	"context"
	"database/sql"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gorm.io/gorm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/ledger"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/testenv/eventually"
)

// lost is a portal that was backed up, went on, and is gone.
type lost struct {
	backup, laterLedger, heads string
	provider                   *portaltest.Provider
}

// loseAfterBackup makes a portal with two grants (T-1 and T-2), a pending request (T-3) and a policy that was written with kubectl. After the
// backup T-1 is revoked, T-3 is rejected and the policy is deleted.
func loseAfterBackup(t *testing.T) lost {
	t.Helper()
	config := portaltest.APIServer(t, true)
	f := newFleet(t, config)
	l := lost{provider: portaltest.NewProvider(t)}
	o := testOptions(t, config, l.provider)
	p := start(t, o)
	people := login(t, p, l.provider)
	ask(t, people["alice"], "app-888", "bobs-cluster")
	ask(t, people["erin"], "app-889", "bobs-cluster")
	ask(t, people["alice"], "app-888", "ledger-db-cache")
	approve(t, people["carol"], "T-1")
	approve(t, people["bob"], "T-1")
	approve(t, people["zoe"], "T-2")
	approve(t, people["bob"], "T-2")
	eventually.True(t, "both statements are written", func() bool { acp, err := f.policy(); return err == nil && len(acp.Spec.Statements) == 2 })
	f.report(map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized})
	for _, id := range []string{"T-1", "T-2"} {
		eventually.True(t, id+" is effective", func() bool { return ticketOf(t, people["alice"], people["erin"], id).State == "effective" })
	}

	db, err := database.Open(t.Context(), o.database)
	if err != nil {
		t.Fatal(err)
	}
	lines := ledgerstore.NewReader(db)
	recorded := func(action string) func() bool {
		return func() bool {
			all, _, err := lines.List(t.Context(), ledger.Filter{Action: action, Object: "AccessControlPolicy/by-hand"})
			return err == nil && len(all) == 1
		}
	}
	eventually.True(t, "the portal has compared the host cluster with its ledger", func() bool {
		begun := false
		err := db.Read(t.Context(), func(tx *gorm.DB) error {
			return database.Rows(tx, func(*sql.Rows) error { begun = true; return nil }, "SELECT 1 FROM ledger_objects WHERE kind = ''")
		})
		return err == nil && begun
	})
	byHand := &v1alpha1.AccessControlPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "by-hand"},
		Spec: v1alpha1.AccessControlPolicySpec{Statements: []v1alpha1.Statement{
			{
				SID:       "allow",
				Effect:    v1alpha1.EffectAllow,
				Subjects:  []v1alpha1.Subject{portaltest.App889},
				Actions:   []v1alpha1.Action{"redis:connect"},
				Resources: []v1alpha1.ResourceName{portaltest.LedgerCache},
			},
			{
				SID:       "deny",
				Effect:    v1alpha1.EffectDeny,
				Subjects:  []v1alpha1.Subject{portaltest.App888},
				Actions:   []v1alpha1.Action{"redis:connect"},
				Resources: []v1alpha1.ResourceName{portaltest.LedgerCache},
			},
		}},
	}
	if err := f.c.Create(t.Context(), byHand); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the policy is in the ledger", recorded("object.created"))

	dir := t.TempDir()
	l.backup = filepath.Join(dir, "acp.backup")
	if out, err := runPortal(t, "backup", o, "--to="+l.backup); err != nil {
		t.Fatalf("backup: %v\n%s", err, out)
	}

	if a := people["bob"].Post("/api/v1/tickets/T-1/revoke", map[string]any{"reason": "leaked"}); a.Status != http.StatusOK {
		t.Fatalf("revoke: %d %s", a.Status, a.Body)
	}
	x := ticketOf(t, people["carol"], nil, "T-3")
	if a := people["carol"].Post(
		"/api/v1/tickets/T-3/decision",
		map[string]any{"decision": "reject", "comment": "no", "version": x.Version},
	); a.Status != http.StatusOK {
		t.Fatalf("reject: %d %s", a.Status, a.Body)
	}
	if err := f.c.Delete(t.Context(), byHand); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the deletion is in the ledger", recorded("object.deleted"))
	eventually.True(t, "the statement is gone", func() bool { acp, err := f.policy(); return err == nil && len(acp.Spec.Statements) == 1 })
	p.stop()
	var exported bytes.Buffer
	if _, err := ledger.Export(&exported, lines.Lines(t.Context(), 1)); err != nil {
		t.Fatal(err)
	}
	last, _, err := lines.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	l.laterLedger, l.heads = filepath.Join(dir, "ledger.jsonl"), filepath.Join(dir, "heads.jsonl")
	head := `{"seq":` + strconv.FormatInt(last.Seq, 10) + `,"hash":"` + last.Hash + `","at":"2026-01-02T03:04:05Z"}` + "\n"
	for file, text := range map[string]string{l.laterLedger: exported.String(), l.heads: head} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func login(t *testing.T, p *program, provider *portaltest.Provider) map[string]*portaltest.Browser {
	t.Helper()
	people := map[string]*portaltest.Browser{}
	for _, who := range []string{"alice", "erin", "carol", "zoe", "bob", "frank", "dave"} {
		people[who] = portaltest.NewBrowser(t, p.base)
		people[who].Login(provider, "/", who)
	}
	return people
}

func ask(t *testing.T, who *portaltest.Browser, application, resource string) string {
	t.Helper()
	a := who.Post(
		"/api/v1/tickets",
		map[string]any{"reason": "r", "items": []map[string]any{{"application": application, "resource": resource, "actions": []string{"redis:connect"}}}},
	)
	if a.Status != http.StatusCreated {
		t.Fatalf("ask: %d %s", a.Status, a.Body)
	}
	var x ticket
	a.Into(t, &x)
	return x.ID
}

func approve(t *testing.T, who *portaltest.Browser, id string) {
	t.Helper()
	x := ticketOf(t, who, nil, id)
	if a := who.Post("/api/v1/tickets/"+id+"/decision", map[string]any{"decision": "approve", "version": x.Version}); a.Status != http.StatusOK {
		t.Fatalf("approve %s: %d %s", id, a.Status, a.Body)
	}
}

// ticketOf asks the first who may see the ticket.
func ticketOf(t *testing.T, who, other *portaltest.Browser, id string) (x ticket) {
	t.Helper()
	a := who.Get("/api/v1/tickets/" + id)
	if a.Status == http.StatusNotFound && other != nil {
		a = other.Get("/api/v1/tickets/" + id)
	}
	a.Into(t, &x)
	return x
}

// runPortal runs a command of the portal with the database, the kubeconfig and the namespace of the options.
func runPortal(t *testing.T, name string, o options, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := commands()[name]
	parsed, err := parseCommand(name, c, append([]string{"--database=" + o.database, "--kubeconfig=" + o.kubeconfig}, args...), &out)
	if err == nil {
		err = c.run(t.Context(), parsed, &out)
	}
	return out.String(), err
}

// rebuilt is an empty host cluster, and the options of a portal with an empty database for it.
func rebuilt(t *testing.T, l lost) (*rest.Config, client.Client, options) {
	t.Helper()
	config := portaltest.APIServer(t, true)
	return config, newFleetClient(t, config), testOptions(t, config, l.provider)
}

// watchStatements records every sid that the policies of a host cluster ever have, until the function is called that it returns.
func watchStatements(t *testing.T, config *rest.Config) func() map[string]bool {
	t.Helper()
	scheme := newFleetClient(t, config).Scheme()
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w, err := c.Watch(ctx, &v1alpha1.AccessControlPolicyList{})
	if err != nil {
		t.Fatal(err)
	}
	seen, done := map[string]bool{}, make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if p, ok := e.Object.(*v1alpha1.AccessControlPolicy); ok {
				for _, s := range p.Spec.Statements {
					seen[p.Name+"/"+s.SID] = true
				}
			}
		}
	}()
	return func() map[string]bool { cancel(); w.Stop(); <-done; return seen }
}

// TestRestoredBackupDoesNotRestoreRevokedGrants: a portal and its host cluster are lost and rebuilt from a backup that is older than a revocation.
func TestRestoredBackupDoesNotRestoreRevokedGrants(t *testing.T) {
	l := loseAfterBackup(t)
	bobs := policy.PolicyNameFor(portaltest.BobsCluster)

	t.Run("the later ledger is known", func(t *testing.T) {
		config, c, o := rebuilt(t, l)
		stop := watchStatements(t, config)
		held := filepath.Join(t.TempDir(), "held.yaml")
		out, err := runPortal(t, "restore", o, "--from="+l.backup, "--later-ledger="+l.laterLedger, "--anchor-heads="+l.heads, "--held="+held)
		if err != nil {
			t.Fatalf("restore: %v\n%s", err, out)
		}
		for _, want := range []string{"T-1, T-3", "AccessControlPolicy/by-hand", held} {
			if !strings.Contains(out, want) {
				t.Errorf("the report lacks %q:\n%s", want, out)
			}
		}
		if strings.Contains(out, "no anchor vouches") {
			t.Errorf("a head vouches for the whole ledger:\n%s", out)
		}
		if text, err := os.ReadFile(held); err != nil || !strings.Contains(string(text), "sid: allow") || strings.Contains(string(text), "sid: deny") {
			t.Errorf("the held statements: %v\n%s", err, text)
		}

		p := start(t, o)
		people := login(t, p, l.provider)
		f := &fleet{t: t, c: c}
		eventually.True(t, "the removal of T-1 is written", func() bool {
			x := ticketOf(t, people["alice"], nil, "T-1")
			return x.State == "revoking" && strings.Contains(x.Items[0].Message.Text, "waiting until no member has it")
		})
		f.report(map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized})
		eventually.True(t, "T-1 is revoked", func() bool { return ticketOf(t, people["alice"], nil, "T-1").State == "revoked" })
		for id, want := range map[string]string{"T-2": "effective", "T-3": "withdrawn"} {
			if x := ticketOf(t, people["alice"], people["erin"], id); x.State != want {
				t.Errorf("%s is %s, want %s", id, x.State, want)
			}
		}
		// The restored portal grants again, under a number that was never used.
		id := ask(t, people["alice"], "app-888", "bobs-cluster")
		if id != "T-4" {
			t.Errorf("the next ticket is %s", id)
		}
		approve(t, people["carol"], id)
		approve(t, people["bob"], id)
		eventually.True(t, "the new statement is written", func() bool { acp, err := f.policy(); return err == nil && len(acp.Spec.Statements) == 2 })
		p.stop()
		if got, want := stop(), map[string]bool{bobs + "/t-2-1": true, bobs + "/t-4-1": true, "by-hand/deny": true}; !equalSets(got, want) {
			t.Errorf("statements that were ever there: %v, want %v", got, want)
		}
		verifyLedger(t, o, l.heads)
	})

	t.Run("nothing is known", func(t *testing.T) {
		config, c, o := rebuilt(t, l)
		stop := watchStatements(t, config)
		held := filepath.Join(t.TempDir(), "held.yaml")
		out, err := runPortal(t, "restore", o, "--from="+l.backup, "--hold-grants", "--held="+held)
		if err != nil {
			t.Fatalf("restore: %v\n%s", err, out)
		}
		p := start(t, o)
		people := login(t, p, l.provider)
		f := &fleet{t: t, c: c}
		eventually.True(t, "the removal of T-2 is written", func() bool {
			return strings.Contains(ticketOf(t, people["erin"], nil, "T-2").Items[0].Message.Text, "waiting until no member has it")
		})
		f.report(map[string]v1alpha1.MemberState{"m1": v1alpha1.MemberRealized})
		for id, want := range map[string]string{"T-1": "revoked", "T-2": "revoked", "T-3": "withdrawn"} {
			eventually.True(t, id+" is "+want, func() bool { return ticketOf(t, people["alice"], people["erin"], id).State == want })
		}
		if id := ask(t, people["alice"], "app-888", "bobs-cluster"); id != "T-100004" {
			t.Errorf("the next ticket is %s: a number that was used after the backup names another statement", id)
		}
		p.stop()
		if got, want := stop(), map[string]bool{"by-hand/deny": true}; !equalSets(got, want) {
			t.Errorf("statements that were ever there: %v, want %v", got, want)
		}
		verifyLedger(t, o, "")

		if _, err := runPortal(
			t, "restore", o, "--from="+l.backup, "--hold-grants", "--held="+held,
		); err == nil || !strings.Contains(err.Error(), "the database is not empty") {
			t.Errorf("a restore over a database that is used: %v", err)
		}
	})

	t.Run("an anchor contradicts", func(t *testing.T) {
		_, c, o := rebuilt(t, l)
		_, err := runPortal(t, "restore", o, "--from="+l.backup, "--nothing-since", "--anchor-heads="+l.heads)
		if err == nil || !strings.Contains(err.Error(), "something happened after the backup") {
			t.Errorf("got %v", err)
		}
		var policies v1alpha1.AccessControlPolicyList
		if err := c.List(t.Context(), &policies); err != nil || len(policies.Items) > 0 {
			t.Errorf("a restore that is refused writes nothing: %v %v", policies.Items, err)
		}
	})

	t.Run("everything moves", func(t *testing.T) {
		_, c, o := rebuilt(t, l)
		if out, err := runPortal(t, "restore", o, "--from="+l.backup, "--nothing-since"); err != nil {
			t.Fatalf("restore: %v\n%s", err, out)
		}
		f := &fleet{t: t, c: c}
		acp, err := f.policy()
		if err != nil || len(acp.Spec.Statements) != 2 {
			t.Fatalf("all grants are restored: %v %v", acp.Spec.Statements, err)
		}
		// A restore that is cut short after the host cluster and before the database is run again.
		fresh := testOptions(t, &rest.Config{}, l.provider)
		fresh.kubeconfig = o.kubeconfig
		if out, err := runPortal(t, "restore", fresh, "--from="+l.backup, "--nothing-since"); err != nil {
			t.Errorf("restore again: %v\n%s", err, out)
		}
		acp.Spec.Statements = acp.Spec.Statements[:1]
		if err := c.Update(t.Context(), acp); err != nil {
			t.Fatal(err)
		}
		fresh = testOptions(t, &rest.Config{}, l.provider)
		fresh.kubeconfig = o.kubeconfig
		if _, err := runPortal(
			t, "restore", fresh, "--from="+l.backup, "--nothing-since",
		); err == nil || !strings.Contains(err.Error(), "AccessControlPolicy "+bobs) {
			t.Errorf("a host cluster with other objects: %v", err)
		}
	})
}

func equalSets(a, b map[string]bool) bool {
	return len(a) == len(b) && !slices.ContainsFunc(keys(a), func(k string) bool { return !b[k] })
}

func keys(m map[string]bool) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}

// verifyLedger verifies the chain of a portal's database against the heads in a file; "": there are none.
func verifyLedger(t *testing.T, o options, heads string) {
	t.Helper()
	db, err := database.Open(t.Context(), o.database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // it was only read
	var witnesses []ledger.Witness
	if heads != "" {
		f, err := os.Open(heads)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }() // it was only read
		for h, err := range ledger.ReadHeads(f) {
			if err != nil {
				t.Fatal(err)
			}
			witnesses = append(witnesses, ledger.Witness{Anchor: "before", Head: h})
		}
	}
	lines := ledgerstore.NewReader(db)
	if _, err := ledger.Check(lines.Lines(t.Context(), 1), 1, witnesses); err != nil {
		t.Errorf("the restored ledger: %v", err)
	}
	restored, _, err := lines.List(t.Context(), ledger.Filter{Action: "portal.restored"})
	if err != nil || len(restored) != 1 {
		t.Errorf("the ledger contains the restore other than once: %v %v", restored, err)
	}
}

func TestCommandsRefuse(t *testing.T) {
	for name, tc := range map[string]struct {
		command string
		args    []string
		want    string
	}{
		"no file to write":         {"backup", nil, "--to is required"},
		"no file to read":          {"restore", []string{"--hold-grants"}, "--from is required"},
		"nothing about what ended": {"restore", []string{"--from=x"}, "--later-ledger, --hold-grants and --nothing-since"},
		"two answers":              {"restore", []string{"--from=x", "--hold-grants", "--nothing-since"}, "give one of"},
		"another command's flag":   {"backup", []string{"--from=x"}, "from"},
		"no such file":             {"restore", []string{"--from=/nowhere/x", "--hold-grants"}, "/nowhere/x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := runPortal(t, tc.command, options{database: "sqlite:x.db", kubeconfig: "none"}, tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want %q, got %v", tc.want, err)
			}
		})
	}
}
