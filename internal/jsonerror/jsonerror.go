// Package jsonerror describes the errors of JSON decoders to users, without the names of Go types.
package jsonerror

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// typeError matches the text of an UnmarshalTypeError that sigs.k8s.io/json and sigs.k8s.io/yaml do not wrap.
var typeError = regexp.MustCompile(
	`(?:error unmarshaling JSON: |while decoding JSON: |json: )*cannot unmarshal (\S+(?: \S+)??) into Go (?:struct field ` +
		`(?:[^\s.]+\.)?(\S+)|value) of type (\S+)`,
)

// Describe returns a description of an error of encoding/json, sigs.k8s.io/json or sigs.k8s.io/yaml.
func Describe(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return describeMismatch(wrong.Field, wrong.Value, kindOf(wrong.Type))
	}
	text := err.Error()
	if strings.Contains(text, "after top-level value") {
		return "there is more than one JSON value"
	}
	if m := typeError.FindStringSubmatch(text); m != nil {
		return strings.Replace(text, m[0], describeMismatch(m[2], m[1], kindOfName(m[3])), 1)
	}
	for _, prefix := range []string{"error unmarshaling JSON: ", "error converting YAML to JSON: ", "while decoding JSON: ", "json: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

func describeMismatch(field, value, want string) string {
	if strings.HasPrefix(value, "number ") {
		value = "the " + value
	} else {
		value = article(value)
	}
	if field == "" {
		return fmt.Sprintf("%s where %s is expected", value, want)
	}
	return fmt.Sprintf("field %s: %s where %s is expected", field, value, want)
}

func article(noun string) string {
	if noun == "" {
		return "another type"
	}
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	if noun == "bool" {
		return "true or false"
	}
	return "a " + noun
}

func kindOf(t reflect.Type) string {
	if t == nil {
		return "another type"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct, reflect.Pointer, reflect.Interface:
		return "an object"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		if t.Bits() < 64 {
			return fmt.Sprintf("a whole number from 0 to %d", uint64(1)<<t.Bits()-1)
		}
		return "a whole number that is not negative"
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		return "a whole number"
	default:
		return "a number"
	}
}

// kindOfName is kindOf for the name of a type.
func kindOfName(name string) string {
	switch {
	case name == "string":
		return "a string"
	case name == "bool":
		return "true or false"
	case strings.HasPrefix(name, "[]"):
		return "a list"
	case strings.HasPrefix(name, "uint"), strings.HasPrefix(name, "int"):
		return "a whole number"
	case strings.HasPrefix(name, "float"):
		return "a number"
	}
	return "an object"
}
