package wasi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/wasm/wasi"
)

// The numbers that guests know.
const (
	success = 0
	eBADF   = 8
	eFAULT  = 21
	eINVAL  = 28
	eIO     = 29
	eNOSYS  = 52
	eSPIPE  = 70
)

// memory is a guest's.
type memory []byte

func (m memory) Read(offset, n uint32) ([]byte, bool) {
	if uint64(offset)+uint64(n) > uint64(len(m)) {
		return nil, false
	}
	return m[offset : offset+n : offset+n], true
}

func (m memory) u32(at int) uint32 { return binary.LittleEndian.Uint32(m[at:]) }
func (m memory) u64(at int) uint64 { return binary.LittleEndian.Uint64(m[at:]) }

func (m memory) put(at int, words ...uint32) {
	for i, w := range words {
		binary.LittleEndian.PutUint32(m[at+4*i:], w)
	}
}

// guest calls the functions on a memory of its own.
type guest struct {
	t       testing.TB
	memory  memory
	output  bytes.Buffer
	charged int
	host    wasi.Host
}

func newGuest(t testing.TB, size int) *guest {
	g := &guest{t: t, memory: make(memory, size)}
	g.host = wasi.Host{Output: &g.output, Charge: func(bytes int) {
		require.LessOrEqual(t, bytes, 64<<10, "a piece at a time")
		g.charged += bytes
	}}
	return g
}

func function(t testing.TB, name string) wasi.Function {
	for _, f := range wasi.Functions() {
		if f.Name == name {
			return f
		}
	}
	require.Fail(t, "no such function", name)
	return wasi.Function{}
}

func (g *guest) call(name string, args ...uint64) uint32 {
	g.t.Helper()
	f := function(g.t, name)
	require.Len(g.t, args, len(f.Params))
	stack := append(args, 0)
	f.Call(&g.host, g.memory, stack)
	return uint32(stack[0])
}

func TestFunctionsAreThoseOfTheStandard(t *testing.T) {
	engine := wazero.NewRuntime(t.Context())
	defer engine.Close(context.Background())
	compiled, err := wasi_snapshot_preview1.NewBuilder(engine).Compile(t.Context())
	require.NoError(t, err)
	standard := compiled.ExportedFunctions()
	assert.Len(t, wasi.Functions(), len(standard))
	for _, f := range wasi.Functions() {
		want := standard[f.Name]
		require.NotNil(t, want, f.Name)
		assert.Equal(t, want.ParamTypes(), types(f.Params), f.Name)
		assert.Equal(t, want.ResultTypes(), types(f.Results), f.Name)
	}
}

func types(of []abi.Type) (list []api.ValueType) {
	for _, t := range of {
		list = append(list, api.ValueType(t))
	}
	return list
}

func TestNoArgumentsAndNoEnvironment(t *testing.T) {
	for _, name := range []string{"args", "environ"} {
		g := newGuest(t, 16)
		g.memory.put(0, 7, 7, 7, 7)
		assert.EqualValues(t, success, g.call(name+"_sizes_get", 0, 8))
		assert.Equal(t, []uint32{0, 7, 0, 7}, []uint32{g.memory.u32(0), g.memory.u32(4), g.memory.u32(8), g.memory.u32(12)})
		assert.EqualValues(t, success, g.call(name+"_get", 0, 0))
		assert.EqualValues(t, eFAULT, g.call(name+"_sizes_get", 0, 13))
		assert.EqualValues(t, eFAULT, g.call(name+"_sizes_get", 16, 0))
	}
}

func TestClocksAreTheHosts(t *testing.T) {
	g := newGuest(t, 16)
	require.EqualValues(t, success, g.call("clock_time_get", 0, 1, 0))
	assert.WithinDuration(t, time.Now(), time.Unix(0, int64(g.memory.u64(0))), time.Minute)

	require.EqualValues(t, success, g.call("clock_time_get", 1, 1, 0))
	require.EqualValues(t, success, newGuestWith(g).call("clock_time_get", 1, 1, 8))
	assert.NotZero(t, g.memory.u64(0))
	assert.GreaterOrEqual(t, g.memory.u64(8), g.memory.u64(0), "it goes on, whichever instance asks")

	for clock := range uint64(2) {
		require.EqualValues(t, success, g.call("clock_res_get", clock, 0))
		assert.EqualValues(t, 1, g.memory.u64(0))
	}
	assert.EqualValues(t, eINVAL, g.call("clock_time_get", 2, 0, 0))
	assert.EqualValues(t, eINVAL, g.call("clock_res_get", 3, 0))
	assert.EqualValues(t, eFAULT, g.call("clock_time_get", 0, 0, 9))
	assert.EqualValues(t, eFAULT, g.call("clock_res_get", 1, 0xffff_ffff))
}

