package cache

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// What bounds the disk. An entry of a Go guest takes some 12 MB.
const (
	MaxAge  = 30 * 24 * time.Hour // since an entry was used, of whatever version
	MaxSize = 1 << 30             // bytes of all entries; the last used ones stay
)

// used is an entry on the disk, whole or not.
type used struct {
	entry
	last time.Time
	size int64
}

// sweep deletes the entries that are too old or too many. It runs after one
// was added, as nothing else makes them more.
func (c *Cache) sweep() {
	entries := c.entries()
	slices.SortFunc(entries, func(a, b used) int { return b.last.Compare(a.last) })
	var total int64
	for i, e := range entries {
		total += e.size
		if time.Since(e.last) > MaxAge || i > 0 && total > MaxSize {
			e.discard()
		}
	}
	generations, _ := filepath.Glob(filepath.Join(c.options.Dir, generationPrefix+"*"))
	for _, dir := range generations {
		_ = os.Remove(dir) // if it is empty
	}
}

// entries are those of all versions, and what processes that died left of some.
func (c *Cache) entries() (found []used) {
	dirs, _ := filepath.Glob(filepath.Join(c.options.Dir, generationPrefix+"*", "*"))
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil {
			found = append(found, used{entry: entry(dir), last: info.ModTime(), size: sizeOf(dir)})
		}
	}
	return found
}

// sizeOf counts the bytes below a folder, of which others may delete some
// meanwhile.
func sizeOf(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	return size
}
