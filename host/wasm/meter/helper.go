package meter

// helper is a function added to the module.
type helper struct {
	name string
	typ  uint32
	body []byte // with the locals
}

type helperKey struct {
	kind helperKind
	a, b uint32
}

type helperKind uint8

const (
	helpRefill helperKind = iota
	helpStart
	helpGrow
	helpFill
	helpCopy
	helpInit      // segment a
	helpTableFill // table a
	helpTableGrow
	helpTableCopy // from table b to a
	helpTableInit // of segment b
)

// Longer bulk operations are cut into pieces of these lengths with a charge
// before each.
const (
	pieceBytes    = 1 << 20
	pieceElements = 1 << 16
)

// helper is the index of one, which is written when it is first asked for.
func (e *emitter) helper(key helperKey) uint32 {
	if i, ok := e.helped[key]; ok {
		return i
	}
	n := len(e.helpers)
	i := uint32(len(e.functions) + 2 + n)
	e.helped[key] = i
	e.helpers = append(e.helpers, helper{})
	e.helpers[n] = e.help(key)
	return i
}

func (e *emitter) help(key helperKey) helper {
	i32s := []byte{typeI32, typeI32, typeI32}
	switch key.kind {
	case helpRefill:
		return helper{reserved + "refill", e.typeOf(nil, nil), e.refill()}
	case helpStart:
		return helper{reserved + "start", e.typeOf(nil, nil), e.startFunction()}
	case helpGrow:
		return helper{reserved + "memory.grow", e.typeOf(i32s[:1], i32s[:1]), e.grow()}
	case helpFill:
		return helper{reserved + "memory.fill", e.typeOf(i32s, nil), e.pieces(pieces{
			operation: []byte{opMisc, miscMemoryFill, 0}, unit: bulkUnit, piece: pieceBytes,
			limits: []limit{memoryLimit},
		})}
	case helpCopy:
		return helper{reserved + "memory.copy", e.typeOf(i32s, nil), e.pieces(pieces{
			operation: []byte{opMisc, miscMemoryCopy, 0, 0}, unit: bulkUnit, piece: pieceBytes,
			limits: []limit{memoryLimit, memoryLimit}, overlap: true,
		})}
	case helpInit:
		return helper{reserved + "memory.init", e.typeOf(i32s, nil), e.pieces(pieces{
			operation: append(appendU32([]byte{opMisc, miscMemoryInit}, key.a), 0), unit: bulkUnit, piece: pieceBytes,
			limits: []limit{memoryLimit, fixedLimit(len(e.data[key.a].bytes))},
		})}
	case helpTableFill:
		return helper{reserved + "table.fill", e.typeOf([]byte{typeI32, e.tables[key.a], typeI32}, nil), e.pieces(pieces{
			operation: appendU32([]byte{opMisc, miscTableFill}, key.a), piece: pieceElements,
			limits: []limit{tableLimit(key.a)},
		})}
	case helpTableGrow:
		return helper{reserved + "table.grow", e.typeOf([]byte{e.tables[key.a], typeI32}, i32s[:1]), e.growTable(key.a)}
	case helpTableCopy:
		return helper{reserved + "table.copy", e.typeOf(i32s, nil), e.pieces(pieces{
			operation: appendU32(appendU32([]byte{opMisc, miscTableCopy}, key.a), key.b), piece: pieceElements,
			limits: []limit{tableLimit(key.a), tableLimit(key.b)}, overlap: true,
		})}
	default:
		return helper{reserved + "table.init", e.typeOf(i32s, nil), e.pieces(pieces{
			operation: appendU32(appendU32([]byte{opMisc, miscTableInit}, key.b), key.a), piece: pieceElements,
			limits: []limit{tableLimit(key.a), fixedLimit(int(e.elements[key.b]))},
		})}
	}
}

// refill asks for the next slice.
func (e *emitter) refill() []byte {
	out := appendU32([]byte{0, opGlobalGet}, e.fuel())
	out = appendU32(append(out, opCall), e.tick())
	out = appendU32(append(out, opGlobalSet), e.fuel())
	return append(out, opEnd)
}

// startFunction does the rest of an instantiation.
func (e *emitter) startFunction() []byte {
	cost := uint32(0)
	for _, s := range e.data {
		cost += costBulk + uint32(len(s.bytes))/bytesPerCost
	}
	out := e.charge([]byte{0}, cost) // one: a Go guest has thousands of segments
	for i, s := range e.data {
		if s.passive {
			continue
		}
		out = e.offset(out, s.offset)
		out = append(out, opI32Const, 0)
		out = appendSigned(append(out, opI32Const), int64(int32(len(s.bytes))))
		out = append(appendU32(append(out, opMisc, miscMemoryInit), uint32(i)), 0)
	}
	if e.start >= 0 {
		out = appendU32(append(out, opCall), e.shifted(uint32(e.start)))
	}
	return append(out, opEnd)
}

// offset pushes that of a segment. An expression that is more than a constant
// goes into a global, so that the engine holds it to its rules.
func (e *emitter) offset(out []byte, expression reader) []byte {
	r := expression
	if r.byte() == opI32Const {
		r.signed(5)
		if r.byte() == opEnd && !r.more() {
			return append(out, r.in[expression.at:r.at-1]...)
		}
	}
	e.offsets = append(e.offsets, expression)
	return appendU32(append(out, opGlobalGet), uint32(len(e.globals)+1+len(e.offsets)))
}

