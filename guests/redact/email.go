package main

// email finds addresses: up to 64 of a-z 0-9 . _ % + - before an @, and a
// domain of up to 253 with a point and a letter pair behind it.
type email struct{}

const (
	maxLocal  = 64
	maxDomain = 253
)

func (email) find(text string) []span {
	var spans []span
	for at := range len(text) {
		if text[at] != '@' {
			continue
		}
		start, end := localStart(text, at), domainEnd(text, at+1)
		if start < at && at < end {
			spans = append(spans, span{start: start, end: end})
		}
	}
	return spans
}

// localStart returns where the part before the @ begins; at when it is empty
// or too long.
func localStart(text string, at int) int {
	start := at
	for start > 0 && isLocal(text[start-1]) {
		start--
		if at-start > maxLocal {
			return at
		}
	}
	for start < at && (text[start] == '.' || text[start] == '-') {
		start++
	}
	return start
}

// domainEnd returns where the domain that begins here ends; 0 when it is none.
func domainEnd(text string, start int) int {
	end := start
	for end < len(text) && isDomain(text[end]) {
		end++
		if end-start > maxDomain {
			return 0
		}
	}
	for end > start && !isAlnum(text[end-1]) {
		end--
	}
	for i := start + 1; i+2 < end; i++ {
		if text[i] == '.' && isLetter(text[i+1]) && isLetter(text[i+2]) && text[i-1] != '.' {
			return end
		}
	}
	return 0
}

// open is the begin of the word at the end, or of the address that it is the
// domain of.
func (email) open(text string) int {
	domain := len(text)
	for domain > 0 && isDomain(text[domain-1]) && len(text)-domain <= maxDomain {
		domain--
	}
	if domain > 0 && text[domain-1] == '@' {
		return localStart(text, domain-1)
	}
	return localStart(text, len(text))
}

func isLocal(b byte) bool {
	return isAlnum(b) || b == '.' || b == '_' || b == '%' || b == '+' || b == '-'
}

func isDomain(b byte) bool { return isAlnum(b) || b == '.' || b == '-' }
