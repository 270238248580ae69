package chaintest

import "strings"

// diff lists the lines of want and got, with a minus before what is missing
// and a plus before what is too much.
func diff(want, got []string) string {
	common := longestCommon(want, got)
	var b strings.Builder
	line := func(mark, text string) { b.WriteString("    " + mark + " " + text + "\n") }
	i, j := 0, 0
	for i < len(want) || j < len(got) {
		switch {
		case i < len(want) && j < len(got) && want[i] == got[j]:
			line(" ", want[i])
			i, j = i+1, j+1
		case j == len(got) || i < len(want) && common[i+1][j] >= common[i][j+1]:
			line("-", want[i])
			i++
		default:
			line("+", got[j])
			j++
		}
	}
	return b.String()
}

// longestCommon tells for each pair of tails how many lines they have in
// common, in order.
func longestCommon(a, b []string) [][]int {
	n := make([][]int, len(a)+1)
	for i := range n {
		n[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			n[i][j] = max(n[i+1][j], n[i][j+1])
			if a[i] == b[j] {
				n[i][j] = n[i+1][j+1] + 1
			}
		}
	}
	return n
}
