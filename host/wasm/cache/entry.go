package cache

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// entry is the folder of one module: the rewritten module, the rewriter's
// notes, a folder that wazero keeps its code in, and the sums of all of them.
type entry string

const (
	moduleFile = "module.wasm"
	notesFile  = "notes"
	sumsFile   = "sums.json"
	buildName  = "build-*" // of an entry that is not in its place yet
)

var (
	errNoEntry = errors.New("no entry")
	errDamaged = errors.New("damaged entry")
)

func (c *Cache) entry(k key) entry { return entry(filepath.Join(c.folder, hex.EncodeToString(k[:]))) }

// newEntry makes one that is not in its place yet.
func (c *Cache) newEntry() (entry, error) {
	if c.folder == "" {
		return "", errors.New("there is no folder for them")
	}
	if err := os.MkdirAll(c.folder, 0o700); err != nil {
		return "", err
	}
	if err := private(c.folder); err != nil {
		return "", err
	}
	if err := mark(c.folder); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(c.folder, buildName)
	return entry(dir), err
}

// mark makes a folder known as one of entries.
func mark(generation string) error {
	file, err := os.OpenFile(filepath.Join(generation, markerFile), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

func (e entry) code() string { return e.file("code") }

func (e entry) file(name string) string { return filepath.Join(string(e), name) }

// sum is what is known of a whole file.
type sum struct {
	Size int64  `json:"size"`
	CRC  uint32 `json:"crc32c"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// read gives what was compiled, after every file was found to be whole. Errors
// but errNoEntry and errDamaged say nothing about the entry.
func (e entry) read() (Rewritten, error) {
	if private(filepath.Dir(string(e))) != nil {
		return Rewritten{}, errNoEntry
	}
	if _, err := os.Lstat(string(e)); errors.Is(err, fs.ErrNotExist) {
		return Rewritten{}, errNoEntry
	}
	if err := ours(string(e)); err != nil {
		return Rewritten{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if info, err := os.Lstat(e.file(sumsFile)); err == nil && !info.Mode().IsRegular() {
		return Rewritten{}, fmt.Errorf("%w: no file: %s", errDamaged, sumsFile)
	}
	text, err := os.ReadFile(e.file(sumsFile))
	if err != nil {
		return Rewritten{}, damagedIfLost(err)
	}
	want := map[string]sum{}
	if err := json.Unmarshal(text, &want); err != nil {
		return Rewritten{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	have, files, err := e.sums()
	if err != nil {
		return Rewritten{}, damagedIfLost(err)
	}
	if !maps.Equal(want, have) {
		return Rewritten{}, errDamaged
	}
	return Rewritten{Module: files[moduleFile], Notes: files[notesFile]}, nil
}

// damagedIfLost tells a file that is not there from one that cannot be read
// now.
func damagedIfLost(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return err
}

// sums reads all files of the entry but the sums themselves. It keeps what
// stands in those at its top.
func (e entry) sums() (sums map[string]sum, top map[string][]byte, err error) {
	sums, top = map[string]sum{}, map[string][]byte{}
	root := os.DirFS(string(e))
	err = fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == sumsFile {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%w: no file: %s", errDamaged, path)
		}
		if !strings.Contains(path, "/") {
			top[path], err = fs.ReadFile(root, path)
			sums[path] = sum{Size: int64(len(top[path])), CRC: crc32.Checksum(top[path], castagnoli)}
			return err
		}
		file, err := root.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		crc := crc32.New(castagnoli)
		size, err := io.Copy(crc, file)
		sums[path] = sum{Size: size, CRC: crc.Sum32()}
		return err
	})
	return sums, top, err
}

// seal writes what was compiled, and the sums last.
func (e entry) seal(r Rewritten) error {
	if err := os.WriteFile(e.file(moduleFile), r.Module, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(e.file(notesFile), r.Notes, 0o600); err != nil {
		return err
	}
	sums, _, err := e.sums()
	if err != nil {
		return err
	}
	text, err := json.Marshal(sums)
	if err != nil {
		return err
	}
	return os.WriteFile(e.file(sumsFile), text, 0o600)
}

// publish puts a sealed entry in its place, unless another process was first.
func (e entry) publish(place entry) error {
	err := os.Rename(string(e), string(place))
	if err != nil {
		if _, there := place.read(); there == nil {
			return nil
		}
	}
	return err
}

// discard deletes an entry that others may look at: first as a whole, by
// taking it from its place.
func (e entry) discard() {
	aside, err := os.MkdirTemp(filepath.Dir(string(e)), buildName)
	if err != nil {
		return
	}
	_ = os.Rename(string(e), filepath.Join(aside, "damaged"))
	entry(aside).remove()
}

func (e entry) remove() { _ = os.RemoveAll(string(e)) }

// touch notes that the entry was used, about now.
func (e entry) touch() {
	const often = time.Hour
	if info, err := os.Stat(string(e)); err != nil || time.Since(info.ModTime()) < often {
		return
	}
	now := time.Now()
	_ = os.Chtimes(string(e), now, now) // not on a disk that is only read
}
