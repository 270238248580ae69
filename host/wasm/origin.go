package wasm

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// Origin is what a module says about how it was made. Any of it may be
// missing, and none of it is proven.
type Origin struct {
	Languages []string // each with its version, if that is given
	Tools     []string // too: compilers, linkers
	Package   string   // of a Go program: its import path
	Modules   []string // of a Go program: PATH VERSION of its own module and of those it depends on
}

// originOf reads the "producers" section, which is a convention of all
// toolchains, and the build information of Go.
func originOf(module []byte) Origin {
	var o Origin
	for id, content := range sections(module) {
		r := reader{content}
		if id == 0 && string(r.bytes()) == "producers" {
			o.readProducers(r)
		}
	}
	o.readGo(module)
	return o
}

// sections gives the sections of a module as far as they are whole.
func sections(module []byte) func(yield func(id byte, content []byte) bool) {
	return func(yield func(byte, []byte) bool) {
		const header = 8
		if len(module) < header {
			return
		}
		r := reader{module[header:]}
		for len(r.rest) > 0 {
			id := r.rest[0]
			r.rest = r.rest[1:]
			content := r.bytes()
			if content == nil || !yield(id, content) {
				return
			}
		}
	}
}

// reader takes apart bytes of unknown origin. What is not there is empty, and
// nothing follows it.
type reader struct{ rest []byte }

// uint reads a LEB128 number.
func (r *reader) uint() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.rest = nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// bytes reads a length and so many bytes. nil is too few.
func (r *reader) bytes() []byte {
	size := r.uint()
	if size > uint64(len(r.rest)) || r.rest == nil {
		r.rest = nil
		return nil
	}
	content := r.rest[:size:size]
	r.rest = r.rest[size:]
	return content
}

func (o *Origin) readProducers(r reader) {
	for fields := r.uint(); fields > 0 && len(r.rest) > 0; fields-- {
		field := string(r.bytes())
		for values := r.uint(); values > 0 && len(r.rest) > 0; values-- {
			value := strings.TrimSpace(string(r.bytes()) + " " + string(r.bytes()))
			switch field {
			case "language":
				o.Languages = append(o.Languages, value)
			case "processed-by", "sdk":
				o.Tools = append(o.Tools, value)
			}
		}
	}
}

// goInfoBegin and goInfoEnd stand around the text about packages and modules
// in the data of a Go program.
var (
	goInfoBegin = []byte("\x30\x77\xaf\x0c\x92\x74\x08\x02\x41\xe1\xc1\x07\xe6\xd6\x18\xe6")
	goInfoEnd   = []byte("\xf9\x32\x43\x31\x86\x18\x20\x72\x00\x82\x42\x10\x41\x16\xd8\xf2")
)

func (o *Origin) readGo(module []byte) {
	_, text, _ := bytes.Cut(module, goInfoBegin)
	text, _, whole := bytes.Cut(text, goInfoEnd)
	if !whole {
		return
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case fields[0] == "path" && len(fields) > 1:
			o.Package = fields[1]
		case (fields[0] == "mod" || fields[0] == "dep") && len(fields) > 2:
			o.Modules = append(o.Modules, fields[1]+" "+fields[2])
		}
	}
}
