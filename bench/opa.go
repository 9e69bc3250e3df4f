package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/acp-io/acp/bench/world"
)

// opaPolicy finds grants by key in data that are indexed by resource and by subject.
const opaPolicy = `package acp

granted if data.redis[input.resource].allow[input.subject]
granted if data.redis[input.resource].teams[data.apps[input.subject].team]
granted if data.apps[input.subject].every
granted if data.apps[input.subject].redisTeams[data.redis[input.resource].team]
denied if data.redis[input.resource].deny[input.subject]

default allowed := false
allowed if {
	granted
	not denied
}
`

func newOPA(w *world.World, queries []world.Question) (func(int) (bool, error), error) {
	ctx := context.Background()
	apps, redis := map[string]any{}, map[string]any{}
	f := factsOf(w)
	for a, facts := range f.apps {
		entry := map[string]any{"team": strconv.Itoa(a.Team), "redisTeams": numbers(facts.redisTeams)}
		if facts.every {
			entry["every"] = true
		}
		apps[a.Name()] = entry
	}
	for r, facts := range f.redis {
		redis[r.Name()] = map[string]any{"team": strconv.Itoa(r.Team), "allow": names(facts.allow), "deny": names(facts.deny), "teams": numbers(facts.appTeams)}
	}
	store := inmem.NewFromObjectWithOpts(map[string]any{"apps": apps, "redis": redis}, inmem.OptReturnASTValuesOnRead(true), inmem.OptRoundTripOnWrite(false))
	query, err := rego.New(rego.Query("data.acp.allowed"), rego.Module("acp.rego", opaPolicy), rego.Store(store)).PrepareForEval(ctx)
	if err != nil {
		return nil, err
	}
	inputs := make([]ast.Value, len(queries))
	for i, q := range queries {
		inputs[i] = ast.NewObject(
			ast.Item(ast.StringTerm("subject"), ast.StringTerm(q.Subject)),
			ast.Item(ast.StringTerm("resource"), ast.StringTerm(q.Resource)),
		)
	}
	return func(i int) (bool, error) {
		result, err := query.Eval(ctx, rego.EvalParsedInput(inputs[i]))
		if err != nil {
			return false, err
		}
		if len(result) != 1 {
			return false, fmt.Errorf("%d results", len(result))
		}
		return result.Allowed(), nil
	}, nil
}

func numbers(in []int) map[string]any {
	out := map[string]any{}
	for _, n := range in {
		out[strconv.Itoa(n)] = true
	}
	return out
}

func names(in []world.App) map[string]any {
	out := map[string]any{}
	for _, a := range in {
		out[a.Name()] = true
	}
	return out
}
