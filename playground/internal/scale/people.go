package scale

import (
	"context"
	"crypto/rand"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/acp-io/acp/playground/internal/bench"
	"github.com/acp-io/acp/playground/internal/demo"
	"github.com/acp-io/acp/playground/internal/fleet"
	"github.com/acp-io/acp/playground/internal/oidc"
	"github.com/acp-io/acp/playground/internal/supervisor"
)

const (
	portalProcess = "portal"
	oidcPort      = "oidc"
	oidcClientID  = "acp-portal"
	// firstApplication is the number of the application of the first person. It is none of the clients that have grants.
	firstApplication = 200_000
	// ticketInterval is the time from one request of a person to the next. Each request is decided by two others, so that each person decides
	// every two minutes.
	ticketInterval = 4 * time.Minute
)

// people are the people who request and decide access. Person p has an application of their own, the next person is their leader, and the resources
// belong to the people in turn.
type people struct {
	run      *run
	sessions []bench.Session
	events   []bench.Events

	mu sync.Mutex
	// decided are the times that the portal took for a decision, and approved those from the last decision about a ticket until its access was read back
	// from all members.
	decided, approved []time.Duration
}

func personName(p int) string { return fmt.Sprintf("p%02d", p) }

// startPortal starts the portal with an OIDC provider and a catalog, and logs the people in. What it starts ends with the context or the run.
func (r *run) startPortal(ctx context.Context) (*people, error) {
	dir := r.fleet.Layout.Data(portalProcess)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the portal: %w", err)
	}
	if err := r.writeCatalog(filepath.Join(dir, "catalog")); err != nil {
		return nil, err
	}
	secret := rand.Text()
	secretFile := filepath.Join(dir, "oidc-client-secret")
	if err := os.WriteFile(secretFile, []byte(secret), 0o600); err != nil {
		return nil, fmt.Errorf("write the secret of the OIDC client: %w", err)
	}
	if err := r.startOIDC(ctx, secret, filepath.Join(dir, "oidc-signing.key")); err != nil {
		return nil, err
	}
	args := []string{
		"--listen=" + r.fleet.Ports.Address(portalProcess), "--public-url=" + r.portalURL(), "--kubeconfig=" + r.fleet.Layout.Kubeconfig(fleet.Portal),
		"--database=sqlite:" + filepath.Join(dir, "portal.db"), "--catalog=" + filepath.Join(dir, "catalog"),
		"--oidc-issuer=" + r.issuer(), "--oidc-client-id=" + oidcClientID, "--oidc-client-secret-file=" + secretFile,
		"--session-idle=8h", "--sensitive-login-max-age=8h",
	}
	if r.Flows > 0 {
		args = append(args, "--flow-store="+r.flowStore())
	}
	if err := r.supervisor.Add(supervisor.Spec{
		Name: portalProcess, Layer: fleet.LayerControlPlane, Path: filepath.Join(r.BinDir, "portal"), Args: args,
		Ready: func(ctx context.Context) error {
			return fleet.GetOK(ctx, http.DefaultClient, r.portalURL()+"/readyz", "")
		},
	}); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := r.supervisor.StartAndWait(limited, portalProcess); err != nil {
		return nil, err
	}
	out := &people{run: r}
	for p := range r.People {
		session, err := bench.Login(ctx, r.portalURL(), personName(p))
		if err != nil {
			return nil, err
		}
		events, err := session.Events(ctx)
		if err != nil {
			return nil, fmt.Errorf("follow the tickets of %s: %w", personName(p), err)
		}
		out.sessions, out.events = append(out.sessions, session), append(out.events, events)
	}
	return out, nil
}

func (r *run) portalURL() string { return "http://" + r.fleet.Ports.Address(portalProcess) }

func (r *run) issuer() string { return "http://" + r.fleet.Ports.Address(oidcPort) }

