package meter

// function is what the meter has to know of one. Of an imported one that is
// the type.
type function struct {
	typ    uint32
	locals reader // declarations
	body   reader // from after the locals to the end, included

	edits [2]uint32 // range in module.edits
	entry uint32    // region of what is in no loop
	first uint32    // region of a loop that is always come to, or none (0)

	indirect bool   // calls through a table
	frame    uint32 // what it takes of the depth

	plan
}

// edit is a place where the rewritten code differs.
type edit struct {
	kind     editKind
	from, to uint32 // bytes replaced
	a, b     uint32 // immediates
	region   uint32
}

type editKind uint8

const (
	editLoop       editKind = iota // charged behind its header
	editLoopEnd                    // of it
	editLatched                    // a loop charged where it goes back
	editLatchedEnd                 // of it
	editBranch                     // out of a loop: a br or br_if to label a
	editBranches                   // a br_table out of a loop
	editCall                       // function a
	editReturnCall                 // function a
	editReturnIndirect
	editReturn
	editRefFunc
	editGrow
	editFill
	editCopy
	editInit      // segment a
	editDrop      // of an active segment
	editTableFill // table a
	editTableGrow
	editTableCopy // from table b to a
	editTableInit // of segment b
)

// scan goes through the code once: it looks at every instruction and notes the
// few that matter.
type scan struct {
	*module
	r        reader
	index    uint32 // of the function
	f        *function
	frames   []frame
	dearest  uint64 // cost so far of what dear was called for, in all functions
	region   uint32
	cost     uint32 // of the region, not yet added to it
	height   int32  // of the operand stack; an estimate where code cannot be reached
	deepest  int32
	calls    uint32 // the engine has room for each value that outlives one of them
	loops    uint64
	vectors  bool
	straight bool  // nothing yet but what is always come to
	constant int64 // what the last instruction, an i32.const, pushed, or -1
}

// frame is an open block.
type frame struct {
	height  int32 // of the operand stack below its parameters
	params  int32
	results int32
	region  uint32
	added   uint32 // blocks put around the loops up to here
	loop    loopKind
}

type loopKind uint8

const (
	noLoop loopKind = iota
	charged
	latched
)

// How many blocks are put around a loop of each kind.
var around = [...]uint32{charged: 1, latched: 4}

func (s *scan) function(index uint32, body reader) {
	s.r, s.index, s.f = body, index, &s.functions[index]
	f, start := s.f, s.r.at
	t := &s.types[f.typ]
	locals := s.locals(t.slots)
	f.locals = reader{s.r.in[:s.r.at], start}
	f.body = s.r

	f.edits[0] = uint32(len(s.edits))
	f.entry = s.newRegion()
	s.region, s.cost, s.height, s.deepest, s.calls, s.vectors, s.straight = f.entry, 0, 0, 0, 0, false, true
	s.frames = append(s.frames[:0], frame{results: int32(t.results), region: f.entry})
	s.loops = 0
	s.instructions()
	if uint64(locals)*s.loops > maxLooped {
		refuse(ErrTooLarge, start, "%d loops with %d locals in function %d", s.loops, locals, index)
	}
	s.regions[f.entry] += s.cost
	f.edits[1] = uint32(len(s.edits))
	if s.r.more() {
		refuse(ErrMalformed, s.r.at, "code behind the end of function %d", index)
	}
	if s.vectors {
		s.deepest *= 2
	}
	f.frame = 1 + (locals+uint32(s.deepest)+s.calls)/8
}

// locals reads the declarations of locals and counts, parameters included,
// those of 8 bytes; a vector is two.
func (s *scan) locals(params uint32) uint32 {
	count := uint64(params)
	for n := s.r.count(); n > 0; n-- {
		of := uint64(s.r.u32())
		if s.r.valueType() == typeV128 {
			of *= 2
		}
		if count += of; count > maxLocals {
			refuse(ErrTooLarge, s.r.at, "more than %d locals in function %d", maxLocals, s.index)
		}
	}
	return uint32(count)
}

func (m *module) newRegion() uint32 {
	m.regions = append(m.regions, 0)
	m.around = append(m.around, 0)
	return uint32(len(m.regions) - 1)
}

