package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/internal/portalclient"
)

// maxSpec is the maximum size of a spec in bytes, as in the portal.
const maxSpec = 64 << 10

// liveSpec is the spec of an object in the host cluster, as the portal returns it.
type liveSpec struct{ yaml, json string }

func newLiveSpec(text string) (*liveSpec, error) {
	data, err := specJSON(text)
	if err != nil {
		return nil, fmt.Errorf("the portal returned a spec that cannot be read: %w", err)
	}
	return &liveSpec{yaml: text, json: data}, nil
}

// live returns the spec of the object in the host cluster, or nil if it does not exist.
func (r *objectTicket) live(ctx context.Context, name string) (*liveSpec, error) {
	if r.object == portalclient.ObjectChangeKindApprovalPolicy {
		var p portalclient.ApprovalPolicy
		switch err := r.portal.Get(ctx, "/approval-policies/"+url.PathEscape(name), nil, &p); {
		case notFound(err):
			return nil, nil
		case err != nil:
			return nil, err
		case p.Builtin:
			return nil, nil
		case p.Yaml == nil:
			return nil, errors.New("the portal shows the spec of approval policies only to the security team and auditors: use the token of a member")
		}
		return newLiveSpec(*p.Yaml)
	}
	var list portalclient.ClassList
	if err := r.portal.Get(ctx, "/classes", nil, &list); err != nil {
		return nil, err
	}
	for _, c := range list.Items {
		if string(c.Kind) == string(r.object) && c.Name == name {
			return newLiveSpec(c.Yaml)
		}
	}
	return nil, nil
}

// specJSON returns a spec as JSON with sorted keys.
func specJSON(text string) (string, error) {
	if len(text) > maxSpec {
		return "", fmt.Errorf("the spec has %d bytes; at most %d are possible", len(text), maxSpec)
	}
	if err := withoutAliases(text); err != nil {
		return "", err
	}
	var object map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &object); err != nil {
		return "", fmt.Errorf("the spec is no object in YAML or JSON: %w", err)
	}
	if object == nil {
		return "", errors.New("the spec is empty")
	}
	data, err := json.Marshal(object)
	return string(data), err
}

// sameSpec reports whether two texts are the same spec.
func sameSpec(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := specJSON(a)
	y, errY := specJSON(b)
	return errX == nil && errY == nil && x == y
}
