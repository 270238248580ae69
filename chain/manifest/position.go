package manifest

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// The TOML library reports positions of syntax errors only. positions finds
// where every key and value of a document stands. It relies on the library
// having accepted the document; on any other text it stays within bounds and
// finds what it can.

// span is a range of bytes in a document.
type span struct{ start, end int }

// place is where one key of a document stands.
type place struct {
	key    span // the key with its dots, or the name within a table header
	last   int  // where the last part of the key begins
	value  span // empty for a table header
	inline bool // within an inline table or an array

	implied bool // a table that is named on the way to another key
}

// positions maps the dotted path of a key to its place. Elements of arrays are
// keys named by their index.
type positions map[string]place

// dotted joins the parts of a path in TOML's own notation.
func dotted(path ...string) string { return toml.Key(path).String() }

// maxDepth bounds how deep lists, tables and keys nest: the library recurses.
const maxDepth = 64

// newPositions scans a document. It reports false where the document nests
// deeper than maxDepth, and then has only what comes before.
func newPositions(data []byte) (positions, bool) {
	s := &scanner{data: data, places: positions{}, tables: map[string]int{}}
	if bom(data) {
		s.at = 3
	}
	s.document()
	return s.places, !s.deep
}

type scanner struct {
	data   []byte
	at     int
	deep   bool // gave up
	places positions
	tables map[string]int // how many elements an array of tables has so far
}

func (s *scanner) document() {
	var context []string
	for {
		s.skipBlank()
		switch {
		case s.at >= len(s.data):
			return
		case s.peek() == '[':
			context = s.header()
		default:
			before := s.at
			s.pair(context, false)
			if s.at == before { // not a document that the library accepts
				s.at++
			}
		}
	}
}

// header reads [a.b] or [[a.b]] and returns the path of the table that it
// opens.
func (s *scanner) header() []string {
	s.at++
	array := s.peek() == '['
	if array {
		s.at++
	}
	s.skipSpace()
	names, where := s.key()
	var path []string
	for i, name := range names {
		path = append(path, name)
		at := dotted(path...)
		n := s.tables[at]
		last := i == len(names)-1
		if array && last {
			s.note(path, where)
			s.tables[at]++
			path = append(path, strconv.Itoa(n))
		} else if n > 0 {
			path = append(path, strconv.Itoa(n-1))
		}
		where.implied = !last
		s.note(path, where)
	}
	s.skipTo("\n")
	return path
}

// pair reads a key and its value.
func (s *scanner) pair(context []string, inline bool) {
	names, where := s.key()
	where.inline = inline
	s.skipSpace()
	if s.peek() != '=' {
		return
	}
	s.at++
	s.skipSpace()
	path := append([]string(nil), context...)
	for i, name := range names {
		path = append(path, name)
		if i < len(names)-1 {
			implied := where
			implied.implied = true
			s.note(path, implied)
		}
	}
	where.value.start = s.at
	s.value(path)
	where.value.end = s.at
	s.places[dotted(path...)] = where
}

// note keeps the first place of a table, or the one of its own header.
func (s *scanner) note(path []string, where place) {
	at := dotted(path...)
	if known, found := s.places[at]; !found || known.implied && !where.implied {
		s.places[at] = where
	}
}

// key reads a dotted key.
func (s *scanner) key() (names []string, where place) {
	where.key.start = s.at
	for {
		where.last = s.at
		switch c := s.peek(); c {
		case '"', '\'':
			start := s.at
			s.text()
			names = append(names, unquote(s.data[start:s.at]))
		default:
			start := s.at
			for s.at < len(s.data) && !strings.ContainsRune(" \t\r\n.=]#\"'", rune(s.data[s.at])) {
				s.at++
			}
			names = append(names, string(s.data[start:s.at]))
		}
		where.key.end = s.at
		s.skipSpace()
		if s.peek() != '.' || s.tooDeep(names) {
			return names, where
		}
		s.at++
		s.skipSpace()
	}
}

// value reads the value of the key at path.
func (s *scanner) value(path []string) {
	if s.tooDeep(path) {
		return
	}
	switch s.peek() {
	case '"', '\'':
		s.text()
	case '[':
		s.array(path)
	case '{':
		s.inlineTable(path)
	default:
		start := s.at
		s.skipTo(",]}#\n")
		s.at = start + len(bytes.TrimRight(s.data[start:s.at], " \t\r"))
	}
}

