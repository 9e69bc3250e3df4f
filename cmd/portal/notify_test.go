package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/approvaltest"
	"github.com/acp-io/acp/internal/approval/gormstore"
	"github.com/acp-io/acp/internal/database/databasetest"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	notifystore "github.com/acp-io/acp/internal/notify/gormstore"
	"github.com/acp-io/acp/internal/notify/setup"
	"github.com/acp-io/acp/internal/notify/webhook"
	"github.com/acp-io/acp/internal/portal/core"
)

// Two portals on one PostgreSQL send one notification for each change, and anchor the ledger.
func TestReplicasNotifyOnce(t *testing.T) {
	const tickets = 12
	var mu sync.Mutex
	got, withdrawn, all := map[string]int{}, 0, make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var b webhook.Body
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		got[b.Type+" "+b.Ticket]++
		// A submission causes a notification only if it is processed before the withdrawal.
		if b.Type == "ticket.withdrawn" {
			if withdrawn++; withdrawn == tickets {
				close(all)
			}
		}
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	key, file, heads := filepath.Join(dir, "key"), filepath.Join(dir, "notify.yaml"), filepath.Join(dir, "heads.jsonl")
	for name, text := range map[string]string{key: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
		file: fmt.Sprintf("webhooks: [{name: siem, url: %q, keyFile: %q}]", server.URL, key)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	portal, err := url.Parse("https://acp.example.com")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	databasetest.Each(t, func(t *testing.T, dsn string) {
		clear(got)
		withdrawn, all = 0, make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var running sync.WaitGroup
		for replica := range 2 {
			db := databasetest.Open(t, dsn)
			channels, err := setup.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			directory, err := openCatalog(t.Context(), options{}, db, log)
			if err != nil {
				t.Fatal(err)
			}
			v := &services{
				sources: &sources{inputs: inputs{publicURL: portal, channels: channels}, db: db, ticketStore: gormstore.New(db), directory: directory,
					hub: core.NewHub()},
				notifications: notifystore.New(db), replica: fmt.Sprint(replica), log: log,
			}
			k, err := keeper(options{ledgerAnchors: []string{"file:" + heads}, ledgerAnchorEvery: time.Hour}, &rest.Config{}, ledgerstore.NewReader(db), log)
			if err != nil {
				t.Fatal(err)
			}
			for _, run := range append(v.notifiers(), k.Run) {
				running.Go(func() { run(ctx) })
			}
		}
		store := gormstore.New(databasetest.Open(t, dsn))
		for i := range tickets {
			x, err := store.Create(t.Context(), approvaltest.Ticket("orders", fmt.Sprint(i), ""))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Update(
				t.Context(),
				x.Number,
				func(x *approval.Ticket) error { return x.Withdraw("alice", "done", approvaltest.Start) },
			); err != nil {
				t.Fatal(err)
			}
		}
		<-all
		cancel()
		running.Wait()
		mu.Lock()
		defer mu.Unlock()
		for what, times := range got {
			if times != 1 {
				t.Errorf("%s was notified %d times", what, times)
			}
		}
		if st, err := os.Stat(heads); err != nil || st.Size() == 0 {
			t.Errorf("anchored at the latest when the portal stops: %v", err)
		}
		if err := os.Remove(heads); err != nil {
			t.Error(err)
		}
	})
}
