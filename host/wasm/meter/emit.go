package meter

import "strconv"

// emitter writes the module under the meter.
type emitter struct {
	*module
	code    []byte // bodies of the functions that the module had
	added   []byte // types
	typed   map[string]uint32
	helpers []helper
	helped  map[helperKey]uint32
	offsets []reader // constant expressions of active segments, kept in globals
	empty   bool     // whether the empty segment is used
}

// Index spaces: imports come after those of the module, all else after all of
// the module's.
func (e *emitter) tick() uint32  { return e.imports.functions }
func (e *emitter) deep() uint32  { return e.imports.functions + 1 }
func (e *emitter) fuel() uint32  { return uint32(len(e.globals)) }
func (e *emitter) depth() uint32 { return uint32(len(e.globals)) + 1 }

func (e *emitter) shifted(function uint32) uint32 {
	if function < e.imports.functions {
		return function
	}
	return function + 2
}

func (e *emitter) emptySegment() uint32 {
	e.empty = true
	return uint32(len(e.data))
}

func (m *module) emit() *Rewritten {
	e := &emitter{module: m, typed: map[string]uint32{}, helped: map[helperKey]uint32{}}
	code := m.sections[sectionCode]
	e.code = make([]byte, 0, (len(code.in)-code.at)*3/2)
	e.tickType()
	e.deepType()
	e.helper(helperKey{kind: helpRefill})
	start := e.helper(helperKey{kind: helpStart})
	for i := int(m.imports.functions); i < len(m.functions); i++ {
		e.function(&m.functions[i])
	}

	const room = 1 << 16 // for what is added outside of the code
	out := make([]byte, 0, len(m.in)+len(e.code)-(len(code.in)-code.at)+room)
	out = append(out, m.in[:8]...)
	result := &Rewritten{Unheld: m.unheld, Tables: len(m.tables), Elements: m.slots, Variables: len(m.globals)}
	section := func(id byte, write func(out []byte) []byte) {
		from := len(out)
		out = append(out, id, 0, 0, 0, 0, 0)
		content := len(out)
		if out = write(out); len(out) == content {
			out = out[:from]
			return
		}
		putU32(out[from+1:content], uint32(len(out)-content))
	}
	section(sectionType, e.typeSection)
	section(sectionImport, e.importSection)
	section(sectionFunction, e.functionSection)
	section(sectionTable, func(out []byte) []byte { return e.verbatim(out, sectionTable) })
	section(sectionMemory, func(out []byte) []byte { return e.verbatim(out, sectionMemory) })
	section(sectionGlobal, e.globalSection)
	section(sectionExport, func(out []byte) []byte { return e.exportSection(out, start, result) })
	section(sectionElement, e.elementSection)
	section(sectionDataCount, e.dataCountSection)
	section(sectionCode, e.codeSection)
	section(sectionData, e.dataSection)
	section(sectionCustom, e.nameSection)
	section(sectionCustom, func(out []byte) []byte { return append(out, e.producer.in[e.producer.at:]...) })
	result.Module = out
	return result
}

// items starts a section with those the module had and room for more.
func (e *emitter) items(out []byte, section int, added int) (r reader, n uint32, _ []byte) {
	r = e.sections[section]
	if r.in != nil {
		n = r.u32()
	}
	if n+uint32(added) == 0 {
		return r, 0, out
	}
	return r, n, appendU32(out, n+uint32(added))
}

func (e *emitter) verbatim(out []byte, section int) []byte {
	r := e.sections[section]
	return append(out, r.in[r.at:]...)
}

func (e *emitter) typeSection(out []byte) []byte {
	r, _, out := e.items(out, sectionType, len(e.typed))
	return append(append(out, r.in[r.at:]...), e.added...)
}

// typeOf is the index of an added function type.
func (e *emitter) typeOf(params, results []byte) uint32 {
	encoded := append([]byte{0x60}, appendU32(nil, uint32(len(params)))...)
	encoded = append(encoded, params...)
	encoded = appendU32(encoded, uint32(len(results)))
	encoded = append(encoded, results...)
	if i, ok := e.typed[string(encoded)]; ok {
		return i
	}
	i := uint32(len(e.types) + len(e.typed))
	e.typed[string(encoded)] = i
	e.added = append(e.added, encoded...)
	return i
}

