package main

// card finds payment card numbers: 13 to 19 digits of an issuer's range and
// length that pass Luhn, in one piece or in groups of at least three digits,
// the first of at least four. Digits that are glued to a letter, belong to a
// UUID or are the fraction of a number are none.
type card struct{}

const (
	minCard = 13
	maxCard = 19
)

// issuer is a range of first four digits and the lengths in use, one bit for
// each.
type issuer struct {
	low, high int
	lengths   uint32
}

const (
	l13 = 1 << 13
	l14 = 1 << 14
	l15 = 1 << 15
	l16 = 1 << 16
	l19 = 1 << 19

	l16to19 = l16 | 1<<17 | 1<<18 | l19
	l13to19 = l13 | l14 | l15 | l16to19
)

var issuers = [...]issuer{
	{2221, 2720, l16},             // Mastercard
	{3000, 3059, l14},             // Diners Club
	{3095, 3095, l14},             // Diners Club
	{3400, 3499, l15},             // American Express
	{3528, 3589, l16to19},         // JCB
	{3600, 3699, l14},             // Diners Club
	{3700, 3799, l15},             // American Express
	{3800, 3999, l14},             // Diners Club
	{4000, 4999, l13 | l16 | l19}, // Visa
	{5018, 5018, l13to19},         // Maestro
	{5020, 5020, l13to19},         // Maestro
	{5038, 5038, l13to19},         // Maestro
	{5100, 5599, l16},             // Mastercard
	{5893, 5893, l13to19},         // Maestro
	{6011, 6011, l16to19},         // Discover
	{6200, 6299, l16to19},         // UnionPay
	{6304, 6304, l13to19},         // Maestro
	{6440, 6599, l16to19},         // Discover
	{6759, 6759, l13to19},         // Maestro
	{6761, 6763, l13to19},         // Maestro
}

func (card) find(text string) []span {
	var spans []span
	for at := 0; at < len(text); at++ {
		if !isDigit(text[at]) {
			continue
		}
		if end := cardAt(text, at); end > 0 {
			spans = append(spans, span{start: at, end: end})
		}
		for at < len(text) && isDigit(text[at]) {
			at++
		}
	}
	return spans
}

// cardAt returns the end of the longest card that begins with the group of
// digits here, 0 when none does.
func cardAt(text string, start int) int {
	if glued(text, start) || isFraction(text, start) || inUUID(text, start) {
		return 0
	}
	var digits [maxCard]byte
	n, longest := 0, 0
	for at := start; ; {
		group := at
		for at < len(text) && isDigit(text[at]) {
			if n == maxCard {
				return longest
			}
			digits[n] = text[at] - '0'
			n++
			at++
		}
		if (at == len(text) || !isWord(text[at])) && isCard(digits[:n]) {
			longest = at
		}
		gap := separator(text, at)
		if !longGroup(at-group, group == start) || gap == 0 || at+gap >= len(text) || !isDigit(text[at+gap]) {
			return longest
		}
		at += gap
	}
}

// longGroup reports whether a group can have another one behind it.
func longGroup(length int, first bool) bool { return length >= 4 || length == 3 && !first }

// open is the begin of the earliest group from which on there are no more
// digits than a card has.
func (card) open(text string) int {
	open, at, n := len(text), len(text), 0
	at -= separatorBefore(text, at)
	for at > 0 && isDigit(text[at-1]) {
		for at > 0 && isDigit(text[at-1]) {
			at--
			n++
			if n > maxCard {
				return open
			}
		}
		open = at
		at -= separatorBefore(text, at)
	}
	return open
}

// isCard checks length, issuer and Luhn's sum.
func isCard(digits []byte) bool {
	if len(digits) < minCard {
		return false
	}
	first := int(digits[0])*1000 + int(digits[1])*100 + int(digits[2])*10 + int(digits[3])
	for _, i := range issuers {
		if i.low <= first && first <= i.high {
			return i.lengths>>len(digits)&1 == 1 && luhn(digits)
		}
	}
	return false
}

// luhn doubles every second digit from the right but one; the sum of all
// digits then is a multiple of ten.
func luhn(digits []byte) bool {
	sum := 0
	for i, d := range digits {
		n := int(d)
		if (len(digits)-i)%2 == 0 {
			n *= 2
			if n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return sum%10 == 0
}

// glued reports whether what begins here goes on with a word, or with what a
// mask left.
func glued(text string, at int) bool {
	return at > 0 && (isWord(text[at-1]) || text[at-1] == '*')
}

func isWord(b byte) bool { return isAlnum(b) || b == '_' }

// isFraction reports whether the digits here stand behind a point and up to
// four digits, as in 12.4111111111111111. A mask may have taken these.
func isFraction(text string, at int) bool {
	if at < 2 || text[at-1] != '.' {
		return false
	}
	if text[at-2] == ']' {
		return true
	}
	n := 0
	for i := at - 2; i >= 0 && isDigit(text[i]) && n <= 4; i-- {
		n++
	}
	return 0 < n && n <= 4
}
