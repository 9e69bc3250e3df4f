package rules

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"

	"github.com/acp-io/acp/internal/message"
)

const (
	// maxLength is the maximum length of an expression in characters, the same as in the CRD.
	maxLength = 2048
	// maxDepth is the maximum depth of nested expressions.
	maxDepth = 50
	// maxCost is the maximum cost of one evaluation, in CEL's units: a comparison costs one, an iteration over a list about its length.
	maxCost = 100_000

	variable = "request"
)

var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewCustomEnv(
		cel.StdLib(cel.StdLibSubset(nil)),
		cel.ClearMacros(), cel.Macros(cel.HasMacro, cel.AllMacro, cel.ExistsMacro, cel.ExistsOneMacro),
		ext.NativeTypes(reflect.TypeFor[Request](), ext.ParseStructTags(true)),
		cel.Variable(variable, cel.ObjectType("rules.Request")),
		cel.ParserExpressionSizeLimit(maxLength), cel.ParserRecursionLimit(maxDepth),
	)
})

// Expression is a compiled expression. If it does not compile, every evaluation returns the error. The zero value is absent.
type Expression struct {
	text    string
	program cel.Program
	partial cel.Program
	broken  error
}

// Absent reports whether there is no expression.
func (e Expression) Absent() bool { return e.text == "" }

// String returns the source of the expression.
func (e Expression) String() string { return e.text }

// compile compiles an expression. An empty text is an absent expression.
func compile(text string) (Expression, error) {
	e := Expression{text: text}
	if text != "" {
		e.program, e.partial, e.broken = programs(text)
	}
	return e, e.broken
}

func programs(text string) (whole, partial cel.Program, err error) {
	if len(text) > maxLength {
		return nil, nil, message.SpecTooLarge(len(text), maxLength).Err()
	}
	env, err := environment()
	if err != nil {
		return nil, nil, fmt.Errorf("make the CEL environment: %w", err)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, nil, located(issues)
	}
	if ast.OutputType() != cel.BoolType {
		return nil, nil, message.RuleNotBoolean(ast.OutputType().String()).Err()
	}
	whole, err = env.Program(ast, cel.CostLimit(maxCost), cel.EvalOptions(cel.OptTrackCost))
	if err != nil {
		return nil, nil, err
	}
	partial, err = env.Program(ast, cel.CostLimit(maxCost), cel.EvalOptions(cel.OptTrackCost, cel.OptPartialEval))
	if err != nil {
		return nil, nil, err
	}
	return whole, partial, nil
}

// located returns the first error with its position.
func located(issues *cel.Issues) error {
	first := issues.Errors()[0]
	reason := message.Verbatim(strings.Join(strings.Fields(first.Message), " "))
	if strings.Contains(reason.Text, "undefined field 'wildcard'") {
		reason = message.RuleNoWildcard()
	}
	return message.RuleAtPosition(first.Location.Line(), first.Location.Column()+1, reason).Err()
}

// Eval evaluates the expression over a request. An error means that the result is unknown: the expression refers to something absent,
// or its cost exceeds the bound.
func (e Expression) Eval(r *Request) (bool, error) {
	if e.broken != nil {
		return false, e.broken
	}
	out, _, err := e.program.Eval(map[string]any{variable: r})
	if err != nil {
		return false, fmt.Errorf("evaluate %q: %w", e.text, err)
	}
	yes, ok := out.Value().(bool)
	if !ok {
		return false, fmt.Errorf("evaluate %q: %w", e.text, errNotBool)
	}
	return yes, nil
}

var errNotBool = errors.New("it is neither true nor false")

// others are the fields of a request that do not determine its kind.
var others = []string{"requester", "application", "resource", "actions", "duration", "total", "permanent", "breakGlass",
	"enforcers", "clients", "fromMode", "toMode", "opens", "closes", "adopt", "override"}

// neverFor reports whether the expression is false for every request of a kind.
func (e Expression) neverFor(kind string) bool {
	if e.Absent() || e.broken != nil {
		return false
	}
	unknown := make([]*cel.AttributePatternType, 0, len(others))
	for _, f := range others {
		unknown = append(unknown, cel.AttributePattern(variable).QualString(f))
	}
	vars, err := cel.PartialVars(map[string]any{variable: &Request{Kind: kind}}, unknown...)
	if err != nil {
		return false
	}
	out, _, err := e.partial.Eval(vars)
	return err == nil && out == types.False
}