func (e *emitter) importSection(out []byte) []byte {
	r, _, out := e.items(out, sectionImport, 2)
	out = append(out, r.in[r.at:]...)
	for _, f := range []struct {
		name string
		typ  uint32
	}{{Tick, e.tickType()}, {Deep, e.deepType()}} {
		out = appendName(appendName(out, Module), f.name)
		out = appendU32(append(out, 0), f.typ)
	}
	return out
}

func (e *emitter) tickType() uint32 { return e.typeOf([]byte{typeI64}, []byte{typeI64}) }
func (e *emitter) deepType() uint32 { return e.typeOf(nil, nil) }

func (e *emitter) functionSection(out []byte) []byte {
	r, _, out := e.items(out, sectionFunction, len(e.helpers))
	out = append(out, r.in[r.at:]...)
	for _, h := range e.helpers {
		out = appendU32(out, h.typ)
	}
	return out
}

func (e *emitter) globalSection(out []byte) []byte {
	r, n, out := e.items(out, sectionGlobal, 2+len(e.offsets))
	for range n {
		from := r.at
		r.globalType()
		out = append(out, e.in[from:r.at]...)
		out = e.constantExpression(out, &r)
	}
	out = append(out, typeI64, 1, opI64Const, 0, opEnd)
	out = append(out, typeI32, 1, opI32Const, 0, opEnd)
	for _, offset := range e.offsets {
		out = append(out, typeI32, 0)
		out = e.constantExpression(out, &offset)
	}
	return out
}

// constantExpression copies one, with the functions shifted.
func (e *emitter) constantExpression(out []byte, r *reader) []byte {
	return e.withFunctions(out, r, func(function func(reader)) { e.constant(r, function) })
}

// withFunctions copies what pass goes over, with the functions shifted.
func (e *emitter) withFunctions(out []byte, r *reader, pass func(function func(before reader))) []byte {
	from := r.at
	pass(func(before reader) {
		out = append(out, e.in[from:before.at]...)
		out = appendU32(out, e.shifted(before.u32()))
		from = before.at
	})
	return append(out, e.in[from:r.at]...)
}

func (e *emitter) exportSection(out []byte, start uint32, result *Rewritten) []byte {
	for i, g := range e.globals {
		if g.held(i, e.imports.globals) {
			result.Globals = append(result.Globals, GlobalPrefix+strconv.Itoa(i))
		}
	}
	r, n, out := e.items(out, sectionExport, 3+len(result.Globals))
	for range n {
		from := r.at
		r.skip(r.u32())
		kind := r.byte()
		out = append(out, e.in[from:r.at]...)
		if i := r.u32(); kind == 0 {
			out = appendU32(out, e.shifted(i))
		} else {
			out = appendU32(out, i)
		}
	}
	export := func(name string, kind byte, index uint32) {
		out = appendU32(append(appendName(out, name), kind), index)
	}
	export(Fuel, 3, e.fuel())
	export(Depth, 3, e.depth())
	export(Start, 0, start)
	for i, g := range e.globals {
		if g.held(i, e.imports.globals) {
			export(GlobalPrefix+strconv.Itoa(i), 3, uint32(i))
		}
	}
	return out
}

func (e *emitter) elementSection(out []byte) []byte {
	r, n, out := e.items(out, sectionElement, 0)
	for range n {
		out = e.withFunctions(out, &r, func(function func(reader)) { e.element(&r, function) })
	}
	return out
}

func (e *emitter) segments() uint32 {
	n := uint32(len(e.data))
	if e.empty {
		n++
	}
	return n
}

func (e *emitter) dataCountSection(out []byte) []byte {
	if e.segments() == 0 {
		return out
	}
	return appendU32(out, e.segments())
}

func (e *emitter) dataSection(out []byte) []byte {
	if e.segments() == 0 {
		return out
	}
	out = appendU32(out, e.segments())
	for _, s := range e.data {
		out = appendU32(append(out, 1), uint32(len(s.bytes)))
		out = append(out, s.bytes...)
	}
	if e.empty {
		out = append(out, 1, 0)
	}
	return out
}

