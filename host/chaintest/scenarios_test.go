package chaintest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The shipped scenarios, with the shipped guests.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("../../chaintests/*.toml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		Run(t, file)
	}
}
