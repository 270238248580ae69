//go:build !linux

package image

func newSpace(limit uint64) (space, error) { return &copied{limit: limit}, nil }
