package manifest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Rate is how fast a bucket fills: Units in every Per, in lowest terms. Per is
// whole milliseconds, and Units x Per in milliseconds is at most 2^53, which
// keeps the arithmetic of a limit exact in every store.
type Rate struct {
	Units int64
	Per   time.Duration
}

var rateUnits = []struct {
	name string
	per  time.Duration
}{
	{"ms", time.Millisecond},
	{"s", time.Second},
	{"min", time.Minute},
	{"h", time.Hour},
	{"day", 24 * time.Hour},
}

var errRate = errors.New(`want N/s, N/ms, N/min, N/h or N/day with N from 1, such as "20/min", or a multiple of the unit, such as "20/30s"`)

// ParseRate reads a rate: "20/min", "20/30s".
func ParseRate(s string) (Rate, error) {
	units, period, found := strings.Cut(s, "/")
	if !found {
		return Rate{}, fmt.Errorf("%q is no rate: %w", s, errRate)
	}
	i := len(period) - len(strings.TrimLeft(period, "0123456789"))
	multiple := "1"
	if i > 0 {
		multiple = period[:i]
	}
	n, err1 := positive(units)
	times, err2 := positive(multiple)
	for _, u := range rateUnits {
		if u.name != period[i:] {
			continue
		}
		if err := errors.Join(err1, err2); err != nil {
			return Rate{}, fmt.Errorf("%q is no rate: %w", s, errRate)
		}
		unit := u.per.Milliseconds()
		if times > maxExact/unit {
			return Rate{}, fmt.Errorf("%q is out of range: the period is too long", s)
		}
		ms := times * unit
		d := gcd(n, ms)
		n, ms = n/d, ms/d
		if n > maxExact/ms || ms > maxPeriod.Milliseconds() {
			return Rate{}, fmt.Errorf("%q is out of range: units times milliseconds of the period must be at most 2^53 in lowest terms", s)
		}
		return Rate{Units: n, Per: time.Duration(ms) * time.Millisecond}, nil
	}
	return Rate{}, fmt.Errorf("%q is no rate: %w", s, errRate)
}

const (
	maxExact  = 1 << 53 // up to here a float64, and so a Lua number, counts exactly
	maxPeriod = time.Duration(1<<63 - 1)
)

// positive reads digits alone: no sign, no exponent, no nan or inf.
func positive(s string) (int64, error) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, errRate
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n == 0 {
		return 0, errRate
	}
	return n, nil
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// String writes the rate with the largest unit that its period is made of.
func (r Rate) String() string {
	for i := len(rateUnits) - 1; i >= 0; i-- {
		u := rateUnits[i]
		if n := r.Per / u.per; r.Per%u.per == 0 && n > 0 {
			if n == 1 {
				return fmt.Sprintf("%d/%s", r.Units, u.name)
			}
			return fmt.Sprintf("%d/%d%s", r.Units, n, u.name)
		}
	}
	return "0/s"
}

func asRate(v any) (Rate, error) {
	s, is := v.(string)
	if !is {
		return Rate{}, fmt.Errorf("not %s: %w", typeName(v), errRate)
	}
	return ParseRate(s)
}
