package manifest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// source is one TOML file: its text, its values and where each of them stands.
type source struct {
	file   string
	data   []byte
	shown  []byte // data with secrets blotted out: what an error may quote
	root   map[string]any
	places positions
}

// parse reads a file's text. What is no TOML comes back as an *Error.
func parse(file string, data []byte) (*source, *Error) {
	if len(data) > maxFile {
		return nil, (&Error{File: file}).describe("%d bytes: want at most %d", len(data), maxFile)
	}
	places, shallow := newPositions(data)
	s := &source{file: file, data: data, root: map[string]any{}, places: places}
	s.shown = s.blot()
	if !shallow {
		return nil, (&Error{File: file}).describe("nests deeper than %d", maxDepth)
	}
	if err := decode(data, &s.root); err != nil {
		var syntax toml.ParseError
		if !errors.As(err, &syntax) {
			return nil, (&Error{File: file}).describe("not TOML: %w", err)
		}
		offset := syntax.Position.Start
		if bom(data) {
			offset += 3
		}
		return nil, s.fault(offset, syntax.Position.Len).describe("not TOML: %s", syntax.Message)
	}
	return s, nil
}

// blot hides what can be a password: in the store's URL, and where only the
// place of a secret belongs.
func (s *source) blot() []byte {
	shown := append([]byte(nil), s.data...)
	for path, at := range s.places {
		secret := strings.HasPrefix(path, "stage.") && strings.Contains(path, ".secrets.") || path == "store.username" || path == "store.password"
		value := strings.TrimLeft(string(s.data[at.value.start:at.value.end]), `"'`)
		if path == "store.url" && strings.ContainsAny(value, "@?") ||
			secret && !strings.HasPrefix(value, "env:") && !strings.HasPrefix(value, "file:") {
			for i := at.value.start; i < at.value.end; i++ {
				if shown[i] != '\n' {
					shown[i] = '*'
				}
			}
		}
	}
	return shown
}

// decode keeps a panic of the library, which its parser has for states that it
// takes for impossible, from ending the host.
func decode(data []byte, into *map[string]any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the parser gave up: %v", p)
		}
	}()
	return toml.Unmarshal(data, into)
}

// beside resolves a path that stands in the file.
func (s *source) beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(s.file), path)
}

// fault makes an error at an offset that underlines so many bytes.
func (s *source) fault(offset, length int) *Error {
	offset = max(0, min(offset, len(s.data)))
	line, col, text := lineAt(s.data, offset)
	end := max(offset, min(offset+length, text.end))
	return &Error{
		File: s.file, Line: line, Col: col,
		source: string(s.shown[text.start:text.end]),
		width:  utf8.RuneCount(s.data[offset:end]),
	}
}

// keyFault blames the key at a path, or the nearest table around it.
func (s *source) keyFault(path []string) *Error {
	for ; len(path) > 0; path = path[:len(path)-1] {
		if at, found := s.places[dotted(path...)]; found {
			return s.fault(at.key.start, at.key.end-at.key.start)
		}
	}
	return s.fault(0, 0)
}

// valueFault blames the value at a path, or what keyFault does.
func (s *source) valueFault(path []string) *Error {
	if at, found := s.places[dotted(path...)]; found {
		return s.placeFault(at)
	}
	return s.keyFault(path)
}

// placeFault blames the value at a place, or the key of a table header.
func (s *source) placeFault(at place) *Error {
	where := at.key
	if at.value.end > at.value.start {
		where = at.value
	}
	return s.fault(where.start, where.end-where.start)
}
