package wasm

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"

	"github.com/tetratelabs/wazero"
)

// code is the compiled form of one module, shared by all the stages that it
// serves.
type code struct {
	key  [sha256.Size]byte
	refs int // guarded by Runtime.mu

	mu    sync.Mutex // held while compiling
	cache wazero.CompilationCache
}

// folder is where the compiled form of one module is kept on disk, with a sum
// over it: wazero runs what it finds there as it is.
type folder string

const sumFile = "sum"

// open makes a cache on the folder. What does not match its sum is thrown
// away, and the folder is fresh then. It fails where that cannot be done.
func (f folder) open() (cache wazero.CompilationCache, fresh bool, err error) {
	if f.verify() != nil {
		fresh = true
		if err := os.RemoveAll(string(f)); err != nil {
			return nil, false, err
		}
		if err := os.MkdirAll(string(f), 0o700); err != nil {
			return nil, false, err
		}
	}
	cache, err = wazero.NewCompilationCacheWithDir(string(f))
	return cache, fresh, err
}

// builtWith names the version of wazero that a program is built with, as
// wazero names it itself. Programs that differ in it, as a test binary may
// from a released one, would throw each other's code away.
func builtWith() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dep := range info.Deps {
		if dep.Path == "github.com/tetratelabs/wazero" {
			return dep.Version
		}
	}
	return "unknown"
}

func (f folder) verify() error {
	want, err := os.ReadFile(filepath.Join(string(f), sumFile))
	if err != nil {
		return err
	}
	have, err := f.sum()
	if err != nil {
		return err
	}
	if have != string(want) {
		return fs.ErrInvalid
	}
	return nil
}

// seal writes the sum, after compiling.
func (f folder) seal() error {
	sum, err := f.sum()
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(string(f)), sumFile)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // gone already unless something failed
	_, err = temp.WriteString(sum)
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), filepath.Join(string(f), sumFile))
}

func (f folder) sum() (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(string(f), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == sumFile {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		_, _ = io.WriteString(h, d.Name())
		_, err = io.Copy(h, file)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}
