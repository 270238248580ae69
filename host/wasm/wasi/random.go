package wasi

import "crypto/rand"

// piece is how much random is made between two charges.
const piece = 64 << 10

func random(h *Host, m guest, args []uint64) errno {
	b, inside := m.Read(uint32(args[0]), uint32(args[1]))
	if !inside {
		return fault
	}
	for len(b) > 0 {
		part := b[:min(len(b), piece)]
		h.charge(len(part))
		_, _ = rand.Read(part) // never fails
		b = b[len(part):]
	}
	return ok
}
