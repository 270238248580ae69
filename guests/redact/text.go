package main

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

func isAlnum(b byte) bool { return isDigit(b) || isLetter(b) }

func isHex(b byte) bool { return isDigit(b) || 'a' <= b|0x20 && b|0x20 <= 'f' }

// separator returns the length of a separator as people write it between
// groups of digits: a space or a hyphen, breaking or not, or a dash.
func separator(text string, at int) int {
	if at >= len(text) {
		return 0
	}
	switch text[at] {
	case ' ', '-':
		return 1
	case 0xc2, 0xe2:
		for _, s := range []string{"\u00a0", "\u202f", "\u2010", "\u2011", "\u2012", "\u2013"} {
			if len(text)-at >= len(s) && text[at:at+len(s)] == s {
				return len(s)
			}
		}
	}
	return 0
}

// separatorBefore returns the length of the separator that ends here.
func separatorBefore(text string, at int) int {
	for n := 1; n <= 3 && n <= at; n++ {
		if separator(text, at-n) == n {
			return n
		}
	}
	return 0
}

// A group of a UUID begins at one of these.
var uuidGroups = [...]int{0, 9, 14, 19, 24}

const uuidLen = 36

// inUUID reports whether a group of a UUID begins here.
func inUUID(text string, at int) bool {
	for _, group := range uuidGroups {
		if isUUID(text, at-group) {
			return true
		}
	}
	return false
}

func isUUID(text string, at int) bool {
	return at >= 0 && at+uuidLen <= len(text) && likeUUID(text[at:at+uuidLen])
}

// likeUUID reports whether a text of up to uuidLen bytes begins as a UUID does.
func likeUUID(text string) bool {
	for i := range len(text) {
		switch b := text[i]; i {
		case 8, 13, 18, 23:
			if b != '-' {
				return false
			}
		default:
			if !isHex(b) {
				return false
			}
		}
	}
	return true
}

// openUUID returns where the end of the text begins that may become a UUID:
// whether there is a card in it shows only when that is known.
func openUUID(text string) int {
	for at := max(0, len(text)-uuidLen+1); at < len(text); at++ {
		if likeUUID(text[at:]) {
			return at
		}
	}
	return len(text)
}
