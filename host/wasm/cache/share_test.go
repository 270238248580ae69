package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sharerVariable makes the test binary a process that shares the cache in that
// folder.
const sharerVariable = "HOOKHOST_TEST_SHARER"

const (
	sharedModules = 4
	sharedOthers  = 150 // functions: it takes a while to compile them, and to write and read their code
	sharedStarts  = 6
)

// share starts so many times, and uses every module each time.
func share(dir string, starts int) error {
	ctx := context.Background()
	for range starts {
		c := New(Options{Dir: dir, Version: "7"})
		var all sync.WaitGroup
		faults := make([]error, sharedModules)
		for number := range faults {
			all.Go(func() { faults[number] = use(ctx, c, byte(number)) })
		}
		all.Wait()
		for _, err := range faults {
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func use(ctx context.Context, c *Cache, number byte) error {
	code, err := c.Compile(ctx, Source{Module: answering(number, sharedOthers)})
	if err != nil {
		return err
	}
	answer, err := ask(ctx, code)
	if err == nil && answer != number {
		err = fmt.Errorf("module %d answered %d", number, answer)
	}
	if err != nil {
		return err
	}
	return code.Close(ctx)
}

// TestProcessesShareAFolder runs several that start over and over, while what
// they share is damaged under them in every way.
func TestProcessesShareAFolder(t *testing.T) {
	for name, harm := range map[string]func(dir string) error{
		"in peace":              func(string) error { return nil },
		"files are truncated":   func(dir string) error { return truncateOne(dir) },
		"entries are removed":   func(dir string) error { return removeOne(filepath.Join(dir, "*", "*")) },
		"the folder is removed": func(dir string) error { return os.RemoveAll(dir) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			over := make(chan struct{})
			var sharers, harming sync.WaitGroup
			for range 4 {
				sharers.Go(func() {
					child := exec.CommandContext(t.Context(), os.Args[0])
					child.Env = append(os.Environ(), sharerVariable+"="+dir)
					out, err := child.CombinedOutput()
					assert.NoError(t, err, "%s", out)
				})
			}
			harming.Go(func() {
				for {
					select {
					case <-over:
						return
					case <-time.After(time.Duration(5+rand.IntN(40)) * time.Millisecond):
						_ = harm(dir) // what it would harm may be gone
					}
				}
			})
			sharers.Wait()
			close(over)
			harming.Wait()

			require.NoError(t, share(dir, 1), "another start mends what is still damaged")
			c := New(Options{Dir: dir, Version: "7"})
			for number := range byte(sharedModules) {
				_, err := c.entry(keyOf(answering(number, sharedOthers))).read()
				assert.NoError(t, err)
			}
			left, err := filepath.Glob(filepath.Join(dir, "*", buildName))
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}

func truncateOne(dir string) error {
	path, err := one(filepath.Join(dir, "*", "*", "*"), filepath.Join(dir, "*", "*", "*", "*", "*"))
	if err != nil {
		return err
	}
	return os.Truncate(path, rand.Int64N(1000))
}

func removeOne(pattern string) error {
	path, err := one(pattern)
	if err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// one path of those that match.
func one(patterns ...string) (string, error) {
	var all []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		all = append(all, found...)
	}
	if len(all) == 0 {
		return "", os.ErrNotExist
	}
	return all[rand.IntN(len(all))], nil
}
