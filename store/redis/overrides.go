package redis

import (
	"context"
	"time"

	"github.com/hookhost/hookhost/store"
)

// SetOverride implements store.Overrides. Overrides have no expiry: they end
// when they are taken back.
func (s *Store) SetOverride(ctx context.Context, o store.Override) error {
	if err := o.Validate(); err != nil {
		return err
	}
	once := nonce()
	_, err := s.ask(ctx, "override_set",
		[]string{s.overrides("users"), s.overrides("log"), s.overrides("changes"), s.overrides("once:" + once)},
		joinFields(o.App, o.User), encodeOverride(o), once, keptChanges, remembered)
	return err
}

// encodeOverride writes all but whose it is. One that is taken back says
// nothing else.
func encodeOverride(o store.Override) string {
	if o.Plan == "" {
		o = store.Override{}
	}
	until := ""
	if !o.Until.IsZero() {
		until = o.Until.UTC().Format(time.RFC3339Nano)
	}
	return joinFields(o.Plan, o.Author, o.Note, until)
}

// keptChanges is how many changes a reader can be behind and still get only
// what changed.
const keptChanges = 1024

// Overrides implements store.Overrides. A revision is the newest change: one
// that the server does not know, because it was flushed or a failover lost the
// change, makes the reader read all.
func (s *Store) Overrides(ctx context.Context, since string) (store.OverrideChanges, error) {
	reply, err := s.ask(ctx, "override_read", []string{s.overrides("users"), s.overrides("log"), s.overrides("changes")}, since)
	if err != nil {
		return store.OverrideChanges{}, err
	}
	changes := store.OverrideChanges{Revision: reply.text(), Whole: reply.yes()}
	for reply.more() {
		if o := reply.override(); reply.err == nil && (o.Plan != "" || !changes.Whole) {
			changes.Changed = append(changes.Changed, o)
		}
	}
	if err := reply.end(); err != nil {
		return store.OverrideChanges{}, err
	}
	return changes, nil
}

// override reads one: whose it is, then what it says.
func (r *reply) override() store.Override {
	user, said := r.fields(2), r.fields(4)
	o := store.Override{App: user[0], User: user[1], Plan: said[0], Author: said[1], Note: said[2]}
	if said[3] != "" {
		until, err := time.Parse(time.RFC3339Nano, said[3])
		if err != nil {
			r.fail("override: until: no time")
		}
		o.Until = until
	}
	return o
}
