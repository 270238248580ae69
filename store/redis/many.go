package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookhost/hookhost/store"
)

// many reads what many have. One who has a key of another program in the way
// takes nothing from the others: what is skipped is counted, and said at the end.
type many struct {
	store   *Store
	skipped []skipped
}

type skipped struct {
	what   string
	n      int
	reason error // of the first
}

// read makes calls, which fit into one pipeline, and takes what each replied.
func (m *many) read(ctx context.Context, what string, calls []*call, take func(i int, r *reply)) error {
	failed := m.store.do(ctx, calls...)
	for i, c := range calls {
		err := c.err
		switch {
		case err != nil:
			err = unavailable(c.script.name, err)
		case failed != nil && c.reply == nil:
			return failed // none was sent
		default:
			r, _ := c.result()
			take(i, r)
			err = r.end()
		}
		// A permission is missing for all of them.
		if err != nil && (!errors.Is(err, store.ErrOnlyThis) || c.err != nil && begins(c.err, forbidden)) {
			return err
		}
		if err != nil {
			m.skip(what, err)
		}
	}
	return nil
}

func (m *many) skip(what string, reason error) {
	i := slices.IndexFunc(m.skipped, func(s skipped) bool { return s.what == what })
	if i < 0 {
		i, m.skipped = len(m.skipped), append(m.skipped, skipped{what: what, reason: reason})
	}
	m.skipped[i].n++
}

// end says what was skipped. Where there was only one to read, that failed.
func (m *many) end(owner store.Owner) error {
	switch {
	case len(m.skipped) == 0:
		return nil
	case owner.Kind == store.OwnerUser:
		return m.skipped[0].reason
	}
	var all []string
	for _, s := range m.skipped {
		all = append(all, fmt.Sprintf("%d %s skipped: %v", s.n, s.what, s.reason))
	}
	return fmt.Errorf("redis: %w: %s", store.ErrIncomplete, strings.Join(all, "; "))
}
