package cache

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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
// was added, as nothing else makes them more. The folder may hold files of
// others: only what is an entry for certain is touched.
func (c *Cache) sweep() {
	generations := c.generations()
	entries := entriesOf(generations)
	slices.SortFunc(entries, func(a, b used) int { return b.last.Compare(a.last) })
	var total int64
	for i, e := range entries {
		total += e.size
		if time.Since(e.last) > MaxAge || i > 0 && total > MaxSize {
			e.discard()
		}
	}
	for _, dir := range generations {
		if dir != c.folder {
			removeEmpty(dir)
		}
	}
}

// generations are the folders of entries, of all versions.
func (c *Cache) generations() (dirs []string) {
	for _, dir := range foldersIn(c.options.Dir, generationName) {
		if info, err := os.Lstat(filepath.Join(dir, markerFile)); err == nil && info.Mode().IsRegular() {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

var (
	entryName = regexp.MustCompile(`^[0-9a-f]{64}$`)
	buildForm = regexp.MustCompile(`^build-[0-9]+$`)
)

// entriesOf are those in the folders, and what processes that died left of
// some.
func entriesOf(generations []string) (found []used) {
	for _, generation := range generations {
		dirs := foldersIn(generation, entryName)
		for _, build := range foldersIn(generation, buildForm) {
			if !held(build) {
				dirs = append(dirs, build)
			}
		}
		for _, dir := range dirs {
			if info, err := os.Lstat(dir); err == nil {
				found = append(found, used{entry: entry(dir), last: info.ModTime(), size: sizeOf(dir)})
			}
		}
	}
	return found
}

// foldersIn are the real folders in one whose names have that form.
func foldersIn(dir string, form *regexp.Regexp) (paths []string) {
	all, _ := os.ReadDir(dir) // which may be gone
	for _, d := range all {
		if d.IsDir() && form.MatchString(d.Name()) {
			paths = append(paths, filepath.Join(dir, d.Name()))
		}
	}
	return paths
}

// removeEmpty deletes a folder of entries that holds none, nor anything else.
func removeEmpty(generation string) {
	if all, err := os.ReadDir(generation); err == nil && len(all) == 1 && all[0].Name() == markerFile {
		_ = os.Remove(filepath.Join(generation, markerFile))
		_ = os.Remove(generation) // unless something was put into it meanwhile
	}
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
