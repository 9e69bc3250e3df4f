package database_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acp-io/acp/internal/testenv"
)

// builderMethods are the methods of gorm that build SQL from calls.
var builderMethods = map[string]bool{"Model": true, "Table": true, "Where": true, "Or": true, "Not": true, "Select": true, "Joins": true, "Group": true,
	"Having": true, "Order": true, "Limit": true, "Offset": true, "Find": true, "First": true, "Last": true, "Take": true, "Pluck": true, "Count": true,
	"Update": true, "Updates": true, "UpdateColumn": true, "UpdateColumns": true, "Delete": true, "Raw": true, "Exec": true, "Scan": true}

// TestStoresWriteSQL checks that no file that imports gorm uses gorm's query builder: docs/architecture.md says how SQL is written. Values of
// the type *gorm.DB are called tx in this repository.
func TestStoresWriteSQL(t *testing.T) {
	root, files := filepath.Join(testenv.Root(), "internal"), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			path == filepath.Join(root, "database", "query.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"gorm.io/gorm"` }) {
			return nil
		}
		files++
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && buildsSQL(call) {
				t.Errorf("%s uses gorm's query builder; use Select, Number, Exec or another function of internal/database", set.Position(call.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Errorf("only %d files were read", files)
	}
}

// buildsSQL reports whether a call is tx.METHOD(...), or such a method in a chain that begins with tx.
func buildsSQL(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !builderMethods[method.Sel.Name] {
		return false
	}
	for x := method.X; ; {
		switch e := x.(type) {
		case *ast.CallExpr:
			x = e.Fun
		case *ast.SelectorExpr:
			x = e.X
		case *ast.Ident:
			return e.Name == "tx"
		default:
			return false
		}
	}
}