// newGuestWith is another guest on the memory of this one.
func newGuestWith(g *guest) *guest {
	other := newGuest(g.t, 0)
	other.memory = g.memory
	return other
}

func TestRandomIsOfTheLengthAskedAndCharged(t *testing.T) {
	g := newGuest(t, 300<<10)
	require.EqualValues(t, success, g.call("random_get", 1000, 200<<10))
	assert.Equal(t, 200<<10, g.charged)
	assert.Equal(t, make([]byte, 1000), []byte(g.memory[:1000]))
	assert.NotContains(t, string(g.memory[1000:1000+200<<10]), string(make([]byte, 16)), "every piece is filled")
	assert.Equal(t, make([]byte, 300<<10-201<<10), []byte(g.memory[201<<10:]))

	first := bytes.Clone(g.memory[1000:1032])
	require.EqualValues(t, success, g.call("random_get", 1000, 32))
	assert.NotEqual(t, first, []byte(g.memory[1000:1032]))
	assert.EqualValues(t, success, g.call("random_get", 0, 0))
	assert.EqualValues(t, eFAULT, g.call("random_get", 1, 300<<10))
	assert.EqualValues(t, eFAULT, g.call("random_get", 0xffff_ffff, 0xffff_ffff))
}

func TestAChargeThatEndsTheCallEndsItBetweenPieces(t *testing.T) {
	over := errors.New("out of time")
	g := newGuest(t, 200<<10)
	g.host.Charge = func(bytes int) {
		if g.charged += bytes; g.charged > 100<<10 {
			panic(over)
		}
	}
	require.PanicsWithValue(t, over, func() { g.call("random_get", 0, 200<<10) })
	assert.Equal(t, make([]byte, 100<<10), []byte(g.memory[100<<10:]))
}

func TestOutputIsTakenFromBothStreams(t *testing.T) {
	g := newGuest(t, 64)
	copy(g.memory, "hello world")
	g.memory.put(16, 0, 5, 0, 0, 5, 6) // three buffers, one of them empty
	require.EqualValues(t, success, g.call("fd_write", 1, 16, 3, 48))
	assert.Equal(t, "hello world", g.output.String())
	assert.EqualValues(t, 11, g.memory.u32(48))
	assert.Equal(t, 11, g.charged)

	require.EqualValues(t, success, g.call("fd_write", 2, 16, 1, 48))
	assert.Equal(t, "hello worldhello", g.output.String())
	require.EqualValues(t, success, g.call("fd_write", 1, 0, 0, 48))
	assert.Zero(t, g.memory.u32(48))
}

func TestOutputIsTakenWholeOrNotAtAll(t *testing.T) {
	g := newGuest(t, 64)
	g.memory.put(16, 0, 5, 60, 5) // the second one is not inside
	assert.EqualValues(t, eFAULT, g.call("fd_write", 1, 16, 2, 48))
	assert.EqualValues(t, eFAULT, g.call("fd_write", 1, 16, 1, 61), "nowhere to say how much")
	assert.EqualValues(t, eFAULT, g.call("fd_write", 1, 57, 1, 48))
	assert.EqualValues(t, eINVAL, g.call("fd_write", 1, 0, 1025, 48))
	assert.EqualValues(t, eINVAL, g.call("fd_write", 1, 0, 0xffff_ffff, 48))
	for _, fd := range []uint64{0, 3, 0xffff_ffff} {
		assert.EqualValues(t, eBADF, g.call("fd_write", fd, 16, 1, 48))
	}
	assert.Empty(t, g.output.String())
	assert.Zero(t, g.charged)
}

func TestManyBuffersOverOneMemoryAreTakenInPieces(t *testing.T) {
	g := newGuest(t, 40<<10)
	for i := range 1024 {
		g.memory.put(8*i, 0, 40<<10)
	}
	require.EqualValues(t, success, g.call("fd_write", 1, 0, 1024, 8192))
	assert.EqualValues(t, 64<<10, g.memory.u32(8192), "what was taken, and the rest is the guest's to write again")
	assert.Equal(t, 64<<10, g.output.Len())
	assert.Equal(t, 64<<10, g.charged)
}

