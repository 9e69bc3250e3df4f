package hostcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/deploy/crds"
)

// schemaPoll is the time between two requests for the schemas. An API server publishes the schema of a changed kind some seconds after
// it serves the kind.
const schemaPoll = 500 * time.Millisecond

// schema is the part of an OpenAPI schema that names fields.
type schema struct {
	Properties           map[string]*schema `json:"properties"`
	Items                *schema            `json:"items"`
	AdditionalProperties *schemaOrBool      `json:"additionalProperties"`
	Preserves            bool               `json:"x-kubernetes-preserve-unknown-fields"`
	Kinds                []struct {
		Group, Version, Kind string
	} `json:"x-kubernetes-group-version-kind"`
}

// schemaOrBool is what additionalProperties may be.
type schemaOrBool struct{ *schema }

// UnmarshalJSON reads a boolean as no schema.
func (s *schemaOrBool) UnmarshalJSON(text []byte) error {
	if string(text) == "true" || string(text) == "false" {
		return nil
	}
	if err := json.Unmarshal(text, &s.schema); err != nil {
		return fmt.Errorf("read additionalProperties: %w", err)
	}
	return nil
}

// UnservedFields returns the fields of the kinds' status, and of MemberCluster as a whole, that this program writes and the host
// cluster drops, because its CustomResourceDefinitions are older than this program; sorted, as Kind.path. It reads the schemas that
// the API server publishes to every authenticated user, and retries until none is missing or the context ends.
func UnservedFields(ctx context.Context, config *rest.Config, kinds []Kind) ([]string, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client of the host cluster: %w", err)
	}
	own, err := ownSchemas(kinds)
	if err != nil {
		return nil, err
	}
	var missing []string
	readErr := errors.New("the schemas of the host cluster's kinds were not read")
	answered := false
	path := "/openapi/v3/apis/" + v1alpha1.GroupVersion.String()
	_ = wait.PollUntilContextCancel(ctx, schemaPoll, true, func(ctx context.Context) (bool, error) { // its end is no failure
		text, err := d.RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx).Raw()
		if err != nil {
			if !answered || ctx.Err() == nil { // An answer counts more than a request that the end of the context interrupted.
				readErr = fmt.Errorf("read the schemas of the host cluster's kinds: %w", err)
			}
			return false, nil
		}
		missing, readErr = compareSchemas(own, text)
		answered = true
		return readErr == nil && len(missing) == 0, nil
	})
	return missing, readErr
}

// ownSchemas returns the schemas of this program's CustomResourceDefinitions by kind.
func ownSchemas(kinds []Kind) (map[string]*schema, error) {
	out := map[string]*schema{}
	for _, k := range kinds {
		text, err := fs.ReadFile(crds.Files, "acp.io_"+k.Plural+".yaml")
		if err != nil {
			return nil, fmt.Errorf("read the definition of %s: %w", k.Name, err)
		}
		var crd struct {
			Spec struct {
				Versions []struct {
					Name   string
					Schema struct {
						OpenAPIV3Schema *schema `json:"openAPIV3Schema"`
					}
				}
			}
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return nil, fmt.Errorf("read the definition of %s: %w", k.Name, err)
		}
		for _, v := range crd.Spec.Versions {
			if v.Name == v1alpha1.GroupVersion.Version {
				out[k.Name] = v.Schema.OpenAPIV3Schema
			}
		}
	}
	return out, nil
}

// compareSchemas returns the written fields of own schemas that a published document lacks.
func compareSchemas(own map[string]*schema, document []byte) ([]string, error) {
	var published struct {
		Components struct {
			Schemas map[string]*schema
		}
	}
	if err := json.Unmarshal(document, &published); err != nil {
		return nil, fmt.Errorf("read the schemas of the host cluster's kinds: %w", err)
	}
	served := map[string]*schema{}
	for _, s := range published.Components.Schemas {
		for _, k := range s.Kinds {
			if k.Group == v1alpha1.GroupVersion.Group && k.Version == v1alpha1.GroupVersion.Version {
				served[k.Kind] = s
			}
		}
	}
	var missing []string
	for _, kind := range slices.Sorted(maps.Keys(own)) {
		have := served[kind]
		if have == nil {
			missing = append(missing, kind)
			continue
		}
		if have.Preserves {
			continue
		}
		for _, part := range []string{"spec", "status"} {
			if part == "status" || kind == "MemberCluster" {
				missing = append(missing, lacking(own[kind].Properties[part], have.Properties[part], kind+"."+part)...)
			}
		}
	}
	return missing, nil
}

// lacking returns the paths of fields that a schema has and a served one drops.
func lacking(own, served *schema, path string) []string {
	switch {
	case own == nil || served != nil && served.Preserves:
		return nil
	case served == nil:
		return []string{path}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(own.Properties)) {
		out = append(out, lacking(own.Properties[name], served.Properties[name], path+"."+name)...)
	}
	if own.Items != nil {
		out = append(out, lacking(own.Items, served.Items, path+"[]")...)
	}
	if a := own.AdditionalProperties; a != nil && a.schema != nil {
		var have *schema
		if served.AdditionalProperties != nil {
			have = served.AdditionalProperties.schema
		}
		out = append(out, lacking(a.schema, have, path+".*")...)
	}
	return out
}
