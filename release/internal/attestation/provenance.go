package attestation

import (
	"bytes"
	"encoding/json"
	"fmt"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/acp-io/acp/release/internal/build"
)

// BuildType names the way of building that docs/releasing.md describes.
const BuildType = build.Repository + "/blob/main/docs/releasing.md#how-images-are-built"

// DefaultBuilder says that somebody built on a machine of their own.
const DefaultBuilder = build.Repository + "/blob/main/docs/releasing.md#builders"

// Tools are the versions of what a build uses beside the source.
type Tools struct {
	// Go is the toolchain's version, for example "go1.26.8". Node is empty where no web UI is built in.
	Go, Node string
}

// Provenance returns a SLSA provenance predicate: from which commit, with which tools and settings a program was built. It has no times and no random
// identifiers, so that the same build gives the same provenance.
func Provenance(s build.Source, p build.Program, platforms []build.Platform, tools Tools, builder string) (json.RawMessage, error) {
	names := make([]any, len(platforms))
	environment := map[string]any{}
	for i, platform := range platforms {
		names[i] = platform.String()
		settings := build.Environment(platform)
		list := make([]any, len(settings))
		for j, setting := range settings {
			list[j] = setting
		}
		environment[platform.String()] = list
	}
	flags := make([]any, len(build.Flags))
	for i, f := range build.Flags {
		flags[i] = f
	}
	external, err := structpb.NewStruct(map[string]any{
		"repository":      build.Repository,
		"commit":          s.Commit,
		"program":         p.Name,
		"version":         s.Version,
		"platforms":       names,
		"sourceDateEpoch": fmt.Sprint(s.Time.Unix()),
	})
	if err != nil {
		return nil, fmt.Errorf("encode the parameters: %w", err)
	}
	internal, err := structpb.NewStruct(map[string]any{"flags": flags, "ldflags": build.LinkerFlags(s.Version), "environment": environment})
	if err != nil {
		return nil, fmt.Errorf("encode the settings: %w", err)
	}
	modified, err := structpb.NewStruct(map[string]any{"modified": s.Modified})
	if err != nil {
		return nil, fmt.Errorf("encode the source: %w", err)
	}
	dependencies := []*intoto.ResourceDescriptor{
		{Name: "source", Uri: "git+" + build.Repository, Digest: map[string]string{"gitCommit": s.Commit}, Annotations: modified},
		{Name: "go", Uri: "pkg:generic/go@" + tools.Go},
	}
	if tools.Node != "" {
		dependencies = append(dependencies, &intoto.ResourceDescriptor{Name: "node", Uri: "pkg:generic/node@" + tools.Node})
	}
	predicate := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType:            BuildType,
			ExternalParameters:   external,
			InternalParameters:   internal,
			ResolvedDependencies: dependencies,
		},
		RunDetails: &provenance.RunDetails{Builder: &provenance.Builder{Id: builder}},
	}
	if err := predicate.Validate(); err != nil {
		return nil, fmt.Errorf("the provenance of %s is not valid: %w", p.Name, err)
	}
	encoded, err := protojson.Marshal(predicate)
	if err != nil {
		return nil, fmt.Errorf("encode the provenance: %w", err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, encoded); err != nil {
		return nil, fmt.Errorf("encode the provenance: %w", err)
	}
	return compact.Bytes(), nil
}
