package demo

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// ScriptError is one fault in a script.
type ScriptError struct {
	Line, Col int // from 1; 0 if the fault has no place
	Reply     int // from 1; 0 if the fault is in no reply
	Text      string
}

func (e *ScriptError) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "%d:%d: ", e.Line, e.Col)
	}
	if e.Reply > 0 {
		fmt.Fprintf(&b, "reply[%d] ", e.Reply)
	}
	return b.String() + e.Text
}

type script struct {
	Reply []Reply `toml:"reply"`
}

// ParseScript reads the replies of a script:
//
//	[[reply]]                 # used in order, over all calls of the model
//	agent = "billing"         # for this agent alone
//	thought = "..."           # a thought part before the text
//	text = "Hello."           # or chunks = ["Hel", "lo."]: streamed in pieces
//	calls = [{ name = "lookup", args = { order = "A-1" }, id = "c1" }]
//	usage = { prompt = 100, candidates = 20, total = 120 }   # also cached, thoughts, tool_use
//	error = "503 unavailable" # the model fails, in a stream after the chunks
//	delay = "5s"              # before the reply
//
// All faults come back at once, joined, each a [*ScriptError].
func ParseScript(data []byte) ([]Reply, error) {
	var whole script
	if _, err := toml.Decode(string(data), &struct{}{}); err != nil {
		return nil, scriptError(err)
	}
	blocks := splitReplies(data)
	if blocks == nil { // replies written in another way than as [[reply]] tables
		meta, err := toml.Decode(string(data), &whole)
		if err != nil {
			return nil, scriptError(err)
		}
		if len(whole.Reply) == 0 {
			err = &ScriptError{Text: "script has no [[reply]]"}
		}
		if err := errors.Join(unknownKeys(meta, data, 0), whole.check(0, 0), err); err != nil {
			return nil, err
		}
		return whole.Reply, nil
	}
	var faults []error
	for i, block := range blocks {
		var one script
		meta, err := toml.Decode(string(block), &one)
		if err != nil {
			fault := scriptError(err)
			fault.Reply = i
			faults = append(faults, fault)
			continue
		}
		faults = append(faults, unknownKeys(meta, block, i), one.check(i, headerLine(block)))
		whole.Reply = append(whole.Reply, one.Reply...)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return whole.Reply, nil
}

// check checks the replies; the first is number first (0: count from 1).
func (s script) check(first, line int) error {
	var faults []error
	for i := range s.Reply {
		err := s.Reply[i].Check()
		if err == nil {
			continue
		}
		fault := &ScriptError{Line: line, Reply: max(first, 1) + i, Text: strings.ReplaceAll(err.Error(), "\n", "; ")}
		if line > 0 {
			fault.Col = 1
		}
		faults = append(faults, fault)
	}
	return errors.Join(faults...)
}

var replyHeader = regexp.MustCompile(`^\s*\[\[\s*reply\s*\]\]`)

// splitReplies cuts the text at its [[reply]] lines; the first block is what
// stands before them. Each block has the lines before it blanked out, so that
// a position in it is one in the text: the library knows the place of a key in
// an array of tables only for the last table. nil means that there is nothing
// to cut.
func splitReplies(data []byte) [][]byte {
	var starts []int
	multi := ""
	lines := bytes.SplitAfter(data, []byte("\n"))
	for i, line := range lines {
		if multi == "" && replyHeader.Match(line) {
			starts = append(starts, i)
		}
		multi = openString(string(line), multi)
	}
	var count struct{ Reply []map[string]any }
	if _, err := toml.Decode(string(data), &count); err != nil || len(count.Reply) != len(starts) || len(starts) == 0 {
		return nil
	}
	ends := append(starts[1:len(starts):len(starts)], len(lines))
	blocks := [][]byte{bytes.Join(lines[:starts[0]], nil)}
	for i, start := range starts {
		blank := bytes.Repeat([]byte("\n"), start)
		blocks = append(blocks, append(blank, bytes.Join(lines[start:ends[i]], nil)...))
	}
	return blocks
}

// openString tells which multi-line string is open after the line, given the
// one that was open before it.
func openString(line, open string) string {
	for line != "" {
		if open != "" {
			at := strings.Index(line, open)
			if at < 0 {
				return open
			}
			line, open = line[at+len(open):], ""
			continue
		}
		double, single := strings.Index(line, `"""`), strings.Index(line, `'''`)
		if double < 0 && single < 0 {
			return ""
		}
		open = `"""`
		if double < 0 || single >= 0 && single < double {
			open = `'''`
		}
		line = line[strings.Index(line, open)+len(open):]
	}
	return open
}

func headerLine(block []byte) int {
	return bytes.Count(block[:len(block)-len(bytes.TrimLeft(block, "\n"))], []byte("\n")) + 1
}

func unknownKeys(meta toml.MetaData, text []byte, reply int) error {
	var faults []error
	for _, key := range meta.Undecoded() {
		if len(key) > 3 && key[2] == "args" {
			continue // arguments have the keys that they have
		}
		if len(key) > 1 && key[0] != "reply" {
			continue // its table is named already
		}
		fault := &ScriptError{Reply: reply, Text: fmt.Sprintf("unknown key %q", key[len(key)-1])}
		word := regexp.MustCompile(`(?m)(^|[\s{,.\["'])` + regexp.QuoteMeta(key[len(key)-1]) + `["']?\s*[=.\]]`)
		if at := word.FindSubmatchIndex(text); at != nil {
			before := text[:at[3]]
			fault.Line = bytes.Count(before, []byte("\n")) + 1
			fault.Col = len(before) - bytes.LastIndexByte(before, '\n')
		}
		faults = append(faults, fault)
	}
	return errors.Join(faults...)
}

// typeFault is how the library words a value of the wrong type, which has no
// position as such.
var typeFault = regexp.MustCompile(`^toml: line (\d+) \(last key "[^"]*"\): (.*)`)

func scriptError(err error) *ScriptError {
	var parse toml.ParseError
	if errors.As(err, &parse) {
		return &ScriptError{Line: parse.Position.Line, Col: parse.Position.Col, Text: parse.Message}
	}
	if m := typeFault.FindStringSubmatch(err.Error()); m != nil {
		line, _ := strconv.Atoi(m[1])
		return &ScriptError{Line: line, Col: 1, Text: m[2]}
	}
	return &ScriptError{Text: strings.TrimPrefix(err.Error(), "toml: ")}
}
