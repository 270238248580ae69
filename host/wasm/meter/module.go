package meter

import (
	"bytes"
	"strings"
)

// Limits of what is rewritten. An engine allocates by these numbers before it
// has looked at anything else, and a region of a module within them costs less
// than 1 << 32.
const (
	maxModule = 64 << 20 // bytes
	maxItems  = 1 << 20  // of one section
	maxLocals = 50_000   // of one function, parameters included
	maxValues = 1000     // parameters, and results, of one type
	maxLooped = 100_000  // locals times loops of one function: the engine's compiler takes time by it
	maxDear   = 1 << 29  // cost of all exits and of all values that are taken along, so that no sum of costs wraps
	maxTable  = 10 << 20 // elements to begin with
	maxGrown  = 1 << 17  // elements that a table may grow to
)

// module is what the meter has to know of one.
type module struct {
	in       []byte
	omit     omission
	sections [14]reader // contents, by id; of those that are there
	names    reader     // the custom section "name"
	producer reader     // the custom section "producers", from its name on

	types     []funcType
	imports   imports
	functions []function // defined ones
	tables    []byte     // types
	slots     uint64     // elements of all tables to begin with
	memories  int
	globals   []global // imported ones first
	elements  []uint32 // lengths of segments
	data      []segment
	dataCount int // as declared, or -1
	start     int // function index, or -1

	// A region is a stretch of code that is charged at once: a function or a
	// loop, without the loops in it.
	regions []uint32 // costs
	around  []uint32 // the region that pays for the first round of this one, or 0
	edits   []edit
	labels  []uint32 // of tables that are edited
	unheld  []Use
	dropped map[uint32]bool // passive data segments that the guest may drop
	inits   []initUse       // memory.init of passive segments
}

type funcType struct {
	params, results uint32
	slots           uint32 // of params, a vector being two
	resultTypes     []byte
}

type imports struct{ functions, globals uint32 }

type global struct {
	valueType byte
	mutable   bool
	offset    int
}

type segment struct {
	passive bool
	offset  reader // constant expression with its end, of an active one
	bytes   []byte
}

type initUse struct {
	segment uint32
	use     Use
}

// The ids of sections.
const (
	sectionCustom = iota
	sectionType
	sectionImport
	sectionFunction
	sectionTable
	sectionMemory
	sectionGlobal
	sectionExport
	sectionStart
	sectionElement
	sectionCode
	sectionData
	sectionDataCount
	sectionTag
)

// order is where a section stands among the others.
var order = [...]int{
	sectionType: 1, sectionImport: 2, sectionFunction: 3, sectionTable: 4, sectionMemory: 5, sectionTag: 6, sectionGlobal: 7,
	sectionExport: 8, sectionStart: 9, sectionElement: 10, sectionDataCount: 11, sectionCode: 12, sectionData: 13,
}

func parse(in []byte) *module {
	if !bytes.HasPrefix(in, []byte("\x00asm\x01\x00\x00\x00")) {
		refuse(ErrMalformed, 0, "header")
	}
	if len(in) > maxModule {
		refuse(ErrTooLarge, 0, "module of %d bytes", len(in))
	}
	m := &module{in: in, dataCount: -1, start: -1, dropped: map[uint32]bool{}, regions: []uint32{0}, around: []uint32{0}}
	r := reader{in, 8}
	for last := 0; r.more(); {
		at := r.at
		id := r.byte()
		content := r.limit(r.u32())
		r.at = len(content.in)
		if id == sectionCustom {
			m.custom(content)
			continue
		}
		if int(id) >= len(order) {
			refuse(ErrMalformed, at, "section %d", id)
		}
		if id == sectionTag {
			refuse(ErrUnsupported, at, "exceptions (a tag section)")
		}
		if order[id] <= last {
			refuse(ErrMalformed, at, "order of sections")
		}
		last = order[id]
		m.sections[id] = content
	}
	m.parseTypes()
	m.parseImports()
	m.parseFunctions()
	m.parseTables()
	m.parseMemories()
	m.parseGlobals()
	m.parseExports()
	m.parseStart()
	m.parseElements()
	m.parseDataCount()
	m.parseData()
	m.join()
	m.parseCode()
	return m
}

