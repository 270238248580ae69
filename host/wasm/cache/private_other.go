//go:build !unix

package cache

import (
	"fmt"
	"os"
)

// private leaves it to the system who may write to a folder of a user.
func private(string) error { return nil }

// ours refuses what is no real folder.
func ours(dir string) error {
	info, err := os.Lstat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s: it is no folder", dir)
	}
	return err
}