// instructions looks at each of a body, up to the end of the function.
func (s *scan) instructions() {
	for len(s.frames) > 0 {
		s.simple()
		s.instruction()
	}
}

// simple passes over instructions that only add to cost and height, as most do,
// as long as their immediates have a byte each. It could be left out: the next
// instruction is looked at again.
func (s *scan) simple() {
	code, at := s.r.in, s.r.at
	cost, height, deepest := s.cost, s.height, s.deepest
	globals := byte(min(len(s.globals), 0x80))
	for len(code)-at > 2 {
		op := code[at]
		in := &instructions[op]
		next, constant := at, int64(-1)
		switch in.shape {
		case plain:
			next = at + 1
		case index, signed:
			if code[at+1] < 0x80 {
				next = at + 2
			}
		case memarg:
			if code[at+1]|code[at+2] < 0x80 {
				next = at + 3
			}
		case special:
			switch {
			case op == opI32Const && code[at+1] < 0x80:
				next, constant = at+2, int64(uint32(int32(code[at+1])<<25>>25))
			case (op == opGlobalGet || op == opGlobalSet) && code[at+1] < globals:
				next = at + 2
			}
		}
		if next == at {
			break
		}
		at = next
		s.constant = constant
		cost += uint32(in.cost)
		height += int32(in.delta)
		deepest = max(deepest, height)
	}
	s.r.at, s.cost, s.height, s.deepest = at, cost, height, deepest
}

// instruction looks at the next one.
func (s *scan) instruction() {
	r := &s.r
	at := r.at
	op := r.byte()
	in := &instructions[op]
	if op >= opMisc {
		in = s.prefixed(op)
	}
	s.cost += uint32(in.cost)
	s.height += int32(in.delta)
	pushed := s.constant
	s.constant = -1
	switch in.shape {
	case plain:
	case index:
		r.skipInteger(5)
	case memarg:
		r.skipInteger(5)
		r.skipInteger(5)
	case lane:
		r.skip(1)
	case memargLane:
		r.skipInteger(5)
		r.skipInteger(5)
		r.skip(1)
	case signed:
		r.skipInteger(10)
	case bytes4:
		r.skip(4)
	case bytes8:
		r.skip(8)
	case bytes16:
		r.skip(16)
	case special:
		s.special(op, in, at)
	case bulk:
		s.bulk(in, at, pushed)
	case refused:
		refuse(ErrUnsupported, at, "%s", in.name)
	default:
		refuse(ErrUnknownOpcode, at, "%#x", r.in[at:r.at])
	}
	s.deepest = max(s.deepest, s.height)
}

// prefixed reads the rest of an opcode of two parts.
func (s *scan) prefixed(prefix byte) *instruction {
	at := s.r.at - 1
	sub := s.r.u32()
	var table *[256]instruction
	switch prefix {
	case opMisc:
		table = &miscs
	case opVector:
		table, s.vectors = &vectors, true
		if sub > vectorLast && sub <= relaxedLast {
			refuse(ErrUnsupported, at, "relaxed SIMD (opcode 0xfd %#x)", sub)
		}
	case opAtomic:
		table = &atomics
	}
	if table == nil || sub > 0xff {
		refuse(ErrUnknownOpcode, at, "%#x %#x", prefix, sub)
	}
	return &table[sub]
}

