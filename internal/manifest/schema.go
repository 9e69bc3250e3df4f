package manifest

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/deploy/crds"
	"github.com/acp-io/acp/internal/message"
)

// These are the details of the errors that the API server's validation does not report.
const (
	unknownField = "unknown field"
	nameRequired = "name required"
)

// validator validates the objects of one kind as an API server does on creation.
type validator struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// definitions returns the embedded CRDs by kind. They are part of the program, so an unreadable one is a bug.
var definitions = sync.OnceValues(func() (map[string]*apiextensions.CustomResourceDefinition, error) {
	entries, err := crds.Files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("list the embedded CRDs: %w", err)
	}
	out := map[string]*apiextensions.CustomResourceDefinition{}
	for _, e := range entries {
		text, err := crds.Files.ReadFile(e.Name())
		if err != nil {
			return nil, fmt.Errorf("read the embedded CRD %s: %w", e.Name(), err)
		}
		var v1 apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &v1); err != nil {
			return nil, fmt.Errorf("read the embedded CRD %s: %w", e.Name(), err)
		}
		var crd apiextensions.CustomResourceDefinition
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&v1, &crd, nil); err != nil {
			return nil, fmt.Errorf("convert the embedded CRD %s: %w", e.Name(), err)
		}
		out[crd.Spec.Names.Kind] = &crd
	}
	return out, nil
})

// validators creates a validator when a kind is first met, because compiling the CEL rules of all kinds takes longer
// than most commands.
type validators struct {
	mu     sync.Mutex
	byKind map[string]*validator
}

// of returns the validator of a kind, or nil for a kind that is not ACP's.
func (v *validators) of(kind string) (*validator, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if found, ok := v.byKind[kind]; ok {
		return found, nil
	}
	all, err := definitions()
	if err != nil {
		return nil, err
	}
	crd := all[kind]
	if crd == nil {
		return nil, nil
	}
	made, err := newValidator(crd)
	if err != nil {
		return nil, fmt.Errorf("prepare the schema of %s: %w", kind, err)
	}
	if v.byKind == nil {
		v.byKind = map[string]*validator{}
	}
	v.byKind[kind] = made
	return made, nil
}

func newValidator(crd *apiextensions.CustomResourceDefinition) (*validator, error) {
	s, err := apiextensions.GetSchemaForVersion(crd, v1alpha1.GroupVersion.Version)
	if err != nil {
		return nil, err
	}
	if s == nil || s.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("it has no schema for %s", v1alpha1.GroupVersion.Version)
	}
	structural, err := structuralschema.NewStructural(s.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	schema, _, err := validation.NewSchemaValidator(s.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	return &validator{structural: structural, schema: schema, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// validate fills in defaults and returns the errors that an API server would return, unknown fields first.
func (v *validator) validate(ctx context.Context, object map[string]any) field.ErrorList {
	var errs field.ErrorList
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(object, v.structural, true, options) {
		errs = append(errs, &field.Error{Type: field.ErrorTypeForbidden, Field: path, Detail: unknownField})
	}
	defaulting.Default(object, v.structural)
	errs = append(errs, validateName(object)...)
	found := validation.ValidateCustomResource(nil, object, v.schema)
	if len(found) == 0 {
		found = append(found, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	}
	if len(found) == 0 && v.rules != nil {
		rules, _ := v.rules.Validate(ctx, nil, v.structural, object, nil, celconfig.RuntimeCELCostBudget)
		found = append(found, rules...)
	}
	return append(errs, found...)
}

// fieldMessage describes a validation error for users: without the names of Go types, and without the value if it is a
// whole object.
func fieldMessage(e *field.Error) message.Message {
	switch e.Detail {
	case unknownField:
		return message.ManifestUnknownField(e.Field)
	case nameRequired:
		return message.ManifestNameRequired(e.Field)
	}
	shown := *e
	switch shown.BadValue.(type) {
	case nil, string, bool, int, int32, int64, float64:
	default:
		if e.Type == field.ErrorTypeDuplicate {
			break // The value is the key of a list.
		}
		shown.BadValue = field.OmitValueType{}
	}
	body := shown.ErrorBody()
	if shown.Field == "" || shown.Field == "<nil>" {
		return message.Verbatim(body)
	}
	return message.Verbatim(shown.Field + ": " + body)
}

func validateName(object map[string]any) field.ErrorList {
	path := field.NewPath("metadata", "name")
	meta, _ := object["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	if name == "" {
		return field.ErrorList{field.Required(path, nameRequired)}
	}
	var errs field.ErrorList
	for _, msg := range apivalidation.NameIsDNSSubdomain(name, false) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	return errs
}
