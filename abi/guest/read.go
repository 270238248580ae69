package guest

// firstTry is the size of the buffer for a value of unknown length. A longer
// value costs a second call.
const firstTry = 512

// readString reads a value of unknown length.
func readString(read func(buf []byte) int32) (string, error) {
	var first [firstTry]byte
	buf := first[:]
	for {
		n := read(buf)
		if n < 0 {
			return "", Error(n)
		}
		if int(n) <= len(buf) {
			return string(buf[:n]), nil
		}
		buf = make([]byte, n)
	}
}

// readInt64 reads a number of eight bytes.
func readInt64(read func(buf []byte) int32) (int64, error) {
	var buf [8]byte
	if n := read(buf[:]); n < 0 {
		return 0, Error(n)
	}
	return int64At(buf[:], 0), nil
}

// The records are little-endian. The package encoding/binary would do, but it
// brings reflect along.

func uint32At(b []byte, at int) uint32 {
	b = b[at : at+4]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

func int64At(b []byte, at int) int64 {
	return int64(uint32At(b, at)) | int64(uint32At(b, at+4))<<32
}
