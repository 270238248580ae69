package redis

import (
	"fmt"
	"strconv"
	"strings"
)

// What holds several strings of any bytes is written as netstrings without the
// comma: 4:shop3:ann.

func joinFields(fields ...string) string {
	var b []byte
	for _, f := range fields {
		b = strconv.AppendInt(b, int64(len(f)), 10)
		b = append(b, ':')
		b = append(b, f...)
	}
	return string(b)
}

// splitFields is the inverse for a known number of fields.
func splitFields(joined string, n int) ([]string, error) {
	fields := make([]string, 0, n)
	for rest := joined; rest != ""; {
		length, after, found := strings.Cut(rest, ":")
		size, err := strconv.ParseUint(length, 10, 31)
		if !found || err != nil || int(size) > len(after) {
			return nil, fmt.Errorf("field[%d] of %d: its length is not that of what follows", len(fields), n)
		}
		fields, rest = append(fields, after[:size]), after[size:]
	}
	if len(fields) != n {
		return nil, fmt.Errorf("%d fields where %d were expected", len(fields), n)
	}
	return fields, nil
}
