package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/guest/guesttest"
)

// redacted is a text after one hook with every rule on.
func redacted(t *testing.T, text string) string {
	t.Helper()
	h := &guesttest.Host{Leaves: []abi.Leaf{textLeaf("/0", text)}}
	v, ok := h.Call(hooks(), abi.AfterModel)
	require.True(t, ok)
	after := h.Texts()[0]
	require.Equal(t, after != text, v.Kind == abi.Amend, "amend when it changed, continue when it did not")
	return after
}

func textLeaf(pointer, text string) abi.Leaf {
	return abi.Leaf{Kind: abi.LeafText, Role: abi.RoleModel, Pointer: pointer, Text: text}
}

type row struct{ text, want string }

func checkRows(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		got := redacted(t, r.text)
		assert.Equal(t, r.want, got, "of %q", r.text)
		assert.Equal(t, got, redacted(t, got), "a second pass changes nothing")
	}
}

// unchanged makes rows of texts that stay.
func unchanged(texts ...string) []row {
	var rows []row
	for _, text := range texts {
		rows = append(rows, row{text, text})
	}
	return rows
}

func TestCase002OrderNumbersAndTimesAreNotCards(t *testing.T) {
	checkRows(t, unchanged(
		"Order 7300-4155-0019-2840 has shipped.", // fails Luhn
		"Order 9100200030004002 has shipped.",    // no issuer
		"event at 1790000000005 done",            // a time
	))
	checkRows(t, []row{{"Card 4111-1111-1111-1111, order 7300-4155-0019-2840.", "Card [CARD], order 7300-4155-0019-2840."}})

	result := &guesttest.Host{Leaves: []abi.Leaf{
		{Kind: abi.LeafResult, Pointer: "/created_ms", Text: "1790000000013", Number: true},
		{Kind: abi.LeafResult, Pointer: "/order", Text: "9100200030004010"},
	}}
	v, ok := result.Call(hooks(), abi.AfterTool)
	require.True(t, ok)
	assert.Equal(t, abi.Verdict{Kind: abi.Continue}, v)
}

func TestCase004OneSpanOneMaskAndTheSecondPassChangesNothing(t *testing.T) {
	checkRows(t, []row{
		{"card 4111111111111111", "card [CARD]"},
		{"card 4012 8888 8888 1881", "card [CARD]"},
		{"see 4111 1111 1111 1111.com now", "see [CARD].com now"},
		{"call +1 415 555 0132 or pay 5555555555554444", "call +1 415 555 0132 or pay [CARD]"},
	})
	checkRows(t, unchanged("[CARD] <EMAIL> **** **** **** 1111 [REDACTED]"))
}

func TestCase005LengthsIssuersAndPrintedGroups(t *testing.T) {
	for _, number := range []string{
		"4222222222222",                      // Visa, 13
		"30569309025904", "3056 930902 5904", // Diners Club, 14
		"378282246310005", "3782 822463 10005", // American Express, 15
		"3530111333300000",                               // JCB
		"2223003122003222",                               // Mastercard
		"6011111111111117",                               // Discover
		"6205500000000000004", "6205 5000 0000 0000 004", // UnionPay, 19
		"6304000000000000", // Maestro
		"4111\u00a01111\u00a01111\u00a01111", "4111\u20111111\u20111111\u20111111",
	} {
		checkRows(t, []row{{"pay with " + number + " please", "pay with [CARD] please"}})
	}
	checkRows(t, unchanged("pay with 4222222222223 please", "pay with 5555 5555 5555 4445 please"))
}

func TestCase008IBANsBesideWordsInSmallLettersAndWithWrongDigits(t *testing.T) {
	checkRows(t, []row{
		{"Pay GB82 WEST 1234 5698 7654 32 PAID today", "Pay [IBAN] PAID today"},
		{"iban gb82west12345698765432.", "iban [IBAN]."},
		{"DE89-3704-0044-0532-0130-00 and NO93 8601 1117 947", "[IBAN] and [IBAN]"},
		{"LC55HEMM000100010012001200023015", "[IBAN]"},
	})
	checkRows(t, unchanged(
		"GB82 WEST 1234 5698 7654 31",
		"GB12 WEST 1234 5698 7654 32 AND more",
		"GB82WEST1234569876543",
	))
}

func TestCase010ThoughtsArgumentsAndACardOverTwoParts(t *testing.T) {
	thought := textLeaf("/0", "User gave 4111111111111111, so...")
	thought.Kind = abi.LeafThought
	argument := abi.Leaf{Kind: abi.LeafArgument, Pointer: "/2", Text: "jo@example.com"}
	goesOn, empty := textLeaf("/4", "5555 4444 noted"), textLeaf("/5", "")
	goesOn.Continues, empty.Continues = true, true
	h := &guesttest.Host{Leaves: []abi.Leaf{
		thought, textLeaf("/1", "The card ends in 1111."), argument, textLeaf("/3", "Number: 5555 5555 "), goesOn, empty,
	}}

	v, ok := h.Call(hooks(), abi.OnEvent)
	require.True(t, ok)
	require.Equal(t, abi.Amend, v.Kind)
	assert.Equal(t, []string{
		"User gave [CARD], so...", "The card ends in 1111.", "[EMAIL]", "Number: [CARD]", " noted", "",
	}, h.Texts())
}

