package meter

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero/api"
)

const mib = 1 << 20

// TestBulk: long bulk operations do under the meter what they do without,
// overlaps and bounds included, are charged by their length, and are cut up.
func TestBulk(t *testing.T) {
	plain, err := run(t, t.Context(), fixture(t, "bulk"), false)
	require.NoError(t, err)
	metered := started(t, fixture(t, "bulk"), endless())
	for _, c := range []struct {
		name       string
		to, from   uint64 // or the value
		length     uint64
		ticks      int    // at least, with a slice for half a piece
		trap       string // what it ends with
		wholeTable bool
	}{
		{name: "fill", to: 0, from: 7, length: 4 * mib, ticks: 4},
		{name: "fill", to: mib + 3, from: 9, length: 2*mib + 5, ticks: 2},
		{name: "fill", to: 5, from: 1, length: mib, ticks: 1},
		{name: "fill", to: 1, from: 2, length: 4 * mib, trap: "out of bounds memory access"},
		{name: "fill", to: math.MaxUint32, from: 2, length: math.MaxUint32, trap: "out of bounds memory access"},
		{name: "copy", to: 0, from: 1, length: 3*mib + 7, ticks: 3},
		{name: "copy", to: 1, from: 0, length: 3*mib + 7, ticks: 3},
		{name: "copy", to: 2 * mib, from: 0, length: 2 * mib, ticks: 2},
		{name: "copy", to: mib/2 + 1, from: 0, length: 3 * mib, ticks: 3},
		{name: "copy", to: 0, from: mib/2 + 1, length: 3 * mib, ticks: 3},
		{name: "copy", to: 9, from: 9, length: 2 * mib, ticks: 2},
		{name: "copy", to: 0, from: 2*mib + 1, length: 2 * mib, trap: "out of bounds memory access"},
		{name: "copy", to: 2*mib + 1, from: 0, length: 2 * mib, trap: "out of bounds memory access"},
		{name: "init", to: 100, from: 2, length: 5},
		{name: "init", to: 100, from: 2, length: 2 * mib, trap: "out of bounds memory access"},
		{name: "fill_short", to: 50, from: 3},
		{name: "copy_short", to: 50, from: 400},
		{name: "table_init", to: 5, from: 0, length: 2},
		{name: "table_fill", to: 100_000, length: 150_000, ticks: 2},
		{name: "table_fill", to: 200_000, length: 150_000, trap: "invalid table access"},
		{name: "table_copy", to: 20_000, from: 100_000, length: 170_000, ticks: 2},
		{name: "table_copy", to: 130_000, from: 0, length: 170_000, ticks: 2},
		{name: "table_across", to: 7, from: 1, length: 200_000, ticks: 3},
		{name: "table_across", to: 7, from: 1, length: 299_999, trap: "invalid table access"},
	} {
		for _, name := range []string{"seed", c.name, "elements"} {
			args := []uint64{c.to, c.from, c.length}
			if name == "seed" {
				args = nil
			}
			b := &budget{slice: pieceBytes / bytesPerCost / 2, most: math.MaxInt64}
			enough(metered)
			x, before := plain.ExportedFunction(name).Call(t.Context(), args...)
			y, after := metered.ExportedFunction(name).Call(withBudget(t.Context(), b), args...)
			require.Equal(t, trapKind(before), trapKind(after), "%s %v", name, args)
			require.Equal(t, x, y, "%s %v", name, args)
			if name == c.name {
				require.Equal(t, c.trap, trapKind(after), "%s %v", name, args)
				assert.GreaterOrEqual(t, b.ticks, c.ticks, "%s %v", name, args)
			}
			require.True(t, bytes.Equal(all(plain), all(metered)), "%s %v", name, args)
		}
	}
}

func all(m api.Module) []byte {
	bytes, _ := m.Memory().Read(0, m.Memory().Size())
	return bytes
}

// TestLongBulkIsStopped: the charge comes before the work.
func TestLongBulkIsStopped(t *testing.T) {
	m := started(t, fixture(t, "bulk"), endless())
	enough(m)
	m.ExportedGlobal(Fuel).(api.MutableGlobal).Set(0)
	_, err := m.ExportedFunction("fill").Call(withBudget(t.Context(), &budget{slice: 1, most: 2 * mib / bytesPerCost}), 0, 1, 4*mib)
	require.ErrorIs(t, err, errOver)
	last, _ := m.Memory().ReadByte(4*mib - 1)
	assert.Zero(t, last, "the end was not reached")
}

