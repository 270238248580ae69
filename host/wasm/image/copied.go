package image

import "bytes"

// copied is a space on the heap, put back by copying all of it.
type copied struct {
	limit uint64
	bytes []byte
}

func (s *copied) resize(size uint64) []byte {
	if size > uint64(cap(s.bytes)) {
		grown := make([]byte, size, min(s.limit, max(size, 2*uint64(cap(s.bytes)))))
		copy(grown, s.bytes)
		s.bytes = grown
	}
	s.bytes = s.bytes[:size]
	return s.bytes
}

func (s *copied) snapshot(size uint64) (content, error) {
	return copiedContent(bytes.Clone(s.bytes[:size])), nil
}

func (s *copied) reset(c content) error {
	copy(s.bytes, c.(copiedContent))
	return nil
}

func (s *copied) held() uint64 { return uint64(cap(s.bytes)) }

func (s *copied) free() { s.bytes = nil }

type copiedContent []byte

func (c copiedContent) newSpace(limit uint64) (space, error) {
	return &copied{limit: limit, bytes: bytes.Clone(c)}, nil
}

func (c copiedContent) free() {}
