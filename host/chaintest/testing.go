package chaintest

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hookhost/hookhost/chain/manifest"
)

// CacheVariable names the folder in which tests keep compiled modules. Without
// it they use hookhost-test-cache in the folder for temporary files.
const CacheVariable = "HOOKHOST_TEST_CACHE"

// CacheDir is the folder in which tests keep compiled modules, so that each is
// compiled once for all of them.
func CacheDir() string {
	return cmp.Or(os.Getenv(CacheVariable), filepath.Join(os.TempDir(), "hookhost-test-cache"))
}

// Run plays every scenario of a file as a subtest, and fails with a diff for
// each expectation that was not met.
func Run(t *testing.T, file string) {
	t.Helper()
	scenarios, err := Load(file)
	if err != nil {
		t.Fatal(explain(err))
	}
	for _, s := range scenarios {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel() // each has a world of its own
			report, err := s.Execute(t.Context(), Options{CacheDir: CacheDir()})
			if err != nil {
				t.Fatal(explain(err))
			}
			for _, f := range report.Failures {
				t.Error(f.String())
			}
		})
	}
}

// explain shows a fault of a file with its line.
func explain(err error) string {
	var many *manifest.Errors
	if errors.As(err, &many) {
		return "\n" + many.Render()
	}
	return err.Error()
}
