// Work as Go guests do it, for what the meter costs.
package main

import (
	"encoding/json"
	"regexp"
	"strings"
)

func main() {}

var (
	text    = strings.Repeat("card 4111 1111 1111 1111, mail a.b@example.com; ", 86)[:4096]
	doc     = []byte(`{"name":"refund","args":{"order":"A-1001","amount":12.5,"lines":[` + strings.Repeat(`{"id":7,"text":"a line"},`, 30) + `{}]}}`)
	pattern = regexp.MustCompile(`\b(?:\d[ -]?){13,16}\b`)
)

//go:wasmexport verdict
func verdict(n uint32) uint32 {
	if strings.Contains(text[:200], "Project Heron") {
		return n
	}
	return n + 1
}

//go:wasmexport parse
func parse(n uint32) uint32 {
	var v map[string]any
	if json.Unmarshal(doc, &v) != nil {
		return 0
	}
	out, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return n + uint32(len(out))
}

//go:wasmexport match
func match(n uint32) uint32 { return n + uint32(len(pattern.FindAllStringIndex(text, -1))) }

//go:wasmexport mask
func mask(n uint32) uint32 {
	out := []byte(text)
	digits, start := 0, 0
	for i, c := range out {
		switch {
		case c >= '0' && c <= '9':
			if digits == 0 {
				start = i
			}
			if digits++; digits == 16 {
				for j := start; j <= i; j++ {
					if out[j] != ' ' {
						out[j] = '*'
					}
				}
				digits = 0
				n++
			}
		case c != ' ':
			digits = 0
		}
	}
	return n + uint32(out[0])
}

// nest decodes as deep a document as it is asked for.
//
//go:wasmexport nest
func nest(n uint32) uint32 {
	var v any
	if json.Unmarshal([]byte(strings.Repeat("[", int(n))+strings.Repeat("]", int(n))), &v) != nil {
		return 0
	}
	return 1
}