// vector reads a section of items with the function that reads one, and sees to
// it that they end where the section does.
func (m *module) vector(section int, item func(r *reader)) {
	r := m.sections[section]
	if r.in == nil {
		return
	}
	at, n := r.at, r.count()
	if n > maxItems {
		refuse(ErrTooLarge, at, "section of %d items", n)
	}
	for range n {
		item(&r)
	}
	if r.more() {
		refuse(ErrMalformed, r.at, "section has bytes left over")
	}
}

func (m *module) custom(r reader) {
	whole := r
	switch r.name() {
	case "name":
		if m.names.in != nil {
			refuse(ErrMalformed, r.at, "a second name section")
		}
		m.names = r
	case "producers":
		m.producer = whole
	}
}

func (m *module) parseTypes() {
	m.vector(sectionType, func(r *reader) {
		if form := r.byte(); form != 0x60 {
			refuse(ErrUnsupported, r.at-1, "type of form %#x", form)
		}
		var t funcType
		for t.params = r.count(); t.slots < t.params; t.slots++ {
			r.valueType()
		}
		if t.params > maxValues {
			refuse(ErrTooLarge, r.at, "type of %d parameters", t.params)
		}
		t.slots = slots(r.in[r.at-int(t.params) : r.at])
		t.results = r.count()
		if t.results > maxValues {
			refuse(ErrTooLarge, r.at, "type of %d results", t.results)
		}
		from := r.at
		for range t.results {
			r.valueType()
		}
		t.resultTypes = r.in[from:r.at]
		m.types = append(m.types, t)
	})
}

func slots(types []byte) uint32 {
	n := uint32(len(types))
	for _, t := range types {
		if t == typeV128 {
			n++
		}
	}
	return n
}

func (r *reader) valueType() byte {
	t := r.byte()
	switch {
	case t >= typeV128 && t <= typeI32, t == typeFunc, t == typeExtern:
		return t
	case t >= 0x63 && t <= 0x74:
		refuse(ErrUnsupported, r.at-1, "typed references and exceptions (value type %#x)", t)
	}
	refuse(ErrMalformed, r.at-1, "value type %#x", t)
	return 0
}

func (m *module) parseImports() {
	m.vector(sectionImport, func(r *reader) {
		at := r.at
		from := r.name()
		r.name()
		if from == Module {
			refuse(ErrReserved, at, "import of %q", from)
		}
		switch kind := r.byte(); kind {
		case 0:
			m.functions = append(m.functions, function{typ: m.typeIndex(r)})
			m.imports.functions++
		case 1:
			m.table(r)
		case 2:
			r.memory()
			m.memories++
		case 3:
			m.globals = append(m.globals, r.globalType())
			m.imports.globals++
		case 4:
			refuse(ErrUnsupported, at, "exceptions (import of a tag)")
		default:
			refuse(ErrMalformed, r.at-1, "import of kind %d", kind)
		}
	})
}

func (m *module) typeIndex(r *reader) uint32 {
	return r.below(uint32(len(m.types)), "type")
}

// below reads an index into a space of n.
func (r *reader) below(n uint32, what string) uint32 {
	at := r.at
	i := r.u32()
	if i >= n {
		refuse(ErrMalformed, at, "%s %d of %d", what, i, n)
	}
	return i
}

func (m *module) functionIndex(r *reader) uint32 {
	return r.below(uint32(len(m.functions)), "function")
}

func (r *reader) limits() (least uint32) {
	at := r.at
	flags := r.byte()
	switch {
	case flags&^0x07 != 0:
		refuse(ErrMalformed, at, "limits %#x", flags)
	case flags&0x04 != 0:
		refuse(ErrUnsupported, at, "64-bit memory")
	case flags&0x02 != 0:
		refuse(ErrShared, at, "limits")
	}
	least = r.u32()
	if flags&0x01 != 0 {
		r.u32()
	}
	return least
}

