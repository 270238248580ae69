package redis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookhost/hookhost/store"
)

// What is kept of each user; beyond it the oldest goes first.
const (
	MaxRecords  = 4096                // usage records
	RecordLife  = 31 * 24 * time.Hour // of all of them, after the last
	CounterLife = 31 * 24 * time.Hour // of a counter that nothing is added to
)

// Record implements store.Usage. The index of active users is written first,
// in the same pipeline: without its record it costs a look and no more.
func (s *Store) Record(ctx context.Context, r store.Record) (fresh bool, err error) {
	if err := r.Validate(); err != nil {
		return false, err
	}
	minute, turns := r.Time.UTC().Truncate(time.Minute).Unix()/60, 0
	if r.Turn {
		turns = 1
	}
	user := s.owned(store.Owner{Kind: store.OwnerUser, App: r.App, User: r.User})
	index := s.call("active", []string{s.shard(shardOf(r.App, r.User))}, joinFields(r.App, r.User), activeLife.Milliseconds())
	record := s.call("record", []string{user.records(), user.recordOrder(), user.activity()},
		r.ID, nonce(), encodeRecord(r), MaxRecords, RecordLife.Milliseconds(),
		minute, dayOf(time.Unix(minute*60, 0)), r.Plan, turns, r.Tokens.Spent(), store.ActivityKept.Milliseconds(), activityLife.Milliseconds())
	if err := s.do(ctx, index, record); err != nil {
		return false, err
	}
	reply, err := record.result()
	if err != nil {
		return false, err
	}
	fresh = reply.yes()
	return fresh, reply.end()
}

// recordBatch is how many users' records are read at once: they can be many.
const recordBatch = 16

// Records implements store.Usage. The owner's shadow is of no account: a
// record is of a model call, which is real whoever watched it. Records of
// several users are in the order of the server's clock.
func (s *Store) Records(ctx context.Context, owner store.Owner) ([]store.Record, error) {
	if err := owner.Validate(); err != nil {
		return nil, err
	}
	m := many{store: s}
	users, err := m.users(ctx, owner, time.Time{})
	if err != nil {
		return nil, err
	}
	var all []timed
	read := 0
	for batch := range slices.Chunk(users, recordBatch) {
		store.Progress(ctx, read, len(users))
		calls := make([]*call, len(batch))
		for i, u := range batch {
			keys := s.owned(u)
			calls[i] = s.call("records", []string{keys.records(), keys.recordOrder()})
		}
		err := m.read(ctx, "users' records", calls, func(i int, r *reply) {
			var own []timed
			for r.more() {
				own = append(own, r.record(batch[i]))
			}
			if r.err == nil {
				all = append(all, own...)
			}
		})
		if err != nil {
			return nil, err
		}
		read += len(batch)
	}
	if owner.Kind != store.OwnerUser {
		slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(a.at, b.at) })
	}
	var records []store.Record
	for _, r := range all {
		records = append(records, r.Record)
	}
	return records, m.end(owner)
}

// timed is a record and when the server got it.
type timed struct {
	store.Record
	at int64 // µs
}

// record reads one of a user: the call that wrote it, the time, what it is.
func (r *reply) record(user store.Owner) timed {
	text := r.text()
	if r.err != nil {
		return timed{}
	}
	parts := strings.SplitN(text, " ", 3)
	if len(parts) != 3 {
		r.fail("no record")
		return timed{}
	}
	at, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		r.fail("record without a time")
		return timed{}
	}
	record, err := decodeRecord(parts[2])
	if err != nil {
		r.fail("record: %v", err)
	}
	record.App, record.User = user.App, user.User
	return timed{record, at}
}

// encodeRecord writes all but the app and the user, whose key it is under.
func encodeRecord(r store.Record) string {
	fields := []string{
		r.ID, r.Run, r.Time.UTC().Format(time.RFC3339Nano), r.Session, r.Agent, r.Model, r.Plan, r.IdempotencyKey, r.Outcome,
		strconv.FormatBool(r.Turn), strconv.FormatInt(int64(r.Elapsed), 10), strconv.FormatInt(int64(r.FirstChunk), 10),
	}
	for _, n := range counts(&r.Tokens) {
		if *n == nil {
			fields = append(fields, "")
		} else {
			fields = append(fields, strconv.FormatInt(**n, 10))
		}
	}
	return joinFields(fields...)
}

func counts(t *store.Tokens) [6]**int64 {
	return [6]**int64{&t.Prompt, &t.Candidates, &t.Cached, &t.Thoughts, &t.ToolUse, &t.Total}
}

func decodeRecord(encoded string) (r store.Record, err error) {
	f, err := splitFields(encoded, 12+6)
	if err != nil {
		return r, err
	}
	r = store.Record{ID: f[0], Run: f[1], Session: f[3], Agent: f[4], Model: f[5], Plan: f[6], IdempotencyKey: f[7], Outcome: f[8]}
	number := func(field int) (n int64) {
		if err == nil {
			if n, err = strconv.ParseInt(f[field], 10, 64); err != nil {
				err = fmt.Errorf("field[%d]: no integer", field)
			}
		}
		return n
	}
	if r.Time, err = time.Parse(time.RFC3339Nano, f[2]); err != nil {
		return store.Record{}, fmt.Errorf("field[2]: no time")
	}
	if r.Turn, err = strconv.ParseBool(f[9]); err != nil {
		return store.Record{}, fmt.Errorf("field[9]: neither true nor false")
	}
	r.Elapsed, r.FirstChunk = time.Duration(number(10)), time.Duration(number(11))
	for i, n := range counts(&r.Tokens) {
		if f[12+i] != "" {
			count := number(12 + i)
			*n = &count
		}
	}
	if err != nil {
		return store.Record{}, err
	}
	return r, nil
}

// AddCounter implements store.Usage.
func (s *Store) AddCounter(ctx context.Context, owner store.Owner, name, id string, delta int64) (int64, error) {
	if err := store.CheckAddition(owner, name, id, delta); err != nil {
		return 0, err
	}
	keys := s.owned(owner)
	reply, err := s.ask(ctx, "counter_add", []string{keys.counter(name), keys.addition(name, id)}, delta, CounterLife.Milliseconds(), remembered)
	if err != nil {
		return 0, err
	}
	if fits := reply.yes(); reply.err == nil && !fits {
		return 0, fmt.Errorf("counter[%s] sum: %w", name, store.ErrBadNumber)
	}
	sum := reply.number()
	return sum, reply.end()
}

// Counter implements store.Usage.
func (s *Store) Counter(ctx context.Context, owner store.Owner, name string) (int64, error) {
	if err := owner.Validate(); err != nil {
		return 0, err
	}
	reply, err := s.ask(ctx, "counter", []string{s.owned(owner).counter(name)})
	if err != nil {
		return 0, err
	}
	sum := reply.number()
	return sum, reply.end()
}
