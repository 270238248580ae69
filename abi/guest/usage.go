package guest

// RecordUsage keeps the record of this model call, with the host's numbers.
// Doing it again changes nothing.
func (c *Call) RecordUsage() error { return check(c.border.UsageRecord()) }

// AddUsage adds to a counter of the user.
func (c *Call) AddUsage(counter string, delta int64) error {
	return check(c.border.UsageAdd(counter, delta))
}

// SumUsage reads a counter of the user. One that was never added to is 0.
func (c *Call) SumUsage(counter string) (int64, error) {
	return readInt64(func(out []byte) int32 { return c.border.UsageSum(counter, out) })
}
