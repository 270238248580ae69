package adk_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheFactsInTheDocsAreTheFactsThatAreTested(t *testing.T) {
	documented, tested := documentedFacts(t), testedFacts(t)
	assert.Equal(t, tested, documented)
	for number, names := range documented {
		assert.NotEmpty(t, names, "fact %s says nothing that is tested", number)
	}
}

// documentedFacts are the test names under each fact of docs/adk.md, by the
// two digits of its number.
func documentedFacts(t *testing.T) map[string][]string {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "adk.md"))
	require.NoError(t, err)
	facts := map[string][]string{}
	heads := regexp.MustCompile(`(?m)^\*\*(\d+)\. `).FindAllSubmatchIndex(text, -1)
	require.NotEmpty(t, heads)
	for i, head := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		number := twoDigits(string(text[head[2]:head[3]]))
		require.NotContains(t, facts, number, "a fact stands twice")
		facts[number] = sorted(regexp.MustCompile(`TestFact\d\d_\w+`).FindAllString(string(text[head[0]:end]), -1))
		for _, name := range facts[number] {
			assert.Equal(t, number, name[8:10], "%s stands under fact %s", name, number)
		}
	}
	return facts
}

// testedFacts are the tests of this folder that pin a fact.
func testedFacts(t *testing.T) map[string][]string {
	files, err := filepath.Glob("fact_*_test.go")
	require.NoError(t, err)
	facts := map[string][]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && strings.HasPrefix(f.Name.Name, "TestFact") {
				number := f.Name.Name[8:10]
				facts[number] = sorted(append(facts[number], f.Name.Name))
			}
		}
	}
	return facts
}

func twoDigits(number string) string { return ("0" + number)[len(number)-1:] }

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
