package meter

import "unicode/utf8"

// reader takes values off the module. It refuses what ends too early or is not
// an integer of its width.
type reader struct {
	in []byte
	at int
}

// limit is the same place with an end after n bytes.
func (r *reader) limit(n uint32) reader {
	if uint64(n) > uint64(len(r.in)-r.at) {
		refuse(ErrMalformed, r.at, "length %d goes beyond the end", n)
	}
	return reader{r.in[:r.at+int(n)], r.at}
}

func (r *reader) more() bool { return r.at < len(r.in) }

func (r *reader) byte() byte {
	if r.at >= len(r.in) {
		r.ended()
	}
	b := r.in[r.at]
	r.at++
	return b
}

func (r *reader) ended() { refuse(ErrMalformed, r.at, "unexpected end") }

func (r *reader) skip(n uint32) {
	if uint64(n) > uint64(len(r.in)-r.at) {
		refuse(ErrMalformed, r.at, "length %d goes beyond the end", n)
	}
	r.at += int(n)
}

func (r *reader) u32() uint32 {
	if r.at < len(r.in) && r.in[r.at] < 0x80 {
		r.at++
		return uint32(r.in[r.at-1])
	}
	var v uint32
	for shift := uint(0); ; shift += 7 {
		b := r.byte()
		if shift == 28 && b > 0x0f {
			refuse(ErrMalformed, r.at-1, "integer over 32 bits")
		}
		v |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
}

// signed reads a signed integer of at most 64 bits. Whether it fits the width
// that its instruction has is for the engine to say: it sees the same bytes.
func (r *reader) signed(maxBytes uint) int64 {
	var v int64
	for i := uint(0); i < maxBytes; i++ {
		b := r.byte()
		v |= int64(b&0x7f) << (7 * i)
		if b < 0x80 {
			if s := 64 - 7*int(i+1); s > 0 {
				v = v << s >> s
			}
			return v
		}
	}
	refuse(ErrMalformed, r.at-1, "integer too long")
	return 0
}

// skipInteger passes over an integer of so many bytes at most.
func (r *reader) skipInteger(maxBytes int) {
	if r.at < len(r.in) && r.in[r.at] < 0x80 {
		r.at++
		return
	}
	r.skipLong(maxBytes)
}

func (r *reader) skipLong(maxBytes int) {
	for i := 0; i < maxBytes; i++ {
		if r.byte() < 0x80 {
			return
		}
	}
	refuse(ErrMalformed, r.at-1, "integer too long")
}

func (r *reader) name() string {
	n := r.u32()
	at := r.at
	r.skip(n)
	name := r.in[at:r.at]
	if !utf8.Valid(name) {
		refuse(ErrMalformed, at, "name is not UTF-8")
	}
	return string(name)
}

// count is the length of a vector, whose items are at least a byte each.
func (r *reader) count() uint32 {
	n := r.u32()
	if uint64(n) > uint64(len(r.in)-r.at) {
		refuse(ErrMalformed, r.at, "vector of %d goes beyond the end", n)
	}
	return n
}

func appendU32(out []byte, v uint32) []byte {
	for v >= 0x80 {
		out = append(out, byte(v)|0x80)
		v >>= 7
	}
	return append(out, byte(v))
}

func appendSigned(out []byte, v int64) []byte {
	for v < -0x40 || v >= 0x40 {
		out = append(out, byte(v)|0x80)
		v >>= 7
	}
	return append(out, byte(v)&0x7f)
}

func appendName(out []byte, name string) []byte {
	return append(appendU32(out, uint32(len(name))), name...)
}