// grow charges for the new pages that there are: one that is refused has done
// nothing. How many there can be is for the host to say.
func (e *emitter) grow() []byte {
	out := []byte{1, 1, typeI32, opLocalGet, 0, opMemoryGrow, 0, opLocalTee, 1}
	out = append(out, opI32Const, 0, opI32LtS, opIf, typeI32, opI32Const, 0, opElse, opLocalGet, 0, opEnd)
	out = append(out, opLocalSet, 0)
	out = append(appendU32(append(out, opGlobalGet), e.fuel()), opLocalGet, 0, opI64ExtendI32U, opI64Const)
	out = e.charged(append(appendSigned(out, costPage), opI64Mul, opI64Sub))
	return append(out, opLocalGet, 1, opEnd)
}

// growTable charges for new elements and says no beyond maxGrown.
func (e *emitter) growTable(table uint32) []byte {
	out := tableLimit(table)([]byte{0})
	out = append(out, opLocalGet, 1, opI64ExtendI32U, opI64Add)
	out = appendSigned(append(out, opI64Const), maxGrown)
	out = append(out, opI64LeU, opIf, typeI32)
	out = appendU32(append(out, opGlobalGet), e.fuel())
	out = e.charged(append(out, opLocalGet, 1, opI64ExtendI32U, opI64Sub))
	out = append(out, opLocalGet, 0, opLocalGet, 1, opMisc, miscTableGrow)
	out = append(appendU32(out, table), opElse)
	return append(appendSigned(append(out, opI32Const), -1), opEnd, opEnd)
}

// pieces is an operation on three operands: the place where it writes, the one
// where it reads or the value, and a length.
type pieces struct {
	operation []byte
	piece     uint32  // length of one
	unit      uint8   // as a power of two, how much of it costs 1
	limits    []limit // of the first operand and, if it is a place, the second
	overlap   bool    // the two may overlap
}

// limit pushes how far a place may go, an i64.
type limit func(out []byte) []byte

func memoryLimit(out []byte) []byte {
	return append(out, opMemorySize, 0, opI64ExtendI32U, opI64Const, 16, opI64Shl)
}

func tableLimit(table uint32) limit {
	return func(out []byte) []byte {
		return append(appendU32(append(out, opMisc, miscTableSize), table), opI64ExtendI32U)
	}
}

func fixedLimit(n int) limit {
	return func(out []byte) []byte { return appendSigned(append(out, opI64Const), int64(n)) }
}

// pieces does one by one what is longer than a piece. What is out of bounds is
// left to the operation, which then traps and writes nothing.
func (e *emitter) pieces(p pieces) []byte {
	const length = 2 // local
	out := []byte{0, opBlock, typeEmpty}
	out = append(out, opLocalGet, length)
	out = appendSigned(append(out, opI32Const), int64(p.piece))
	out = append(out, opI32LeU, opBrIf, 0)
	for place, limit := range p.limits {
		out = append(out, opLocalGet, byte(place), opI64ExtendI32U, opLocalGet, length, opI64ExtendI32U, opI64Add)
		out = append(limit(out), opI64GtU, opBrIf, 0)
	}
	if p.overlap { // the source is behind: from the end
		out = append(out, opLocalGet, 0, opLocalGet, 1, opI32GtU, opIf, typeEmpty)
		out = e.loop(out, p, func(out []byte) []byte {
			out = p.step(out, length, opI32Sub)
			for place := range byte(2) {
				out = append(out, opLocalGet, place, opLocalGet, length, opI32Add)
			}
			out = appendSigned(append(out, opI32Const), int64(p.piece))
			return append(out, p.operation...)
		})
		out = append(out, opElse)
	}
	out = e.loop(out, p, func(out []byte) []byte {
		out = append(out, opLocalGet, 0, opLocalGet, 1)
		out = appendSigned(append(out, opI32Const), int64(p.piece))
		out = append(out, p.operation...)
		for place := range p.limits {
			out = p.step(out, byte(place), opI32Add)
		}
		return p.step(out, length, opI32Sub)
	})
	if p.overlap {
		out = append(out, opEnd)
	}
	out = append(out, opEnd)
	out = appendU32(append(out, opGlobalGet), e.fuel())
	out = append(out, opLocalGet, length, opI64ExtendI32U, opI64Const, p.unit, opI64ShrU, opI64Sub)
	out = e.charged(out)
	out = append(out, opLocalGet, 0, opLocalGet, 1, opLocalGet, length)
	return append(append(out, p.operation...), opEnd)
}

// loop repeats a piece while there is more than one.
func (e *emitter) loop(out []byte, p pieces, body func(out []byte) []byte) []byte {
	out = e.charge(append(out, opLoop, typeEmpty), costBulk+p.piece>>p.unit)
	out = append(body(out), opLocalGet, 2)
	out = appendSigned(append(out, opI32Const), int64(p.piece))
	return append(out, opI32GtU, opBrIf, 0, opEnd)
}

// step moves a local by a piece.
func (p pieces) step(out []byte, local, op byte) []byte {
	out = appendSigned(append(out, opLocalGet, local, opI32Const), int64(p.piece))
	return append(out, op, opLocalSet, local)
}