func TestAnOutputThatFailsIsAnErrno(t *testing.T) {
	g := newGuest(t, 64)
	g.memory.put(16, 0, 5)
	g.host.Output = failing{}
	assert.EqualValues(t, eIO, g.call("fd_write", 1, 16, 1, 48))
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestStreamsAreTerminals(t *testing.T) {
	g := newGuest(t, 32)
	for fd, rights := range []uint64{1 << 1, 1 << 6, 1 << 6} {
		for i := range g.memory {
			g.memory[i] = 0xff
		}
		require.EqualValues(t, success, g.call("fd_fdstat_get", uint64(fd), 4))
		assert.EqualValues(t, 2, g.memory[4], "a character device")
		assert.EqualValues(t, rights, g.memory.u64(12), "and one that cannot seek or tell, as isatty wants it")
		assert.Zero(t, g.memory.u64(20))
		assert.EqualValues(t, 0xffff_ffff, g.memory.u32(28))
	}
	assert.EqualValues(t, eBADF, g.call("fd_fdstat_get", 3, 4))
	assert.EqualValues(t, eFAULT, g.call("fd_fdstat_get", 1, 9))
}

func TestInputIsAtItsEnd(t *testing.T) {
	g := newGuest(t, 64)
	g.memory.put(16, 0, 5)
	g.memory.put(48, 9)
	require.EqualValues(t, success, g.call("fd_read", 0, 16, 1, 48))
	assert.Zero(t, g.memory.u32(48))
	assert.EqualValues(t, eFAULT, g.call("fd_read", 0, 60, 1, 48))
	assert.EqualValues(t, eFAULT, g.call("fd_read", 0, 16, 1, 64))
	assert.EqualValues(t, eBADF, g.call("fd_read", 1, 16, 1, 48))
}

// Every function that names a file: on a stream, and on anything else.
func TestThereAreNoFilesAndNoSockets(t *testing.T) {
	onStream := map[string]uint32{
		"fd_close": success, "fd_seek": eSPIPE, "fd_tell": eSPIPE, "fd_pread": eSPIPE, "fd_pwrite": eSPIPE,
		"fd_prestat_get": eBADF, "fd_prestat_dir_name": eBADF, "fd_readdir": eBADF,
	}
	for _, f := range wasi.Functions() {
		file, ours := strings.HasPrefix(f.Name, "fd_"), false
		switch f.Name {
		case "fd_write", "fd_read", "fd_fdstat_get":
			ours = true
		}
		if ours || !file && !strings.HasPrefix(f.Name, "path_") && !strings.HasPrefix(f.Name, "sock_") {
			continue
		}
		g := newGuest(t, 256)
		for _, fd := range []uint64{3, 4, 1 << 31, 0xffff_ffff} {
			args := make([]uint64, len(f.Params))
			args[0] = fd
			assert.EqualValues(t, eBADF, g.call(f.Name, args...), "%s of %d", f.Name, fd)
		}
		want, told := onStream[f.Name]
		switch {
		case !file:
			want = eBADF
		case !told:
			want = eNOSYS
		}
		assert.Equal(t, want, g.call(f.Name, append([]uint64{1}, make([]uint64, len(f.Params)-1)...)...), f.Name)
		assert.Equal(t, make(memory, 256), g.memory, "%s writes nothing", f.Name)
	}
	assert.EqualValues(t, eNOSYS, newGuest(t, 0).call("proc_raise", 9))
}

// subscribe writes a subscription.
func (g *guest) subscribe(at int, name uint64, kind byte, of uint32, timeout time.Duration) {
	binary.LittleEndian.PutUint64(g.memory[at:], name)
	g.memory[at+8] = kind
	g.memory.put(at+16, of)
	binary.LittleEndian.PutUint64(g.memory[at+24:], uint64(timeout))
}

func TestPollNeverSleeps(t *testing.T) {
	g := newGuest(t, 1024)
	g.subscribe(0, 11, 0, 1, time.Hour)
	g.subscribe(48, 12, 2, 1, 0)
	g.subscribe(96, 13, 1, 5, 0)
	g.subscribe(144, 14, 0, 9, time.Hour)
	began := time.Now()
	require.EqualValues(t, success, g.call("poll_oneoff", 0, 512, 4, 900))
	assert.Less(t, time.Since(began), time.Minute)
	assert.EqualValues(t, 4, g.memory.u32(900))
	for i, want := range []struct {
		name uint64
		err  uint16
		kind byte
	}{{11, success, 0}, {12, success, 2}, {13, eBADF, 1}, {14, eINVAL, 0}} {
		event := g.memory[512+32*i:]
		assert.Equal(t, want.name, event.u64(0))
		assert.Equal(t, want.err, binary.LittleEndian.Uint16(event[8:]), "%d", want.name)
		assert.Equal(t, want.kind, event[10])
	}
	assert.Equal(t, 4*48, g.charged)
}

func TestPollOfListsThatOverlap(t *testing.T) {
	apart, over := newGuest(t, 1024), newGuest(t, 1024)
	for _, g := range []*guest{apart, over} {
		for i := range 4 {
			g.subscribe(48*i, uint64(100+i), 0, 1, time.Second)
		}
	}
	require.EqualValues(t, success, apart.call("poll_oneoff", 0, 512, 4, 900))
	require.EqualValues(t, success, over.call("poll_oneoff", 0, 40, 4, 900))
	assert.Equal(t, apart.memory[512:512+128], over.memory[40:40+128])
}

func TestPollOfBadLists(t *testing.T) {
	g := newGuest(t, 1024)
	assert.EqualValues(t, eINVAL, g.call("poll_oneoff", 0, 512, 0, 900), "none")
	assert.EqualValues(t, eINVAL, g.call("poll_oneoff", 0, 512, 1025, 900), "too many")
	assert.EqualValues(t, eINVAL, g.call("poll_oneoff", 0, 512, 0xffff_ffff, 900))
	assert.EqualValues(t, eFAULT, g.call("poll_oneoff", 1000, 512, 1, 900))
	assert.EqualValues(t, eFAULT, g.call("poll_oneoff", 0, 1000, 1, 900))
	assert.EqualValues(t, eFAULT, g.call("poll_oneoff", 0, 512, 1, 1022))
	g.memory[8] = 3
	assert.EqualValues(t, eINVAL, g.call("poll_oneoff", 0, 512, 1, 900), "of a kind that does not exist")
}

func TestExitPanicsWithItsCode(t *testing.T) {
	defer func() {
		exit, typed := recover().(*wasi.Exit)
		require.True(t, typed)
		assert.EqualValues(t, 7, exit.Code)
		assert.EqualError(t, exit, "exited with code 7")
	}()
	function(t, "proc_exit").Call(&wasi.Host{}, nil, []uint64{7})
}

func TestYieldGoesOn(t *testing.T) {
	assert.EqualValues(t, success, newGuest(t, 0).call("sched_yield"))
}

// FuzzWASI calls any function with any arguments on any memory: it gives an
// errno, and of the memory only what is the guest's is touched.
func FuzzWASI(f *testing.F) {
	all := wasi.Functions()
	for at := range all {
		f.Add(uint8(at), uint64(0), uint64(0), uint64(1), uint64(8), uint64(0), []byte("\x10\x00\x00\x00\x04\x00\x00\x00----some"))
		f.Add(uint8(at), uint64(1), uint64(0xffff_fff0), uint64(0x1000_0000), uint64(1<<63), uint64(0xffff_ffff), []byte{})
		f.Add(uint8(at), uint64(2), uint64(0), uint64(1), uint64(24), uint64(0), bytes.Repeat([]byte{0}, 100))
	}
	documented := []uint32{success, eBADF, eFAULT, eINVAL, eNOSYS, eSPIPE}
	f.Fuzz(func(t *testing.T, which uint8, a0, a1, a2, a3, a4 uint64, content []byte) {
		fn := all[int(which)%len(all)]
		if fn.Name == "proc_exit" {
			return // its panic is its result
		}
		// The guest's memory lies between two fences.
		const fence = 64
		whole := bytes.Repeat([]byte{0xa5}, fence+len(content)+fence)
		copy(whole[fence:], content)
		g := newGuest(t, 0)
		g.memory = whole[fence : fence+len(content)]
		stack := []uint64{a0, a1, a2, a3, a4, a0, a1, a2, a3}
		fn.Call(&g.host, g.memory, stack)
		require.Contains(t, documented, uint32(stack[0]), fn.Name)
		require.Zero(t, stack[0]>>32)
		require.LessOrEqual(t, g.output.Len(), 64<<10)
		for _, b := range [][]byte{whole[:fence], whole[fence+len(content):]} {
			require.Equal(t, bytes.Repeat([]byte{0xa5}, fence), b, fn.Name)
		}
	})
}
