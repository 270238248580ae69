//go:build unix

package cache

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// private refuses a folder of entries that other users may put code into: it
// has to be a real folder of ours, and nobody else may replace it, or what
// leads to it.
func private(dir string) error {
	if err := ours(dir); err != nil {
		return err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); err != nil { // which links that lead in a circle fail
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&writableByOthers != 0 {
		return fmt.Errorf("%s: other users may write to it", dir)
	}
	return trusted(dir)
}

// ours refuses what is no real folder of this user's, or of root's.
func ours(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s: it is no folder", dir)
	}
	return owned(dir, info)
}

const writableByOthers = 0o022

// trusted refuses a path that others may lead elsewhere: through a folder or a
// link on it that is theirs, or a folder that they may write to. In a sticky
// one they cannot replace what is not theirs.
func trusted(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if err := owned(path, info); err != nil {
		return err
	}
	parent := filepath.Dir(path)
	switch {
	case info.Mode().Type() == fs.ModeSymlink:
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		if !filepath.IsAbs(target) {
			from, err := filepath.EvalSymlinks(parent)
			if err != nil {
				return err
			}
			target = filepath.Join(from, target)
		}
		if err := trusted(filepath.Clean(target)); err != nil {
			return err
		}
	case info.Mode().Perm()&writableByOthers != 0 && info.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("%s: other users may write to it", path)
	}
	if parent == path {
		return nil
	}
	return trusted(parent)
}

func owned(path string, info fs.FileInfo) error {
	if of, known := info.Sys().(*syscall.Stat_t); known && of.Uid != 0 && int(of.Uid) != os.Geteuid() {
		return fmt.Errorf("%s: it belongs to another user", path)
	}
	return nil
}
