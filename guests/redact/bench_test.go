package main

import (
	"strings"
	"testing"
)

// The time has to grow with the text and with nothing else, whatever stands in
// it.
func BenchmarkRules(b *testing.B) {
	for name, piece := range map[string]string{
		"prose":  "The order has shipped, and it arrives on Monday. ",
		"card":   "4111 1111 1111 1111 ",
		"digits": "1111 ",
		"run":    "4",
		"email":  "a@b.c",
		"at":     "@",
		"iban":   "GB82 WEST 1234 5698 7654 31 ",
		"starts": "DE12",
	} {
		for size, bytes := range map[string]int{"64K": 64 << 10, "1M": 1 << 20} {
			b.Run(name+"/"+size, func(b *testing.B) {
				text := strings.Repeat(piece, bytes/len(piece))
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					findAll(defaultRules(), text, 0)
				}
			})
		}
	}
}
