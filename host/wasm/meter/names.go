package meter

// nameSection writes the name of the module and those of the functions, shifted
// and with the meter's own: traps are shown with them.
func (e *emitter) nameSection(out []byte) []byte {
	module, functions := e.readNames()
	out = appendName(out, "name")
	if module != "" {
		content := appendName(nil, module)
		out = append(appendU32(append(out, 0), uint32(len(content))), content...)
	}
	content := appendU32(nil, uint32(len(functions)+len(e.helpers)))
	for _, f := range functions {
		content = appendName(appendU32(content, e.shifted(f.index)), f.name)
	}
	for i, h := range e.helpers {
		content = appendName(appendU32(content, uint32(len(e.functions)+2+i)), h.name)
	}
	return append(appendU32(append(out, 1), uint32(len(content))), content...)
}

// The engine takes the names of all functions apart, and shows those of some 30
// with every trap.
const (
	maxName  = 128
	maxNames = 1 << 20 // all in all
	nameUnit = 8       // of it, for each
)

// printable is what of a name can be shown: an error, and a line of a log, is
// made of it.
func printable(name string) string {
	b := []byte(name[:min(len(name), maxName)])
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}

type functionName struct {
	index uint32
	name  string
}

// readNames takes in what of a name section can be read. It is the one part of
// a module that nothing depends on, so nothing in it is refused.
func (e *emitter) readNames() (module string, functions []functionName) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(*Error); !ok {
				panic(r)
			}
		}
	}()
	room := maxNames
	for r := e.names; r.more(); {
		id := r.byte()
		content := r.limit(r.u32())
		r.at = len(content.in)
		switch id {
		case 0:
			module = printable(content.name())
		case 1:
			for n, last := content.count(), -1; n > 0; n-- {
				f := functionName{content.u32(), printable(content.name())}
				if room -= nameUnit + len(f.name); room < 0 {
					return module, functions
				}
				if int(f.index) > last && int(f.index) < len(e.functions) {
					functions = append(functions, f)
					last = int(f.index)
				}
			}
		}
	}
	return module, functions
}