// TestGrowth is charged by the page, and a table does not grow without end.
func TestGrowth(t *testing.T) {
	m := started(t, fixture(t, "grow"), endless())
	used := func(name string, n uint64) (result int32, fuel int64) {
		t.Helper()
		const slice = 1 << 40
		m.ExportedGlobal(Fuel).(api.MutableGlobal).Set(slice)
		results, err := m.ExportedFunction(name).Call(t.Context(), n)
		require.NoError(t, err)
		return int32(results[0]), slice - int64(m.ExportedGlobal(Fuel).Get())
	}
	result, fuel := used("grow", 4)
	assert.EqualValues(t, 1, result)
	assert.GreaterOrEqual(t, fuel, int64(4*costPage))
	result, fuel = used("grow", math.MaxUint32)
	assert.EqualValues(t, -1, result)
	assert.GreaterOrEqual(t, fuel, int64(costExit))
	assert.Less(t, fuel, int64(costPage), "no page was had")
	result, fuel = used("table_grow", 1000)
	assert.EqualValues(t, 1, result)
	assert.GreaterOrEqual(t, fuel, int64(1000))
	result, _ = used("table_grow", maxGrown)
	assert.EqualValues(t, -1, result)
}

// TestWhatIsCharged: moves of locals cost, as do values that are taken along and
// what the engine does in Go.
func TestWhatIsCharged(t *testing.T) {
	const n = 100
	values := bytes.Repeat([]byte{opI32Const, 0}, n)
	drops := bytes.Repeat([]byte{opDrop}, n)
	for name, c := range map[string]struct {
		body []byte
		cost int64
	}{
		"locals":   {bytes.Repeat([]byte{opLocalGet, 0, opLocalSet, 1}, n), n},
		"call":     {slices.Concat(values, []byte{opCall, 1}), n - freeValues},
		"block":    {slices.Concat([]byte{opBlock, 2}, values, []byte{opEnd}, drops), n - freeValues},
		"branch":   {slices.Concat([]byte{opBlock, 2}, values, []byte{opBr, 0, opEnd}, drops), 2 * (n - freeValues)},
		"table":    {slices.Concat([]byte{opBlock, 2}, values, []byte{opI32Const, 0, opBrTable, 0, 0, opEnd}, drops), 2 * (n - freeValues)},
		"ref.func": {[]byte{opRefFunc, 0, opDrop}, costExit},
	} {
		t.Run(name, func(t *testing.T) {
			i32s := bytes.Repeat([]byte{typeI32}, n)
			module := []byte("\x00asm\x01\x00\x00\x00")
			section := func(id byte, content ...byte) {
				module = append(appendU32(append(module, id), uint32(len(content))), content...)
			}
			section(sectionType, slices.Concat([]byte{3, 0x60, 0, 0, 0x60, n}, i32s, []byte{0, 0x60, 0, n}, i32s)...)
			section(sectionFunction, 2, 0, 1)
			section(sectionExport, 1, 1, 'f', 0, 0)
			body := slices.Concat([]byte{1, 2, typeI32}, c.body, []byte{opEnd})
			section(sectionCode, slices.Concat(appendU32([]byte{2}, uint32(len(body))), body, []byte{2, 0, opEnd})...)
			m := started(t, module, endless())
			const slice = 1 << 40
			m.ExportedGlobal(Fuel).(api.MutableGlobal).Set(slice)
			_, err := m.ExportedFunction("f").Call(t.Context())
			require.NoError(t, err)
			used := slice - int64(m.ExportedGlobal(Fuel).Get())
			assert.GreaterOrEqual(t, used, c.cost)
			assert.Less(t, used, c.cost+20)
		})
	}
}

