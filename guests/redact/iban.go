package main

// iban finds international bank account numbers: the country's length, then
// the checksum, in letters of any size, in one piece or with a separator
// anywhere behind the check digits.
type iban struct{}

// ibanLengths are the lengths in the registry, by country.
var ibanLengths = map[string]int{
	"AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27,
	"BR": 29, "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28,
	"EE": 20, "EG": 29, "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23,
	"GL": 18, "GR": 27, "GT": 28, "HN": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26,
	"IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21,
	"LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MN": 20, "MR": 27, "MT": 31, "MU": 30, "NI": 28,
	"NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22,
	"RU": 33, "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "SO": 23, "ST": 25,
	"SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20, "YE": 30,
}

// maxIBAN is the longest form: 34 characters and a separator of three bytes
// between each.
const maxIBAN = 34 + 33*3

// minAccountDigits are the digits that every account number has. Without them
// one sentence in a hundred that begins like an IBAN would be one.
const minAccountDigits = 8

func (iban) find(text string) []span {
	var spans []span
	for at := range len(text) {
		if end, _ := ibanAt(text, at); end > 0 {
			spans = append(spans, span{start: at, end: end})
		}
	}
	return spans
}

// open is the begin of the earliest one that is not done.
func (iban) open(text string) int {
	for at := max(0, len(text)-maxIBAN); at < len(text); at++ {
		if _, open := ibanAt(text, at); open {
			return at
		}
	}
	return len(text)
}

// ibanAt returns the end of the IBAN that begins here, 0 when none does, and
// whether the text ends before that is known for sure.
func ibanAt(text string, start int) (end int, open bool) {
	if !isLetter(text[start]) || glued(text, start) || inUUID(text, start) {
		return 0, false
	}
	var chars [34]byte
	n, length, digits := 0, 2, 0
	for at := start; n < length; {
		if n >= 4 {
			at += separator(text, at)
		}
		if at == len(text) {
			return 0, true
		}
		b := text[at]
		switch {
		case n < 2 && isLetter(b), n >= 4 && isLetter(b):
			chars[n] = b &^ 0x20
		case n >= 2 && isDigit(b):
			chars[n] = b
			digits++
		default:
			return 0, false
		}
		n++
		at++
		if n == 2 {
			if length = ibanLengths[string(chars[:2])]; length == 0 {
				return 0, false
			}
		}
		end = at
	}
	if end < len(text) && isWord(text[end]) || digits < 2+minAccountDigits || !mod97(chars[:length]) {
		return 0, false
	}
	return end, end == len(text)
}

// mod97 checks the digits: with the first four characters at the end and each
// letter as a number from 10 to 35, the remainder is 1.
func mod97(chars []byte) bool {
	rest := 0
	for i := range chars {
		b := chars[(i+4)%len(chars)]
		if isDigit(b) {
			rest = (rest*10 + int(b-'0')) % 97
		} else {
			rest = (rest*100 + int(b-'A') + 10) % 97
		}
	}
	return rest == 1
}