func (m *module) table(r *reader) {
	of, least := r.table()
	m.tables = append(m.tables, of)
	m.slots += uint64(least)
}

// table reads the type of one: that of its elements, and how many there are to
// begin with.
func (r *reader) table() (of byte, least uint32) {
	at := r.at
	t := r.byte()
	switch t {
	case typeFunc, typeExtern:
	case 0x40:
		refuse(ErrUnsupported, at, "table with an initial value")
	default:
		refuse(ErrUnsupported, at, "table of type %#x", t)
	}
	if least = r.limits(); least > maxTable {
		refuse(ErrTooLarge, at, "table of %d elements", least)
	}
	return t, least
}

func (r *reader) memory() { r.limits() }

func (r *reader) globalType() global {
	g := global{offset: r.at}
	g.valueType = r.valueType()
	mutable := r.byte()
	if mutable > 1 {
		refuse(ErrMalformed, r.at-1, "mutability %d", mutable)
	}
	g.mutable = mutable == 1
	return g
}

func (m *module) parseFunctions() {
	m.vector(sectionFunction, func(r *reader) {
		m.functions = append(m.functions, function{typ: m.typeIndex(r)})
	})
}

func (m *module) parseTables() {
	m.vector(sectionTable, func(r *reader) {
		m.table(r)
	})
}

func (m *module) parseMemories() {
	m.vector(sectionMemory, func(r *reader) {
		r.memory()
		m.memories++
	})
	if m.memories > 1 {
		refuse(ErrUnsupported, 0, "more than one memory")
	}
}

func (m *module) parseGlobals() {
	m.vector(sectionGlobal, func(r *reader) {
		m.globals = append(m.globals, r.globalType())
		m.constant(r, func(reader) {})
	})
	for i, g := range m.globals {
		switch {
		case !g.mutable:
		case uint32(i) < m.imports.globals:
			m.unhold("imported mutable global", NoFunction, g.offset)
		case g.valueType == typeV128:
			m.unhold("mutable v128 global", NoFunction, g.offset)
		case g.valueType == typeFunc || g.valueType == typeExtern:
			m.unhold("mutable reference global", NoFunction, g.offset)
		}
	}
}

func (m *module) unhold(what string, function uint32, offset int) {
	m.unheld = append(m.unheld, Use{what, function, offset})
}

// held says whether a snapshot holds the value of the i-th global.
func (g global) held(i int, imported uint32) bool {
	return g.mutable && i >= int(imported) && g.valueType >= typeF64 && g.valueType <= typeI32
}

// constant passes over a constant expression. What it may consist of is for the
// engine to say. Each function index in it is given to function, as a reader
// that stands before it.
func (m *module) constant(r *reader, function func(before reader)) {
	for {
		at := r.at
		switch op := r.byte(); op {
		case opEnd:
			return
		case opI32Const:
			r.signed(5)
		case opI64Const:
			r.signed(10)
		case opF32Const:
			r.skip(4)
		case opF64Const:
			r.skip(8)
		case opGlobalGet:
			r.below(uint32(len(m.globals)), "global")
		case opI32Add, opI32Sub, opI32Mul, opI64Add, opI64Sub, opI64Mul:
		case opRefNull:
			m.heapType(r)
		case opRefFunc:
			function(*r)
			m.functionIndex(r)
		case opVector:
			if r.u32() != vectorConst {
				refuse(ErrMalformed, at, "constant expression")
			}
			r.skip(16)
		default:
			refuse(ErrMalformed, at, "opcode %#x in a constant expression", op)
		}
	}
}

func (m *module) heapType(r *reader) {
	if t := r.byte(); t != typeFunc && t != typeExtern {
		refuse(ErrUnsupported, r.at-1, "typed references (heap type %#x)", t)
	}
}

