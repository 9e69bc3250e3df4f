package main

import (
	"fmt"

	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"
	defaultrolemanager "github.com/casbin/casbin/v2/rbac/default-role-manager"

	"github.com/acp-io/acp/bench/world"
)

const casbinModel = `
[request_definition]
r = sub, act
[policy_definition]
p = sub, act, eft
[role_definition]
g = _, _
[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))
[matchers]
m = r.act == p.act && (r.sub == p.sub || g(r.sub, p.sub))
`

// newCasbin creates an enforcer for each resource of the questions that holds only the lines of this resource, because
// Casbin evaluates every line of an enforcer. Wildcards are roles, which all enforcers share.
func newCasbin(w *world.World, queries []world.Question) (func(int) (bool, error), error) {
	f := factsOf(w)
	roles := defaultrolemanager.NewRoleManager(4)
	for a, facts := range f.apps {
		mine := []string{fmt.Sprint("apps-of-team-", a.Team)}
		if facts.every {
			mine = append(mine, "every-redis")
		}
		for _, t := range facts.redisTeams {
			mine = append(mine, fmt.Sprint("redis-of-team-", t))
		}
		for _, role := range mine {
			if err := roles.AddLink(a.Name(), role); err != nil {
				return nil, err
			}
		}
	}
	byResource := map[world.Redis]*casbin.Enforcer{}
	enforcers := make([]*casbin.Enforcer, len(queries))
	for i, q := range queries {
		if byResource[q.Redis] == nil {
			e, err := casbinFor(f.redis[q.Redis], q.Redis)
			if err != nil {
				return nil, err
			}
			e.GetModel()["g"]["g"].RM = roles // not SetRoleManager, because building its links would clear the shared roles
			byResource[q.Redis] = e
		}
		enforcers[i] = byResource[q.Redis]
	}
	return func(i int) (bool, error) { return enforcers[i].Enforce(queries[i].Subject, "connect") }, nil
}

func casbinFor(facts *redisFacts, r world.Redis) (*casbin.Enforcer, error) {
	m, err := model.NewModelFromString(casbinModel)
	if err != nil {
		return nil, err
	}
	e, err := casbin.NewEnforcer(m)
	if err != nil {
		return nil, err
	}
	e.EnableAutoBuildRoleLinks(false)
	lines := [][]string{{"every-redis", "connect", "allow"}, {fmt.Sprint("redis-of-team-", r.Team), "connect", "allow"}}
	for _, a := range facts.allow {
		lines = append(lines, []string{a.Name(), "connect", "allow"})
	}
	for _, t := range facts.appTeams {
		lines = append(lines, []string{fmt.Sprint("apps-of-team-", t), "connect", "allow"})
	}
	for _, a := range facts.deny {
		lines = append(lines, []string{a.Name(), "connect", "deny"})
	}
	_, err = e.AddPoliciesEx(lines)
	return e, err
}