// special looks at what has to do with blocks, calls and indices.
func (s *scan) special(op byte, in *instruction, at int) {
	r := &s.r
	if op != opBlock && op != opLoop && op < opSelectTyped {
		s.straight = false // control
	}
	switch op {
	case opI32Const:
		s.constant = int64(uint32(r.signed(5)))
	case opBlock, opIf:
		s.open(s.blockType())
	case opLoop:
		s.openLoop(at)
	case opElse:
		top := &s.frames[len(s.frames)-1]
		s.height = top.height + top.params
	case opEnd:
		top := s.frames[len(s.frames)-1]
		s.frames = s.frames[:len(s.frames)-1]
		s.height = top.height + top.results
		s.closeLoop(top, at)
	case opBr, opBrIf:
		label, shifted, values := s.label()
		s.takes(values)
		if shifted != label {
			s.edit(editBranch, at, shifted, 0)
		}
	case opBrTable:
		s.branchTable(at)
	case opReturn:
		s.takes(s.types[s.f.typ].results)
		s.edit(editReturn, at, 0, 0)
	case opCall, opReturnCall:
		callee := s.functionIndex(r)
		s.signature(s.functions[callee].typ)
		if op == opCall {
			s.edit(editCall, at, callee, 0)
		} else {
			s.edit(editReturnCall, at, callee, 0)
		}
	case opCallIndirect, opReturnCallIndirect:
		s.signature(s.typeIndex(r))
		r.below(uint32(len(s.tables)), "table")
		s.f.indirect = true
		if op == opReturnCallIndirect {
			s.edit(editReturnIndirect, at, 0, 0)
		}
	case opSelectTyped:
		for n := r.count(); n > 0; n-- {
			r.valueType()
		}
	case opGlobalGet, opGlobalSet:
		r.below(uint32(len(s.globals)), "global")
	case opTableSet:
		r.below(uint32(len(s.tables)), "table")
		s.unhold(in.name, s.index, at)
	case opMemorySize:
		s.zero()
	case opMemoryGrow:
		s.memory(at)
		s.zero()
		s.dear(costExit)
		s.edit(editGrow, at, 0, 0)
	case opRefNull:
		s.heapType(r)
	case opRefFunc:
		s.dear(costExit)
		s.edit(editRefFunc, at, s.functionIndex(r), 0)
	}
}

// bulk looks at what costs by a length. One that is known and short is charged
// with the region.
func (s *scan) bulk(in *instruction, at int, length int64) {
	r := &s.r
	const short = 4096
	known := length >= 0 && length <= short
	switch in.name {
	case nameMemoryFill:
		s.memory(at)
		s.zero()
		if known {
			s.cost += uint32(length) / bytesPerCost
		} else {
			s.edit(editFill, at, 0, 0)
		}
	case nameMemoryCopy:
		s.memory(at)
		s.zero()
		s.zero()
		if known {
			s.cost += uint32(length) / bytesPerCost
		} else {
			s.edit(editCopy, at, 0, 0)
		}
	case nameMemoryInit:
		s.memory(at)
		segment := s.segment()
		s.zero()
		if s.data[segment].passive {
			s.inits = append(s.inits, initUse{segment, Use{in.name, s.index, at}})
		}
		s.edit(editInit, at, segment, 0)
	case nameDataDrop:
		segment := s.segment()
		if s.data[segment].passive {
			s.dropped[segment] = true
		} else {
			s.edit(editDrop, at, segment, 0)
		}
	case nameTableFill:
		s.unhold(in.name, s.index, at)
		s.edit(editTableFill, at, r.below(uint32(len(s.tables)), "table"), 0)
	case nameTableGrow:
		s.unhold(in.name, s.index, at)
		s.dear(costExit)
		s.edit(editTableGrow, at, r.below(uint32(len(s.tables)), "table"), 0)
	case nameTableCopy:
		s.unhold(in.name, s.index, at)
		to, from := r.below(uint32(len(s.tables)), "table"), r.below(uint32(len(s.tables)), "table")
		s.edit(editTableCopy, at, to, from)
	case nameTableInit:
		s.unhold(in.name, s.index, at)
		segment := r.below(uint32(len(s.elements)), "element segment")
		s.edit(editTableInit, at, r.below(uint32(len(s.tables)), "table"), segment)
	}
}

// dear charges for what costs more than any instruction in the tables.
func (s *scan) dear(cost uint32) {
	if s.dearest += uint64(cost); s.dearest > maxDear {
		refuse(ErrTooLarge, s.r.at, "code that costs over %d", maxDear)
	}
	s.cost += cost
}

// takes charges for the values that a call, block or branch takes along.
func (s *scan) takes(values uint32) {
	if values > freeValues {
		s.dear(values - freeValues)
	}
}

// edit notes that the instruction from at up to here is not copied as it is.
func (s *scan) edit(kind editKind, at int, a, b uint32) {
	s.edits = append(s.edits, edit{kind, uint32(at), uint32(s.r.at), a, b, s.region})
}

