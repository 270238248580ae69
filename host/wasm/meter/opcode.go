package meter

// Opcodes that the meter looks at or writes.
const (
	opUnreachable        = 0x00
	opBlock              = 0x02
	opLoop               = 0x03
	opIf                 = 0x04
	opElse               = 0x05
	opEnd                = 0x0b
	opBr                 = 0x0c
	opBrIf               = 0x0d
	opBrTable            = 0x0e
	opReturn             = 0x0f
	opCall               = 0x10
	opCallIndirect       = 0x11
	opReturnCall         = 0x12
	opReturnCallIndirect = 0x13
	opDrop               = 0x1a
	opSelectTyped        = 0x1c
	opLocalGet           = 0x20
	opLocalSet           = 0x21
	opLocalTee           = 0x22
	opGlobalGet          = 0x23
	opGlobalSet          = 0x24
	opTableSet           = 0x26
	opMemorySize         = 0x3f
	opMemoryGrow         = 0x40
	opI32Const           = 0x41
	opI64Const           = 0x42
	opF32Const           = 0x43
	opF64Const           = 0x44
	opRefNull            = 0xd0
	opRefFunc            = 0xd2
	opMisc               = 0xfc
	opVector             = 0xfd
	opAtomic             = 0xfe

	opI32LtS, opI32GtU, opI32LeU           = 0x48, 0x4b, 0x4d
	opI64LtS, opI64GtU, opI64LeU, opI64GeS = 0x53, 0x56, 0x58, 0x59
	opI32Add, opI32Sub, opI32Mul           = 0x6a, 0x6b, 0x6c
	opI64Add, opI64Sub, opI64Mul, opI64Shl = 0x7c, 0x7d, 0x7e, 0x86
	opI64ShrU                              = 0x88
	opI64ExtendI32U                        = 0xad
	opSelect                               = 0x1b

	miscMemoryInit = 0x08
	miscDataDrop   = 0x09
	miscMemoryCopy = 0x0a
	miscMemoryFill = 0x0b
	miscTableInit  = 0x0c
	miscElemDrop   = 0x0d
	miscTableCopy  = 0x0e
	miscTableGrow  = 0x0f
	miscTableSize  = 0x10
	miscTableFill  = 0x11

	vectorConst   = 0x0c
	vectorShuffle = 0x0d
	vectorLast    = 0xff
	relaxedLast   = 0x12f
)

// Names of the instructions that cost by a length.
const (
	nameMemoryInit = "memory.init"
	nameDataDrop   = "data.drop"
	nameMemoryCopy = "memory.copy"
	nameMemoryFill = "memory.fill"
	nameTableInit  = "table.init"
	nameTableCopy  = "table.copy"
	nameTableGrow  = "table.grow"
	nameTableFill  = "table.fill"
)

const (
	typeI32    = 0x7f
	typeI64    = 0x7e
	typeF64    = 0x7c
	typeV128   = 0x7b
	typeFunc   = 0x70
	typeExtern = 0x6f
	typeEmpty  = 0x40
)

// shape is how an instruction is encoded and what the meter does about it.
type shape uint8

const (
	unknown    shape = iota
	refused          // known, by name
	plain            // no immediate
	index            // one integer
	memarg           // alignment and offset
	signed           // a constant
	bytes4           // f32.const
	bytes8           // f64.const
	bytes16          // v128.const, i8x16.shuffle
	lane             // one byte
	memargLane       // alignment, offset and lane
	special          // blocks, calls and indices
	bulk             // costs by a length
)

// instruction is what the meter has to know of one opcode.
type instruction struct {
	shape shape
	cost  uint8
	delta int8 // of the height of the operand stack
	name  string
}