// TestState: globals are exported to be read and set; what is held by neither
// them nor the memory is named, with its place.
func TestState(t *testing.T) {
	module := fixture(t, "state")
	rewritten, err := Rewrite(module)
	require.NoError(t, err)
	assert.Equal(t, []string{GlobalPrefix + "0", GlobalPrefix + "2", GlobalPrefix + "3", GlobalPrefix + "4"}, rewritten.Globals)

	var uses []string
	for _, use := range rewritten.Unheld {
		uses = append(uses, use.What)
		if use.Function != NoFunction {
			assert.EqualValues(t, 1, use.Function)
			assert.Contains(t, []byte{opTableSet, opMisc}, module[use.Offset])
		}
	}
	assert.Equal(t, []string{
		"mutable v128 global", "mutable reference global",
		"table.set", "table.fill", "table.copy", "table.init", "table.grow", "memory.init",
	}, uses)

	m := started(t, module, endless())
	values := func() (values []uint64) {
		for _, name := range rewritten.Globals {
			values = append(values, m.ExportedGlobal(name).Get())
		}
		return values
	}
	before := values()
	enough(m)
	_, err = m.ExportedFunction("set").Call(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []uint64{10, 20, uint64(math.Float32bits(30)), math.Float64bits(40)}, values())
	for i, name := range rewritten.Globals {
		m.ExportedGlobal(name).(api.MutableGlobal).Set(before[i])
	}
	assert.Equal(t, []uint64{1, 2, uint64(math.Float32bits(3)), math.Float64bits(4)}, values())
}

// TestActiveData: an active segment is copied by the start and is then empty,
// in this instance and in one that is made of its image.
func TestActiveData(t *testing.T) {
	m := instantiated(t, fixture(t, "state"), endless(), omission{})
	data := func() string {
		bytes, _ := m.Memory().Read(16, 6)
		return string(bytes)
	}
	assert.Equal(t, "\x00\x00\x00\x00\x00\x00", data())
	for range 2 {
		enough(m)
		_, err := m.ExportedFunction("init_active").Call(t.Context(), 1)
		assert.Equal(t, "out of bounds memory access", trapKind(err))
		_, err = m.ExportedFunction("init_active").Call(t.Context(), 0)
		assert.NoError(t, err)
		_, err = m.ExportedFunction(Start).Call(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "active", data())
	}
}

// TestNames: a trap is shown with the names of the functions it went through.
func TestNames(t *testing.T) {
	m := started(t, fixture(t, "named"), endless())
	enough(m)
	_, err := m.ExportedFunction("outer").Call(t.Context())
	assert.ErrorContains(t, err, ".inner()")
	assert.ErrorContains(t, err, ".outer()")
}

// TestNamesAreBounded: a trap shows no more of a name than can be read, and a
// module no more names than are of use.
func TestNamesAreBounded(t *testing.T) {
	module := withSections(sectionType, 1, 0x60, 0, 0)
	module = append(module, sectionFunction, 2, 1, 0)
	module = append(module, sectionExport, 5, 1, 1, 'f', 0, 0)
	module = append(module, sectionCode, 5, 1, 3, 0, opUnreachable, opEnd)
	long := appendU32(nil, 1)
	long = appendName(appendU32(long, 0), "a\x1b[1m\n\u00e9"+strings.Repeat("x", 10*mib))
	m := started(t, withNames(module, long), endless())
	enough(m)
	_, err := m.ExportedFunction("f").Call(t.Context())
	require.ErrorContains(t, err, ".a?[1m???xxx")
	assert.Less(t, len(err.Error()), 1000)

	one := appendName(appendU32([]byte{1}, 0), "again and again and again")
	rewritten, err := Rewrite(withNames(module, slices.Repeat([][]byte{one}, 200_000)...))
	require.NoError(t, err)
	assert.Less(t, len(rewritten.Module), 2*mib)
}

// withNames is the module with a name section of such names of functions.
func withNames(module []byte, functions ...[]byte) []byte {
	content := appendName(nil, "name")
	for _, f := range functions {
		content = append(appendU32(append(content, 1), uint32(len(f))), f...)
	}
	return append(appendU32(append(append([]byte{}, module...), sectionCustom), uint32(len(content))), content...)
}