func (e *emitter) codeSection(out []byte) []byte {
	out = appendU32(out, uint32(len(e.functions))-e.imports.functions+uint32(len(e.helpers)))
	out = append(out, e.code...)
	for _, h := range e.helpers {
		out = append(appendU32(out, uint32(len(h.body))), h.body...)
	}
	return out
}

// function writes the body of one.
func (e *emitter) function(f *function) {
	from := len(e.code)
	out := append(e.code, 0, 0, 0, 0, 0) // for the size, in its longest form
	out = append(out, f.locals.in[f.locals.at:]...)
	if f.charged {
		out = e.charge(out, e.regions[f.entry])
	}
	if f.deep {
		out = e.takeDepth(out, f.frame)
		out = append(out, opBlock)
		out = e.resultType(out, f.typ)
	}
	at := f.body.at
	for _, edit := range e.edits[f.edits[0]:f.edits[1]] {
		out = append(out, e.in[at:edit.from]...)
		out = e.edited(out, f, &edit)
		at = int(edit.to)
	}
	out = append(out, e.in[at:len(f.body.in)]...)
	if f.deep {
		out = e.giveDepth(out, f.frame)
		out = append(out, opEnd)
	}
	putU32(out[from:from+5], uint32(len(out)-from-5))
	e.code = out
}

// putU32 fills all of five bytes.
func putU32(out []byte, v uint32) {
	for i := range out {
		out[i] = byte(v) | 0x80
		v >>= 7
	}
	out[4] &= 0x7f
}

func (e *emitter) resultType(out []byte, typ uint32) []byte {
	switch types := e.types[typ].resultTypes; len(types) {
	case 0:
		return append(out, typeEmpty)
	case 1:
		return append(out, types[0])
	default:
		return appendSigned(out, int64(e.typeOf(nil, types)))
	}
}

func (e *emitter) edited(out []byte, f *function, edit *edit) []byte {
	original := e.in[edit.from:edit.to]
	help := func(kind helperKind) []byte {
		return appendU32(append(out, opCall), e.helper(helperKey{kind, edit.a, edit.b}))
	}
	switch edit.kind {
	case editLoop:
		return e.loopHeader(out, original, e.regions[edit.region])
	case editLoopEnd:
		if e.omit.fuel {
			return append(out, opEnd)
		}
		return append(out, opEnd, opEnd)
	case editLatched:
		return e.latchedHeader(out, original)
	case editLatchedEnd:
		return e.latchedEnd(out, e.regions[edit.region])
	case editBranch:
		if e.omit.fuel {
			return append(out, original...)
		}
		return appendU32(append(out, original[0]), edit.a)
	case editBranches:
		if e.omit.fuel {
			return append(out, original...)
		}
		out = appendU32(append(out, opBrTable), edit.b)
		for _, label := range e.labels[edit.a : edit.a+edit.b+1] {
			out = appendU32(out, label)
		}
		return out
	case editCall:
		return appendU32(append(out, opCall), e.shifted(edit.a))
	case editReturnCall:
		if f.deep {
			out = e.giveDepth(out, f.frame)
		}
		return appendU32(append(out, opReturnCall), e.shifted(edit.a))
	case editReturnIndirect:
		if f.deep {
			out = e.giveDepth(out, f.frame)
		}
		return append(out, original...)
	case editReturn:
		if f.deep {
			out = e.giveDepth(out, f.frame)
		}
		return append(out, original...)
	case editRefFunc:
		return appendU32(append(out, opRefFunc), e.shifted(edit.a))
	case editGrow:
		return help(helpGrow)
	case editFill:
		return help(helpFill)
	case editCopy:
		return help(helpCopy)
	case editInit:
		if !e.data[edit.a].passive { // after the start it has no bytes
			return append(appendU32(append(out, opMisc, miscMemoryInit), e.emptySegment()), 0)
		}
		return help(helpInit)
	case editDrop:
		return appendU32(append(out, opMisc, miscDataDrop), e.emptySegment())
	case editTableFill:
		return help(helpTableFill)
	case editTableGrow:
		return help(helpTableGrow)
	case editTableCopy:
		return help(helpTableCopy)
	default:
		return help(helpTableInit)
	}
}

