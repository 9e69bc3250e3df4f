package main

import (
	"fmt"
	"os"

	"github.com/acp-io/acp/bench/world"
	"github.com/acp-io/acp/internal/policy"
)

// peer is another engine with the grants of a world, in the layout in which it is fastest.
type peer struct {
	name string
	// questions is the number of queries that it evaluates.
	questions int
	prepare   func(*world.World, []world.Question) (func(int) (bool, error), error)
}

var allPeers = []peer{
	{"cedar", 1 << 14, newCedar},
	{"opa", 1 << 11, newOPA},
	{"casbin", 1 << 9, newCasbin},
}

// comparePeers evaluates in each engine the queries that the snapshot evaluates, checks that the answers agree, and reports the
// ratio of its time to that of the snapshot.
func comparePeers(seed uint64, s *policy.Snapshot, w *world.World) error {
	queries := w.Questions(seed, questions)
	for _, p := range allPeers {
		some := queries[:p.questions]
		ask, err := p.prepare(w, some)
		if err != nil {
			return fmt.Errorf("prepare %s: %w", p.name, err)
		}
		allowed := 0
		for i := range some {
			got, err := ask(i)
			if err != nil {
				return fmt.Errorf("ask %s: %w", p.name, err)
			}
			want := decide(s, some[i:i+1]) == 1
			if got != want {
				return fmt.Errorf("%s says %v for %s to %s, and the snapshot %v", p.name, got, some[i].Subject, some[i].Resource, want)
			}
			if got {
				allowed++
			}
		}
		var failed error
		its := nsEach(len(some), func(from, to int) {
			for i := from; i < to; i++ {
				if _, err := ask(i); err != nil {
					failed = err
				}
			}
		})
		if failed != nil {
			return fmt.Errorf("ask %s: %w", p.name, failed)
		}
		ours := measureDecide(s, some)
		fmt.Fprintf(
			os.Stderr,
			"bench: %s agrees on %d questions, %d allowed; it takes %.0f ns and the snapshot %.0f ns\n",
			p.name,
			len(some),
			allowed,
			its,
			ours,
		)
		report("decide_100k_vs_"+p.name, its/ours, "x")
	}
	return nil
}

// facts contains the grants by resource and by subject. Every engine gets the same facts.
type facts struct {
	redis map[world.Redis]*redisFacts
	apps  map[world.App]*appFacts
}

type redisFacts struct {
	allow, deny []world.App
	appTeams    []int
}

type appFacts struct {
	every      bool
	redisTeams []int
}

func factsOf(w *world.World) facts {
	f := facts{map[world.Redis]*redisFacts{}, map[world.App]*appFacts{}}
	for _, r := range w.Resources {
		f.redis[r] = &redisFacts{}
	}
	app := func(a world.App) *appFacts {
		if f.apps[a] == nil {
			f.apps[a] = &appFacts{}
		}
		return f.apps[a]
	}
	for _, a := range world.Apps() {
		app(a)
	}
	for _, g := range w.Grants {
		switch r := f.redis[g.Redis]; {
		case g.EveryRedis:
			app(g.App).every = true
		case g.RedisTeam >= 0:
			app(g.App).redisTeams = append(app(g.App).redisTeams, g.RedisTeam)
		case g.AppTeam >= 0:
			r.appTeams = append(r.appTeams, g.AppTeam)
		case g.Deny:
			r.deny = append(r.deny, g.App)
		default:
			r.allow = append(r.allow, g.App)
		}
	}
	return f
}