// Costs are in units of about one simple machine instruction. What needs none
// costs nothing.
const (
	costSimple   = 1
	costConvert  = 3
	costTable    = 3
	costBrTable  = 3
	costCall     = 4
	costIndirect = 8
	costDivide   = 8
	costVector   = 2
	costAtomic   = 8

	bulkUnit     = 4 // bytes of memory for 1, as a power of two
	bytesPerCost = 1 << bulkUnit
	costBulk     = 16   // to begin one
	costPage     = 4096 // of memory.grow
	costExit     = 300  // of what the engine does in Go
	freeValues   = 4    // that a call, block or branch takes along; each more costs 1
)

var instructions, miscs, vectors, atomics = tables()

func tables() (main, misc, vector, atomic [256]instruction) {
	fill := func(t *[256]instruction, from, to int, in instruction) {
		for op := from; op <= to; op++ {
			t[op] = in
		}
	}
	one := func(t *[256]instruction, op int, in instruction) { t[op] = in }

	one(&main, opUnreachable, instruction{special, 0, 0, "unreachable"})
	one(&main, 0x01, instruction{plain, 0, 0, "nop"})
	for op, name := range map[int]string{
		0x06: "try", 0x07: "catch", 0x08: "throw", 0x09: "rethrow", 0x0a: "throw_ref", 0x18: "delegate", 0x19: "catch_all", 0x1f: "try_table",
		0x14: "call_ref", 0x15: "return_call_ref", 0xd3: "ref.eq", 0xd4: "ref.as_non_null", 0xd5: "br_on_null", 0xd6: "br_on_non_null",
	} {
		one(&main, op, instruction{refused, 0, 0, name})
	}
	fill(&main, opBlock, opElse, instruction{special, 0, 0, ""})
	one(&main, opIf, instruction{special, costSimple, -1, ""})
	fill(&main, opEnd, opReturn, instruction{special, costSimple, 0, ""})
	one(&main, opEnd, instruction{special, 0, 0, ""})
	one(&main, opBrIf, instruction{special, costSimple, -1, ""})
	one(&main, opBrTable, instruction{special, costBrTable, -1, ""})
	one(&main, opCall, instruction{special, costCall, 0, ""})
	one(&main, opReturnCall, instruction{special, costCall, 0, ""})
	one(&main, opCallIndirect, instruction{special, costIndirect, -1, ""})
	one(&main, opReturnCallIndirect, instruction{special, costIndirect, -1, ""})
	one(&main, opDrop, instruction{plain, 0, -1, "drop"})
	one(&main, opSelect, instruction{plain, costSimple, -2, "select"})
	one(&main, opSelectTyped, instruction{special, costSimple, -2, "select"})
	one(&main, opLocalGet, instruction{index, 0, 1, ""})
	one(&main, opLocalSet, instruction{index, costSimple, -1, ""})
	one(&main, opLocalTee, instruction{index, costSimple, 0, ""})
	one(&main, opGlobalGet, instruction{special, costSimple, 1, ""})
	one(&main, opGlobalSet, instruction{special, costSimple, -1, ""})
	one(&main, 0x25, instruction{index, costTable, 0, "table.get"})
	one(&main, opTableSet, instruction{special, costTable, -2, "table.set"})
	fill(&main, 0x28, 0x35, instruction{memarg, costSimple, 0, "load"})
	fill(&main, 0x36, 0x3e, instruction{memarg, costSimple, -2, "store"})
	one(&main, opMemorySize, instruction{special, costSimple, 1, "memory.size"})
	one(&main, opMemoryGrow, instruction{special, costBulk, 0, "memory.grow"})
	one(&main, opI32Const, instruction{special, 0, 1, ""})
	one(&main, opI64Const, instruction{signed, 0, 1, ""})
	one(&main, opF32Const, instruction{bytes4, 0, 1, ""})
	one(&main, opF64Const, instruction{bytes8, 0, 1, ""})
	fill(&main, 0x45, 0x66, instruction{plain, costSimple, -1, ""}) // comparisons
	fill(&main, 0x67, 0xa6, instruction{plain, costSimple, -1, ""}) // arithmetic
	for _, unary := range [][2]int{{0x45, 0x45}, {0x50, 0x50}, {0x67, 0x69}, {0x79, 0x7b}, {0x8b, 0x91}, {0x99, 0x9f}} {
		fill(&main, unary[0], unary[1], instruction{plain, costSimple, 0, ""})
	}
	for _, slow := range [][2]int{{0x6d, 0x70}, {0x7f, 0x82}, {0x95, 0x95}, {0xa3, 0xa3}} { // div and rem
		fill(&main, slow[0], slow[1], instruction{plain, costDivide, -1, ""})
	}
	one(&main, 0x91, instruction{plain, costDivide, 0, "f32.sqrt"})
	one(&main, 0x9f, instruction{plain, costDivide, 0, "f64.sqrt"})
	fill(&main, 0xa7, 0xbf, instruction{plain, costConvert, 0, ""})
	for _, free := range []int{0xa7, 0xac, 0xad} { // wrap and extend
		main[free].cost = costSimple
	}
	fill(&main, 0xc0, 0xc4, instruction{plain, costSimple, 0, ""}) // sign extension
	one(&main, opRefNull, instruction{special, costSimple, 1, ""})
	one(&main, 0xd1, instruction{plain, costSimple, 0, "ref.is_null"})
	one(&main, opRefFunc, instruction{special, costTable, 1, ""})

	fill(&misc, 0x00, 0x07, instruction{plain, costConvert, 0, ""})
	one(&misc, miscMemoryInit, instruction{bulk, costBulk, -3, nameMemoryInit})
	one(&misc, miscDataDrop, instruction{bulk, costSimple, 0, nameDataDrop})
	one(&misc, miscMemoryCopy, instruction{bulk, costBulk, -3, nameMemoryCopy})
	one(&misc, miscMemoryFill, instruction{bulk, costBulk, -3, nameMemoryFill})
	one(&misc, miscTableInit, instruction{bulk, costBulk, -3, nameTableInit})
	one(&misc, miscElemDrop, instruction{index, costSimple, 0, "elem.drop"})
	one(&misc, miscTableCopy, instruction{bulk, costBulk, -3, nameTableCopy})
	one(&misc, miscTableGrow, instruction{bulk, costBulk, -1, nameTableGrow})
	one(&misc, miscTableSize, instruction{index, costSimple, 1, "table.size"})
	one(&misc, miscTableFill, instruction{bulk, costBulk, -3, nameTableFill})

	fill(&vector, 0x00, vectorLast, instruction{plain, costVector, -1, ""})
	for _, hole := range []int{0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb, 0xc2, 0xc5, 0xc6, 0xcf, 0xd0, 0xd2, 0xd3, 0xd4, 0xe2, 0xee} {
		one(&vector, hole, instruction{})
	}
	fill(&vector, 0x00, 0x0a, instruction{memarg, costVector, 0, ""})
	one(&vector, 0x0b, instruction{memarg, costVector, -2, ""})
	fill(&vector, 0x54, 0x57, instruction{memargLane, costVector, -1, ""}) // load a lane
	fill(&vector, 0x58, 0x5b, instruction{memargLane, costVector, -2, ""}) // store a lane
	fill(&vector, 0x5c, 0x5d, instruction{memarg, costVector, 0, ""})
	one(&vector, vectorConst, instruction{bytes16, 0, 1, ""})
	one(&vector, vectorShuffle, instruction{bytes16, costVector, -1, ""})
	fill(&vector, 0x0f, 0x14, instruction{plain, costVector, 0, ""}) // splat
	fill(&vector, 0x15, 0x22, instruction{lane, costVector, 0, ""})

	fill(&atomic, 0x00, 0x02, instruction{memarg, costAtomic, -1, ""})
	one(&atomic, 0x03, instruction{index, costAtomic, 0, "atomic.fence"})
	fill(&atomic, 0x10, 0x16, instruction{memarg, costAtomic, 0, ""})
	fill(&atomic, 0x17, 0x1d, instruction{memarg, costAtomic, -2, ""})
	fill(&atomic, 0x1e, 0x4e, instruction{memarg, costAtomic, -1, ""})
	return main, misc, vector, atomic
}
