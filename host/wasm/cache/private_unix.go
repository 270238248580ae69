//go:build unix

package cache

import (
	"fmt"
	"os"
	"syscall"
)

// private refuses a folder that other users may put code into.
func private(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s: other users may write to it", dir)
	}
	if of, known := info.Sys().(*syscall.Stat_t); known && of.Uid != 0 && int(of.Uid) != os.Geteuid() {
		return fmt.Errorf("%s: it belongs to another user", dir)
	}
	return nil
}
