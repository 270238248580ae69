package manifest

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Pinned is one hash that Pin wrote.
type Pinned struct {
	Stage  string `json:"stage"`
	Module string `json:"module"`
	Old    string `json:"old,omitempty"` // empty where there was none
	New    string `json:"new"`
}

// Pin writes the hash of each stage's module into the manifest at path and
// changes no other byte of it. It returns what it changed; with nothing to
// change it does not touch the file. The manifest needs not be valid beyond
// naming its modules; those that cannot be read come back as *Errors, and
// then nothing is written.
func Pin(path string) ([]Pinned, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	out, changed, err := pin(path, data, openModule)
	if err != nil || len(changed) == 0 {
		return nil, err
	}
	return changed, replaceFile(path, out)
}

// pin is Pin on a text.
func pin(name string, data []byte, open func(path string) module) ([]byte, []Pinned, error) {
	s, fault := parse(name, data)
	if fault != nil {
		return nil, nil, &Errors{All: []*Error{fault}}
	}
	var f faults
	var edits []edit
	var changed []Pinned
	stages := rootTable(&f, s).sub("stage")
	for _, stage := range stages.keys() {
		t := stages.sub(stage).about("stage[" + stage + "]")
		t.stage = stage
		path := need(t, "module", "give the path of the .wasm file", asText)
		if path == "" {
			continue
		}
		m := open(s.beside(path))
		if m.err != nil && t.layers[0].values["mode"] == "off" {
			continue // it needs not be there
		}
		if m.err != nil {
			t.errorf([]string{"module"}, "%s cannot be read: %w", s.beside(path), m.err)
			continue
		}
		old, is := t.layers[0].values["sha256"].(string)
		if !is && t.has("sha256") {
			t.errorf([]string{"sha256"}, "%w", mismatch("a hash", t.layers[0].values["sha256"]))
			continue
		}
		if old != m.hash {
			edits = append(edits, s.pinEdit(stage, m.hash))
			changed = append(changed, Pinned{Stage: stage, Module: s.beside(path), Old: old, New: m.hash})
		}
	}
	if err := f.err(); err != nil {
		return nil, nil, err
	}
	return apply(data, edits), changed, nil
}

// edit replaces a range of a text.
type edit struct {
	span
	text string
}

func apply(data []byte, edits []edit) []byte {
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		out.Write(data[at:e.start])
		out.WriteString(e.text)
		at = e.end
	}
	out.Write(data[at:])
	return out.Bytes()
}

// pinEdit puts the hash in the place of the old one, in the same quotes, or
// behind the module: on a line of its own, or in the same inline table.
func (s *source) pinEdit(stage, hash string) edit {
	if at, found := s.places[dotted("stage", stage, "sha256")]; found {
		quote := `"`
		if s.data[at.value.start] == '\'' {
			quote = `'`
		}
		return edit{at.value, quote + hash + quote}
	}
	at := s.places[dotted("stage", stage, "module")]
	prefix := string(s.data[at.key.start:at.last]) // of a dotted key
	pair := prefix + `sha256 = "` + hash + `"`
	if at.inline {
		return edit{span{at.value.end, at.value.end}, ", " + pair}
	}
	lineStart := bytes.LastIndexByte(s.data[:at.key.start], '\n') + 1
	indent := strings.TrimPrefix(string(s.data[lineStart:at.key.start]), "\xef\xbb\xbf")
	end, newline := len(s.data), "\n"
	if i := bytes.IndexByte(s.data[at.value.end:], '\n'); i >= 0 {
		end = at.value.end + i
	}
	if i := bytes.IndexByte(s.data, '\n'); i > 0 && s.data[i-1] == '\r' {
		newline = "\r\n"
	}
	if end > at.value.end && s.data[end-1] == '\r' {
		end--
	}
	return edit{span{end, end}, newline + indent + pair}
}

// replaceFile writes beside the file and renames, so that a crash leaves the
// old text or the new one.
func replaceFile(path string, data []byte) (err error) {
	path, err = filepath.EvalSymlinks(path) // a link stays one
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".pin-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