// charge takes a cost from the slice.
func (e *emitter) charge(out []byte, cost uint32) []byte {
	out = appendU32(append(out, opGlobalGet), e.fuel())
	out = appendSigned(append(out, opI64Const), int64(max(cost, 1)))
	out = append(out, opI64Sub)
	return e.charged(out)
}

// loopHeader puts a loop around one, which refills when the slice is used up.
// So the call is not within the loop: nothing that the loop keeps in registers
// has to outlive it.
func (e *emitter) loopHeader(out, header []byte, cost uint32) []byte {
	if e.omit.fuel {
		return append(out, header...)
	}
	out = append(out, header...)
	out = e.refillIfBelow(out)
	out = append(out, header...)
	out = appendU32(append(out, opGlobalGet), e.fuel())
	out = append(out, opI64Const, 0, opI64LtS, opBrIf, 1)
	out = appendU32(append(out, opGlobalGet), e.fuel())
	out = appendSigned(append(out, opI64Const), int64(max(cost, 1)))
	return appendU32(append(out, opI64Sub, opGlobalSet), e.fuel())
}

// latchedHeader puts blocks around and into a loop: one to leave it by, the loop
// that goes on after a refill, the loop itself, the block whose end is where it
// goes back, and one of the loop's own type, by which the engine sees that the
// body leaves what it should.
func (e *emitter) latchedHeader(out, header []byte) []byte {
	if e.omit.fuel {
		return append(out, header...)
	}
	out = append(append(out, opBlock), header[1:]...)
	out = append(append(out, header...), header...)
	out = append(out, opBlock, typeEmpty, opBlock)
	return append(out, header[1:]...)
}

// latchedEnd leaves the loop, and charges for what goes back.
func (e *emitter) latchedEnd(out []byte, cost uint32) []byte {
	if e.omit.fuel {
		return append(out, opEnd)
	}
	out = append(out, opEnd, opBr, 3, opEnd)
	out = appendU32(append(out, opGlobalGet), e.fuel())
	out = appendSigned(append(out, opI64Const), int64(max(cost, 1)))
	out = appendU32(append(out, opI64Sub, opGlobalSet), e.fuel())
	out = appendU32(append(out, opGlobalGet), e.fuel())
	out = append(out, opI64Const, 0, opI64GeS, opBrIf, 0)
	out = appendU32(append(out, opCall), e.helper(helperKey{kind: helpRefill}))
	return append(out, opBr, 1, opEnd, opEnd, opEnd)
}

// charged sets the fuel to what is on the operand stack.
func (e *emitter) charged(out []byte) []byte {
	if e.omit.fuel {
		return append(out, opDrop)
	}
	return e.refillIfBelow(appendU32(append(out, opGlobalSet), e.fuel()))
}

func (e *emitter) refillIfBelow(out []byte) []byte {
	out = appendU32(append(out, opGlobalGet), e.fuel())
	out = append(out, opI64Const, 0, opI64LtS, opIf, typeEmpty)
	out = appendU32(append(out, opCall), e.helper(helperKey{kind: helpRefill}))
	return append(out, opEnd)
}

func (e *emitter) takeDepth(out []byte, frame uint32) []byte {
	out = appendU32(append(out, opGlobalGet), e.depth())
	out = appendSigned(append(out, opI32Const), int64(frame))
	out = append(out, opI32Sub)
	out = appendU32(append(out, opGlobalSet), e.depth())
	out = appendU32(append(out, opGlobalGet), e.depth())
	out = append(out, opI32Const, 0, opI32LtS, opIf, typeEmpty)
	out = appendU32(append(out, opCall), e.deep())
	return append(out, opEnd)
}

func (e *emitter) giveDepth(out []byte, frame uint32) []byte {
	out = appendU32(append(out, opGlobalGet), e.depth())
	out = appendSigned(append(out, opI32Const), int64(frame))
	out = append(out, opI32Add)
	return appendU32(append(out, opGlobalSet), e.depth())
}