// TestRefusals: what is refused is named, with its offset.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		module []byte
		kind   error
		what   string
	}{
		"no module":        {[]byte("text"), ErrMalformed, "header"},
		"unknown opcode":   {withBody(0x27), ErrUnknownOpcode, "0x27"},
		"unknown bulk":     {withBody(opMisc, 0x12), ErrUnknownOpcode, "0xfc12"},
		"unknown vector":   {withBody(opVector, 0x9a, 0x01), ErrUnknownOpcode, "0xfd9a01"},
		"unknown atomic":   {withBody(opAtomic, 0x4f), ErrUnknownOpcode, "0xfe4f"},
		"garbage objects":  {withBody(0xfb, 0x00), ErrUnknownOpcode, "0xfb"},
		"relaxed SIMD":     {withBody(opVector, 0x80, 0x02), ErrUnsupported, "relaxed SIMD"},
		"try_table":        {withBody(0x1f, typeEmpty, 0, opEnd), ErrUnsupported, "try_table"},
		"throw":            {withBody(0x08, 0), ErrUnsupported, "throw"},
		"call_ref":         {withBody(0x14, 0), ErrUnsupported, "call_ref"},
		"tag section":      {withSections(sectionTag, 0), ErrUnsupported, "exceptions"},
		"shared memory":    {withSections(sectionMemory, 1, 3, 1, 1), ErrShared, "limits"},
		"64-bit memory":    {withSections(sectionMemory, 1, 4, 1), ErrUnsupported, "64-bit memory"},
		"two memories":     {withSections(sectionMemory, 2, 0, 1, 0, 1), ErrUnsupported, "more than one memory"},
		"huge table":       {withSections(sectionTable, 1, typeFunc, 0, 0x80, 0x80, 0x80, 0x20), ErrTooLarge, "table of"},
		"huge vector":      {withSections(sectionType, 0xff, 0xff, 0xff, 0xff, 0x0f), ErrMalformed, "goes beyond the end"},
		"many parameters":  {typed(maxValues+1, 0), ErrTooLarge, "1001 parameters"},
		"many results":     {typed(0, maxValues+1), ErrTooLarge, "1001 results"},
		"many locals":      {withCode(1, 0xff, 0xff, 0xff, 0xff, 0x0f, typeI32, opEnd), ErrTooLarge, "locals"},
		"loops and locals": {looped(401, 250), ErrTooLarge, "401 loops with 250 locals"},
		"label too far":    {withBody(opBr, 1), ErrMalformed, "label 1 of 1"},
		"the meter's fuel": {withBody(opGlobalGet, 0, 0x1a), ErrMalformed, "global 0 of 0"},
		"the meter's tick": {withBody(opCall, 1), ErrMalformed, "function 1 of 1"},
		"no data count":    {withBody(opMisc, miscDataDrop, 0), ErrMalformed, "data count"},
		"code too long":    {withBody(opEnd, 0x01), ErrMalformed, "behind the end"},
		"export's name":    {withSections(sectionExport, append([]byte{1, byte(len(Fuel))}, append([]byte(Fuel), 0, 0)...)...), ErrReserved, Fuel},
		"import's module":  {withSections(sectionImport, append([]byte{1, byte(len(Module))}, append([]byte(Module), 0, 0, 0)...)...), ErrReserved, Module},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Rewrite(c.module)
			require.ErrorIs(t, err, c.kind)
			assert.ErrorContains(t, err, c.what)
			var refusal *Error
			require.ErrorAs(t, err, &refusal)
			assert.LessOrEqual(t, refusal.Offset, len(c.module))
		})
	}
}

// withSections is a module of one section.
func withSections(id byte, content ...byte) []byte {
	return append([]byte("\x00asm\x01\x00\x00\x00"+string([]byte{id, byte(len(content))})), content...)
}

// typed is a module of one type, without function.
func typed(params, results int) []byte {
	content := append(appendU32([]byte{1, 0x60}, uint32(params)), bytes.Repeat([]byte{typeI32}, params)...)
	content = append(appendU32(content, uint32(results)), bytes.Repeat([]byte{typeI32}, results)...)
	module := appendU32([]byte("\x00asm\x01\x00\x00\x00\x01"), uint32(len(content)))
	return append(module, content...)
}

// looped is a module of one function with so many loops and locals.
func looped(loops, locals int) []byte {
	body := append(appendU32([]byte{1}, uint32(locals)), typeI32)
	body = append(append(body, bytes.Repeat([]byte{opLoop, typeEmpty, opEnd}, loops)...), opEnd)
	code := append(appendU32([]byte{1}, uint32(len(body))), body...)
	module := append(withSections(sectionType, 1, 0x60, 0, 0), sectionFunction, 2, 1, 0, sectionCode)
	return append(appendU32(module, uint32(len(code))), code...)
}

// withBody is a module of one function without parameters, locals and results.
func withBody(code ...byte) []byte { return withCode(append([]byte{0}, append(code, opEnd)...)...) }

func withCode(body ...byte) []byte {
	module := withSections(sectionType, 1, 0x60, 0, 0)
	module = append(module, sectionFunction, 2, 1, 0)
	module = append(module, sectionCode, byte(len(body)+2), 1, byte(len(body)))
	return append(module, body...)
}
