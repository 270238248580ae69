package work

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestVerdict(t *testing.T) {
	assert.Len(t, clean, 200)
	assert.Len(t, dirty, 200)
	assert.Equal(t, Allow, Verdict(clean))
	assert.Equal(t, Deny, Verdict(dirty))
}

func TestJSON(t *testing.T) {
	assert.Equal(t, "1 paid, 2573 cents", JSON(document(2)), "of the second order: 2 * 1037 and 499")
	assert.Equal(t, "0 paid, 0 cents", JSON(document(0)))
	assert.Equal(t, "malformed", JSON("{"))
}

func TestRegexp(t *testing.T) {
	assert.Equal(t, "3 found: BCD-12345678,AB-1234,XYZ-00000", Regexp("ABCD-123456789 AB-1234, A-1234 AB-123 WXYZ-00000"))
	assert.Equal(t, "0 found: ", Regexp(""))
}

func TestMask(t *testing.T) {
	for text, want := range map[string]string{
		"4111 1111 1111 1111 and 4111-1111-1111-1112": "[card] and 4111-1111-1111-1112",
		"no. 378282246310005.":                        "no. [card].",
		"12 4111111111111111":                         "12 4111111111111111",
		"4111  1111 1111 1111":                        "4111  1111 1111 1111",
		"":                                            "",
	} {
		assert.Equal(t, want, Mask(text), text)
	}
}

// What is measured has work in it.
func TestInputs(t *testing.T) {
	for _, task := range Tasks {
		got := task.Do(task.Input)
		assert.NotContains(t, got, "malformed", task.Name)
		assert.NotContains(t, got, "0 found", task.Name)
	}
	assert.Contains(t, Mask(statement(4096)), Card)
	assert.Len(t, statement(4096), 4096)
	assert.InDelta(t, 4096, len(document(20)), 400)
}