func (m *module) parseExports() {
	m.vector(sectionExport, func(r *reader) {
		at := r.at
		if name := r.name(); strings.HasPrefix(name, reserved) {
			refuse(ErrReserved, at, "export of %q", name)
		}
		switch kind := r.byte(); kind {
		case 0:
			m.functionIndex(r)
		case 1:
			r.below(uint32(len(m.tables)), "table")
		case 2:
			r.below(uint32(m.memories), "memory")
		case 3:
			r.below(uint32(len(m.globals)), "global")
		default:
			refuse(ErrMalformed, r.at-1, "export of kind %d", kind)
		}
	})
}

func (m *module) parseStart() {
	r := m.sections[sectionStart]
	if r.in == nil {
		return
	}
	at := r.at
	m.start = int(m.functionIndex(&r))
	if t := m.types[m.functions[m.start].typ]; t.params+t.results > 0 {
		refuse(ErrMalformed, at, "start function with parameters or results")
	}
	if r.more() {
		refuse(ErrMalformed, r.at, "section has bytes left over")
	}
}

func (m *module) parseElements() {
	m.vector(sectionElement, func(r *reader) {
		m.elements = append(m.elements, m.element(r, func(reader) {}))
	})
}

// element passes over an element segment, as constant over an expression.
// It returns the length.
func (m *module) element(r *reader, function func(before reader)) (length uint32) {
	start := r.at
	flags := r.u32()
	if flags > 7 {
		refuse(ErrMalformed, start, "element segment %d", flags)
	}
	active, explicit, expressions := flags&1 == 0, flags&2 != 0, flags&4 != 0
	if active && explicit {
		r.below(uint32(len(m.tables)), "table")
	}
	if active {
		m.constant(r, function)
	}
	if !active || explicit {
		if expressions {
			m.heapType(r)
		} else if kind := r.byte(); kind != 0 {
			refuse(ErrMalformed, r.at-1, "element kind %d", kind)
		}
	}
	length = r.count()
	for range length {
		if expressions {
			m.constant(r, function)
			continue
		}
		function(*r)
		m.functionIndex(r)
	}
	return length
}

func (m *module) parseDataCount() {
	r := m.sections[sectionDataCount]
	if r.in == nil {
		return
	}
	m.dataCount = int(r.u32())
	if r.more() {
		refuse(ErrMalformed, r.at, "section has bytes left over")
	}
}

func (m *module) parseData() {
	if r := m.sections[sectionData]; r.in != nil {
		m.data = make([]segment, 0, min(r.count(), maxItems))
	}
	m.vector(sectionData, func(r *reader) {
		var s segment
		at := r.at
		switch flags := r.u32(); flags {
		case 0, 2:
			if flags == 2 && r.u32() != 0 {
				refuse(ErrUnsupported, at, "more than one memory")
			}
			if m.memories == 0 {
				refuse(ErrMalformed, at, "data segment without a memory")
			}
			from := r.at
			m.constant(r, func(reader) {})
			s.offset = reader{r.in[:r.at], from}
		case 1:
			s.passive = true
		default:
			refuse(ErrMalformed, at, "data segment %d", flags)
		}
		n := r.u32()
		from := r.at
		r.skip(n)
		s.bytes = r.in[from:r.at]
		m.data = append(m.data, s)
	})
	if m.dataCount >= 0 && m.dataCount != len(m.data) {
		refuse(ErrMalformed, len(m.in), "data count %d of %d segments", m.dataCount, len(m.data))
	}
}

func (m *module) parseCode() {
	next := int(m.imports.functions)
	size := len(m.sections[sectionCode].in) - m.sections[sectionCode].at
	m.edits = make([]edit, 0, size/10) // what Go's compiler makes needs a little less
	s := scan{module: m}
	m.vector(sectionCode, func(r *reader) {
		body := r.limit(r.u32())
		if next == len(m.functions) {
			refuse(ErrMalformed, body.at, "more code than functions")
		}
		s.function(uint32(next), body)
		r.at = len(body.in)
		next++
	})
	if next != len(m.functions) {
		refuse(ErrMalformed, len(m.in), "%d functions without code", len(m.functions)-next)
	}
	for _, u := range m.inits {
		if m.dropped[u.segment] {
			m.unheld = append(m.unheld, u.use)
		}
	}
}
