package main

import (
	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"

	"github.com/acp-io/acp/bench/world"
)

// cedarPolicies holds the access lists as attributes of few policies, because Cedar evaluates every policy but finds an
// attribute by its hash.
const cedarPolicies = `
permit (principal, action == Action::"connect", resource) when { resource.readers.contains(principal) };
permit (principal, action == Action::"connect", resource) when { resource.readerTeams.contains(principal.team) };
permit (principal, action == Action::"connect", resource) when { principal.everyRedis || principal.redisTeams.contains(resource.team) };
forbid (principal, action == Action::"connect", resource) when { resource.denied.contains(principal) };
`

func newCedar(w *world.World, queries []world.Question) (func(int) (bool, error), error) {
	policies, err := cedar.NewPolicySetFromBytes("acp.cedar", []byte(cedarPolicies))
	if err != nil {
		return nil, err
	}
	app := func(a world.App) types.EntityUID { return types.NewEntityUID("App", types.String(a.Name())) }
	redis := func(r world.Redis) types.EntityUID { return types.NewEntityUID("Redis", types.String(r.Name())) }
	entities := types.EntityMap{}
	f := factsOf(w)
	for a, facts := range f.apps {
		uid := app(a)
		entities[uid] = types.Entity{UID: uid, Attributes: types.NewRecord(types.RecordMap{
			"team": types.Long(a.Team), "everyRedis": types.Boolean(facts.every), "redisTeams": longs(facts.redisTeams)})}
	}
	for r, facts := range f.redis {
		uid := redis(r)
		entities[uid] = types.Entity{UID: uid, Attributes: types.NewRecord(types.RecordMap{
			"team": types.Long(r.Team), "readers": uids(facts.allow, app), "denied": uids(facts.deny, app), "readerTeams": longs(facts.appTeams)})}
	}
	requests := make([]cedar.Request, len(queries))
	for i, q := range queries {
		requests[i] = cedar.Request{Principal: app(q.App), Action: types.NewEntityUID("Action", "connect"), Resource: redis(q.Redis)}
	}
	return func(i int) (bool, error) {
		decision, _ := cedar.Authorize(policies, entities, requests[i])
		return decision == cedar.Allow, nil
	}, nil
}

func longs(in []int) types.Set {
	var out []types.Value
	for _, n := range in {
		out = append(out, types.Long(n))
	}
	return types.NewSet(out...)
}

func uids(in []world.App, uid func(world.App) types.EntityUID) types.Set {
	var out []types.Value
	for _, a := range in {
		out = append(out, uid(a))
	}
	return types.NewSet(out...)
}
