package manifest

// Document is a TOML file that knows where each of its values stands, for
// those who read files of their own as strictly as a manifest is read.
// A path names the keys from the top, elements of lists by their index.
type Document struct{ source *source }

// ParseDocument reads a file's text. What is no TOML comes back as *Errors.
func ParseDocument(file string, data []byte) (*Document, error) {
	s, fault := parse(file, data)
	if fault != nil {
		return nil, Join(fault)
	}
	return &Document{s}, nil
}

// Root is the document as the TOML library decodes it.
func (d *Document) Root() map[string]any { return d.source.root }

// Has reports whether something stands at the path.
func (d *Document) Has(path ...string) bool {
	_, found := d.source.places[dotted(path...)]
	return found
}

// Errorf blames the value at a path, or the nearest table around it.
func (d *Document) Errorf(path []string, format string, args ...any) *Error {
	return d.about(d.source.valueFault(path), path).describe(format, args...)
}

// UnknownKey blames the key at a path, and says which there are.
func (d *Document) UnknownKey(path, known []string) *Error {
	return d.about(d.source.keyFault(path), path).describe("unknown key: want %s", list(known))
}

// Mismatch blames a value of the wrong type.
func (d *Document) Mismatch(path []string, want string, v any) *Error {
	return d.Errorf(path, "%w", mismatch(want, v))
}

func (d *Document) about(e *Error, path []string) *Error {
	e.Key = dotted(path...)
	return e
}

// Beside resolves a path that stands in the file.
func (d *Document) Beside(path string) string { return d.source.beside(path) }

// Join puts faults together, in the order of their places. Without any it is
// nil.
func Join(all ...*Error) error { return faults(all).err() }
