//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package cache

import (
	"os"
	"syscall"
)

// hold marks a folder as that of a living process, until it is let go of or
// the process dies. Where the disk knows no locks nothing is marked.
func hold(dir string) (letGo func()) {
	folder, err := os.Open(dir)
	if err != nil {
		return func() {}
	}
	_ = syscall.Flock(int(folder.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	return func() { _ = folder.Close() }
}

// held reports whether a living process may hold the folder: its age alone
// does not tell, as clocks jump.
func held(dir string) bool {
	folder, err := os.Open(dir)
	if err != nil {
		return true
	}
	defer folder.Close()
	return syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
