package abi

// ClaimSize is the length of the record that claim writes.
const ClaimSize = 16

// The offsets in a claim record.
const (
	ClaimState = 0 // u32, a Claim
	ClaimToken = 8 // i64, for renew and end; 0 unless Claimed
)

// Claimed and the others say whose a claim is.
const (
	Claimed        = 1 // this run's, until the claim's time is over
	ClaimElsewhere = 2 // another run's
	ClaimDone      = 3 // completed: result reads what came of it
)