func TestCase012TimesIdsVersionsAndUUIDsStay(t *testing.T) {
	checkRows(t, unchanged(
		"uuid 7f0c1d2e-4b3a-4c15-8046-129790155501",
		"uuid 7f0c1d2e-4b3a-4c15-4046-129790155501 4c15-4026-000000000000", // the right digits in the wrong place
		"Current time: Mon 14 18:30:05 CET 2026",
		"2026-09-14 18:30 and 2026-09-14T18:30:05Z",
		"dump 20260914183005, host batch-us-20260921-14",
		"created_at 1760400300, product 3051962847",
		"v10.12.3456.7890 at 192.168.100.200",
	))
}

func TestACardIsNeitherAFractionNorAPartOfAWordNorOfALongerNumber(t *testing.T) {
	checkRows(t, unchanged(
		"0.4111111111111111", "at 12.4111111111111111,7", "id_4111111111111111", "a4111111111111111f", "41111111111111110000",
		"embedding 4111111111111111e5",
	))
	checkRows(t, []row{
		{"4111 1111 1111 1111 05 28", "[CARD] 05 28"},
		{"no. 12345 4111 1111 1111 1111", "no. 12345 [CARD]"},
		{"卡号4111111111111111。", "卡号[CARD]。"},
		{"4111111111111111", "[CARD]"},
		{"(4111111111111111)", "([CARD])"},
	})
}

func TestAnAddressEndsWithItsDomain(t *testing.T) {
	checkRows(t, []row{
		{"write to jo.d+x@mail.example.co.uk.", "write to [EMAIL]."},
		{"<jo@example.com>, JO@EXAMPLE.COM", "<[EMAIL]>, [EMAIL]"},
		{"a@b@c.com", "a@[EMAIL]"},
		{"a@b.com@c.com", "[EMAIL]"},
		{"a@b.com4111111111111111", "[EMAIL]"},
	})
	checkRows(t, unchanged("jo@host", "@example.com", "jo@192.168.1.1", "a @ b.com", strings.Repeat("a", 65)+"@b.com"))
}

func TestASpanThatTwoRulesFindGetsOneMask(t *testing.T) {
	checkRows(t, []row{{"4111111111111111@example.com", "[EMAIL]"}})
}

func TestWhatIsReadOnlyIsLeftAlone(t *testing.T) {
	leaf := abi.Leaf{Kind: abi.LeafArgument, Pointer: "/0", Text: "jo@example.com", ReadOnly: true}
	h := &guesttest.Host{Leaves: []abi.Leaf{leaf}}
	v, ok := h.Call(hooks(), abi.AfterModel)
	require.True(t, ok)
	assert.Equal(t, abi.Continue, v.Kind)
}

func TestAToolIsCalledWithTheRealValue(t *testing.T) {
	assert.Nil(t, hooks().BeforeTool)
}

func TestAnEditThatIsNotTakenFailsTheStage(t *testing.T) {
	h := &guesttest.Host{
		Leaves: []abi.Leaf{textLeaf("/0", "jo@example.com")},
		Codes:  map[string]abi.Code{"hookhost.leaf_splice": abi.OverLimit},
	}
	v, ok := h.Call(hooks(), abi.AfterModel)
	require.True(t, ok)
	assert.Equal(t, abi.Fail, v.Kind)
}

func TestConfiguration(t *testing.T) {
	const text = "4111 1111 1111 1111, jo@example.com, GB82 WEST 1234 5698 7654 32"
	after := func(config map[string]string) string {
		h := &guesttest.Host{Config: config, Leaves: []abi.Leaf{textLeaf("/0", text)}}
		hooks := hooks()
		require.True(t, h.Configure(hooks), "rejected: %v", h.Rejected)
		_, ok := h.Call(hooks, abi.AfterModel)
		require.True(t, ok)
		return h.Texts()[0]
	}
	assert.Equal(t, "[CARD], [EMAIL], [IBAN]", after(nil))
	assert.Equal(t, "[CARD], jo@example.com, [IBAN]", after(map[string]string{"entities.0": "iban", "entities.1": "card"}))
	assert.Equal(t, "****1111, [EMAIL], ****5432",
		after(map[string]string{"strategy": "mask", "strategies.email": "redact"}))
}

func TestABadConfigurationSaysWhatThereIs(t *testing.T) {
	h := &guesttest.Host{Config: map[string]string{
		"entities.0": "crad", "strategies.iban": "hide", "strategies.phone": "mask", "entity": "card",
	}}
	require.False(t, h.Configure(hooks()))
	assert.ElementsMatch(t, []abi.Note{
		{Key: "entities.0", Value: `no entity "crad": there are card, email, iban`},
		{Key: "strategies.iban", Value: `no strategy "hide": there are mask, redact`},
		{Key: "strategies.phone", Value: `no entity "phone": there are card, email, iban`},
		{Key: "entity", Value: `no key "entity": there are entities, strategies, strategy`},
	}, h.Rejected)

	for _, noList := range []string{"card", "[]"} {
		h := &guesttest.Host{Config: map[string]string{"entities": noList}}
		require.False(t, h.Configure(hooks()))
		assert.Equal(t, []abi.Note{
			{Key: "entities", Value: "a list of entities is wanted: there are card, email, iban"},
		}, h.Rejected)
	}
}