// startOIDC serves an OIDC provider, in which the people can log in, until the context ends.
func (r *run) startOIDC(ctx context.Context, secret, keyFile string) error {
	key, err := oidc.LoadKey(keyFile)
	if err != nil {
		return err
	}
	var accounts []demo.Person
	for p := range r.People {
		accounts = append(accounts, demo.Person{Username: personName(p), Name: personName(p), Email: personName(p) + "@trip.example"})
	}
	handler, err := oidc.NewHandler(oidc.Config{Issuer: r.issuer(), PortalURL: r.portalURL(), ClientID: oidcClientID, ClientSecret: secret, Key: key,
		People: accounts})
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", r.fleet.Ports.Address(oidcPort))
	if err != nil {
		return fmt.Errorf("listen for the OIDC provider: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }() // it returns when the server is closed
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}

// requestable returns the resources for which people request access: the second half, in which no other grants change.
func (o Options) requestable() int { return o.Resources - o.Resources/2 }

// writeCatalog writes the catalog with the people, their applications, and the resources that they request.
func (r *run) writeCatalog(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of the catalog: %w", err)
	}
	persons, owned := [][]string{{"id", "leader"}}, [][]string{{"id", "name", "owners"}}
	for p := range r.People {
		persons = append(persons, []string{personName(p), personName((p + 1) % r.People)})
		application := fmt.Sprint(firstApplication + p)
		owned = append(owned, []string{"app-" + application, subjectPrefix + application, "user:" + personName(p)})
	}
	catalog := [][]string{{"id", "name", "owners", "sensitivity"}}
	for n := range r.requestable() {
		i := r.Resources/2 + n
		catalog = append(catalog, []string{resourceName(i), fmt.Sprint(resourceOwner, i), "user:" + personName(n%r.People), "low"})
	}
	for name, rows := range map[string][][]string{"people.csv": persons, "applications.csv": owned, "resources.csv": catalog} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("write the catalog: %w", err)
		}
		if err := errors.Join(csv.NewWriter(f).WriteAll(rows), f.Close()); err != nil {
			return fmt.Errorf("write the catalog: %w", err)
		}
	}
	return nil
}

// decide lets every person request access again and again, two others decide it, and the access end once it was read back, until the context ends.
func (p *people) decide(ctx context.Context) error {
	errs := make([]error, len(p.sessions))
	var running sync.WaitGroup
	for i := range p.sessions {
		running.Go(func() {
			// The first requests are spread over the interval.
			next := time.NewTimer(ticketInterval * time.Duration(i) / time.Duration(len(p.sessions)))
			defer next.Stop()
			for n := 0; ; n++ {
				select {
				case <-next.C:
				case <-ctx.Done():
					return
				}
				next.Reset(ticketInterval)
				if err := p.ticket(ctx, i, n); err != nil {
					if ctx.Err() == nil { // otherwise it was interrupted
						errs[i] = fmt.Errorf("request %d of %s: %w", n+1, personName(i), err)
					}
					return
				}
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

type ticket struct {
	ID      string `json:"id"`
	State   string `json:"state"`
	Version int64  `json:"version"`
}

// ticket is the life of the n-th request of a person.
func (p *people) ticket(ctx context.Context, person, n int) error {
	leader, owner := (person+1)%len(p.sessions), (person+2)%len(p.sessions)
	// The owner's resources, one after another.
	resource := p.run.Resources/2 + owner + n*len(p.sessions)%(p.run.requestable()/len(p.sessions)*len(p.sessions))
	var t ticket
	item := map[string]any{"application": fmt.Sprint("app-", firstApplication+person), "resource": resourceName(resource), "actions": []string{"redis:connect"}}
	if err := p.sessions[person].Call(ctx, http.MethodPost, "/tickets", map[string]any{
		"items": []any{item}, "reason": fmt.Sprintf("measurement %d", n+1),
	}, &t); err != nil {
		return err
	}
	var last time.Time
	for _, approver := range []int{leader, owner} {
		last = time.Now()
		if err := p.sessions[approver].Call(ctx, http.MethodPost, "/tickets/"+t.ID+"/decision",
			map[string]any{"decision": "approve", "version": t.Version}, &t); err != nil {
			return err
		}
		took := time.Since(last)
		p.mu.Lock()
		p.decided = append(p.decided, took)
		p.mu.Unlock()
	}
	at, err := p.events[person].Await(ctx, t.ID, "effective", changeLimit)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.approved = append(p.approved, at.Sub(last))
	p.mu.Unlock()
	if err := p.sessions[person].Call(ctx, http.MethodPost, "/tickets/"+t.ID+"/revoke", map[string]any{"reason": "end of the measurement"}, nil); err != nil {
		return err
	}
	_, err = p.events[person].Await(ctx, t.ID, "revoked", changeLimit)
	return err
}