// tooDeep ends the scan where the path is too long.
func (s *scanner) tooDeep(path []string) bool {
	if len(path) > maxDepth {
		s.deep, s.at = true, len(s.data)
	}
	return s.deep
}

func (s *scanner) array(path []string) {
	s.at++
	for n := 0; ; n++ {
		s.skipBlank()
		if s.at >= len(s.data) {
			return
		}
		if s.peek() == ']' {
			s.at++
			return
		}
		start := s.at
		element := append(append([]string(nil), path...), strconv.Itoa(n))
		s.value(element)
		s.places[dotted(element...)] = place{key: span{start, s.at}, last: start, value: span{start, s.at}, inline: true}
		s.skipBlank()
		if s.peek() == ',' {
			s.at++
		} else if s.peek() != ']' {
			return
		}
	}
}

func (s *scanner) inlineTable(path []string) {
	s.at++
	for {
		s.skipBlank()
		if s.at >= len(s.data) {
			return
		}
		if s.peek() == '}' {
			s.at++
			return
		}
		s.pair(path, true)
		s.skipBlank()
		if s.peek() == ',' {
			s.at++
		} else if s.peek() != '}' {
			return
		}
	}
}

// text skips a string in any of the four notations.
func (s *scanner) text() {
	quote := s.data[s.at]
	long := bytes.Repeat([]byte{quote}, 3)
	multi := bytes.HasPrefix(s.data[s.at:], long)
	end := long[:1]
	if multi {
		end = long
	}
	s.at += len(end)
	for s.at < len(s.data) {
		switch {
		case quote == '"' && s.data[s.at] == '\\':
			s.at = min(s.at+2, len(s.data))
		case bytes.HasPrefix(s.data[s.at:], end):
			s.at += len(end)
			for n := 0; multi && n < 2 && s.peek() == quote; n++ { // up to two quotes belong to the text
				s.at++
			}
			return
		default:
			s.at++
		}
	}
}

func (s *scanner) peek() byte {
	if s.at >= len(s.data) {
		return 0
	}
	return s.data[s.at]
}

func (s *scanner) skipSpace() {
	for s.peek() == ' ' || s.peek() == '\t' {
		s.at++
	}
}

// skipBlank skips white space, ends of lines and comments.
func (s *scanner) skipBlank() {
	for {
		switch s.peek() {
		case ' ', '\t', '\r', '\n':
			s.at++
		case '#':
			s.skipTo("\n")
		default:
			return
		}
	}
}

func (s *scanner) skipTo(stops string) {
	if i := bytes.IndexAny(s.data[s.at:], stops); i >= 0 {
		s.at += i
	} else {
		s.at = len(s.data)
	}
}

// unquote reads a quoted part of a key.
func unquote(quoted []byte) string {
	quote := quoted[0]
	text := bytes.TrimSuffix(quoted[1:], []byte{quote})
	if quote == '\'' {
		return string(text)
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		digits := 0
		switch text[i] {
		case 'b':
			b.WriteByte('\b')
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'f':
			b.WriteByte('\f')
		case 'r':
			b.WriteByte('\r')
		case 'e':
			b.WriteByte(0x1b)
		case 'x':
			digits = 2
		case 'u':
			digits = 4
		case 'U':
			digits = 8
		default:
			b.WriteByte(text[i])
		}
		if digits > 0 {
			end := min(i+1+digits, len(text))
			n, _ := strconv.ParseUint(string(text[i+1:end]), 16, 32)
			b.WriteRune(rune(n))
			i = end - 1
		}
	}
	return b.String()
}

// lineAt gives the line and the column, in characters, of an offset, and the
// range of that line without its end.
func lineAt(data []byte, offset int) (line, col int, text span) {
	offset = min(offset, len(data))
	text.start = bytes.LastIndexByte(data[:offset], '\n') + 1
	text.end = len(data)
	if i := bytes.IndexByte(data[offset:], '\n'); i >= 0 {
		text.end = offset + i
	}
	if text.end > offset && data[text.end-1] == '\r' {
		text.end--
	}
	if text.start == 0 && bom(data) {
		text.start = 3
		offset = max(offset, 3)
	}
	line = 1 + bytes.Count(data[:text.start], []byte{'\n'})
	return line, 1 + utf8.RuneCount(data[text.start:offset]), text
}

func bom(data []byte) bool { return bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) }
