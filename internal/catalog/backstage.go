package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/acp-io/acp/internal/message"
)

// Annotations that ACP reads.
const (
	annotationName        = "acp.io/resource-name"
	annotationSensitivity = "acp.io/sensitivity"
	annotationEnvironment = "acp.io/environment"
	annotationLeader      = "acp.io/leader"
	annotationLead        = "acp.io/lead"
)

// entity is the part of a Backstage entity that ACP reads; the rest is ignored.
type entity struct {
	Kind     string `yaml:"kind" json:"kind"`
	Metadata struct {
		Name        string            `yaml:"name" json:"name"`
		Namespace   string            `yaml:"namespace" json:"namespace"`
		Title       string            `yaml:"title" json:"title"`
		Description string            `yaml:"description" json:"description"`
		Annotations map[string]string `yaml:"annotations" json:"annotations"`
	} `yaml:"metadata" json:"metadata"`
	Spec struct {
		Owner    string   `yaml:"owner" json:"owner"`
		Parent   string   `yaml:"parent" json:"parent"`
		Members  []string `yaml:"members" json:"members"`
		MemberOf []string `yaml:"memberOf" json:"memberOf"`
		Profile  struct {
			DisplayName string `yaml:"displayName" json:"displayName"`
			Email       string `yaml:"email" json:"email"`
			Title       string `yaml:"title" json:"title"`
		} `yaml:"profile" json:"profile"`
	} `yaml:"spec" json:"spec"`
}

// BackstageKinds returns the kinds of entities that ACP reads.
func BackstageKinds() []string { return []string{"Component", "Resource", "Group", "User"} }

// AddYAML adds the Backstage entities of one file. A document that is not YAML ends the file, because the decoder
// cannot find the next document; a value of a wrong type does not.
func (r *SourceContent) AddYAML(name string, data []byte) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for doc := 1; ; doc++ {
		var e entity
		err := dec.Decode(&e)
		if errors.Is(err, io.EOF) {
			return
		}
		where := fmt.Sprintf("%s, document %d", name, doc)
		if err != nil {
			r.Problems = append(r.Problems, problemOf(where, e.ref(), message.Verbatim(strings.TrimPrefix(err.Error(), "yaml: "))))
			var typed *yaml.TypeError
			if errors.As(err, &typed) {
				continue
			}
			return
		}
		r.addEntity(where, e)
	}
}

// AddJSON adds one Backstage entity in the form of the Backstage API.
func (r *SourceContent) AddJSON(where string, data []byte) {
	var e entity
	if err := json.Unmarshal(data, &e); err != nil {
		r.Problems = append(r.Problems, problemOf(where, e.ref(), message.Verbatim(err.Error())))
		return
	}
	r.addEntity(where, e)
}

// ref returns the entity's Ref, which is empty for kinds that ACP ignores (API, System, an empty document).
func (e *entity) ref() Ref {
	kind := map[string]Kind{"component": KindApplication, "resource": KindResource, "group": KindGroup, "user": KindPerson}[strings.ToLower(e.Kind)]
	if kind == "" {
		return Ref{}
	}
	return Ref{kind, idIn(e.Metadata.Namespace, e.Metadata.Name)}
}

func (r *SourceContent) addEntity(where string, e entity) {
	ref := e.ref()
	a := e.Metadata.Annotations
	rec := Record{Kind: ref.Kind, ID: ref.ID, Title: e.Metadata.Title, Description: e.Metadata.Description, Where: where}
	switch ref.Kind {
	case KindPerson:
		rec.Title = first(e.Spec.Profile.DisplayName, e.Metadata.Title)
		rec.JobTitle, rec.Email, rec.Leader = e.Spec.Profile.Title, e.Spec.Profile.Email, refID(a[annotationLeader])
		rec.Groups = refIDs(e.Spec.MemberOf)
	case KindGroup:
		rec.Lead, rec.Parent, rec.Members = refID(a[annotationLead]), refID(e.Spec.Parent), refIDs(e.Spec.Members)
	case KindApplication, KindResource:
		if a[annotationName] == "" {
			return // The entity is in the company's catalog, but not in ACP's.
		}
		rec.Name, rec.Environment = a[annotationName], a[annotationEnvironment]
		rec.Sensitivity = Sensitivity(a[annotationSensitivity])
		if e.Spec.Owner != "" {
			o, err := parseOwner(e.Spec.Owner)
			if err != nil {
				r.Problems = append(r.Problems, problemOf(where, ref, message.CatalogEntityProblem(ref.String(), message.Of(err))))
				return
			}
			rec.Owners = []Owner{o}
		}
	default:
		return
	}
	r.Add(rec)
}

// Add adds one record in its normal form, or a problem that says why it is refused.
func (r *SourceContent) Add(rec Record) {
	n, err := rec.Normalize()
	if err != nil {
		r.Problems = append(r.Problems, problemOf(rec.Where, rec.Ref(), message.Of(err)))
		return
	}
	r.Records = append(r.Records, n)
}

func refIDs(refs []string) []string {
	out := make([]string, 0, len(refs))
	for _, r := range refs {
		out = append(out, refID(r))
	}
	return out
}