// enter goes on in another region.
func (s *scan) enter(region uint32) {
	if region == s.region {
		return
	}
	s.regions[s.region] += s.cost
	s.region, s.cost = region, 0
}

func (s *scan) open(params, results uint32) {
	s.takes(params + results)
	s.frames = append(s.frames, frame{
		height: s.height - int32(params), params: int32(params), results: int32(results),
		region: s.region, added: s.frames[len(s.frames)-1].added,
	})
}

// openLoop begins a region. A loop that a function always comes to is charged
// at its header, which stands for the function's own charge. So is one with
// parameters, which are rare. All others are charged when they go back: many
// loops rarely do.
func (s *scan) openLoop(at int) {
	s.open(s.blockType())
	top := &s.frames[len(s.frames)-1]
	top.loop = latched
	s.loops++
	if s.straight || top.params > 0 {
		top.loop = charged
	}
	top.added += around[top.loop]
	s.enter(s.newRegion())
	if s.straight {
		s.f.first, s.straight = s.region, false
	}
	if top.loop == charged {
		s.edit(editLoop, at, 0, 0)
		return
	}
	s.around[s.region] = top.region
	s.edit(editLatched, at, 0, 0)
}

// closeLoop goes on in the region around a loop, which has also to pay for the
// first round of one that is charged when it goes back.
func (s *scan) closeLoop(top frame, at int) {
	region := s.region
	switch top.loop {
	case charged:
		s.edit(editLoopEnd, at, 0, 0)
	case latched:
		s.edit(editLatchedEnd, at, 0, 0)
	}
	s.enter(top.region)
	if top.loop == latched {
		s.cost += s.regions[region]
	}
}

// label reads one and says how many values go there, and what it will be: each loop that it leaves has blocks
// around it. A block is put around bodies, so a label that goes a block too
// far would be valid afterwards.
func (s *scan) label() (label, shifted, values uint32) {
	label = s.r.below(uint32(len(s.frames)), "label")
	top := &s.frames[len(s.frames)-1]
	target := &s.frames[len(s.frames)-1-int(label)]
	shifted = label + top.added - target.added
	if target.loop == latched {
		shifted++
	}
	values = uint32(target.results)
	if target.loop != noLoop {
		values = uint32(target.params)
	}
	return label, shifted, values
}

// branchTable reads the labels of a br_table and notes it if some change.
func (s *scan) branchTable(at int) {
	from, changed := uint32(len(s.labels)), false
	n, most := s.r.count(), uint32(0)
	for range n + 1 {
		label, shifted, values := s.label()
		most = max(most, values)
		s.labels = append(s.labels, shifted)
		changed = changed || shifted != label
	}
	s.takes(most)
	if !changed {
		s.labels = s.labels[:from]
		return
	}
	s.edit(editBranches, at, from, n)
}

func (s *scan) blockType() (params, results uint32) {
	r := &s.r
	switch t := r.in[min(r.at, len(r.in)-1)]; {
	case t == typeEmpty:
		r.at++
		return 0, 0
	case t >= 0x40 && t < 0x80:
		r.valueType()
		return 0, 1
	}
	at := r.at
	i := r.signed(5)
	if i < 0 || i >= int64(len(s.types)) {
		refuse(ErrMalformed, at, "type %d of %d", i, len(s.types))
	}
	return s.types[i].params, s.types[i].results
}

// signature is that of a call.
func (s *scan) signature(typ uint32) {
	s.calls++
	s.takes(s.types[typ].params + s.types[typ].results)
	s.height += int32(s.types[typ].results) - int32(s.types[typ].params)
}

func (s *scan) segment() uint32 {
	if s.dataCount < 0 {
		refuse(ErrMalformed, s.r.at, "data segment used without a data count")
	}
	return s.r.below(uint32(len(s.data)), "data segment")
}

func (s *scan) memory(at int) {
	if s.memories == 0 {
		refuse(ErrMalformed, at, "instruction without a memory")
	}
}

// zero reads the index of the only memory.
func (s *scan) zero() {
	if b := s.r.byte(); b != 0 {
		refuse(ErrUnsupported, s.r.at-1, "more than one memory (index %#x)", b)
	}
}
