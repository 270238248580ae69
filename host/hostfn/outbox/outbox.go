// Package outbox writes to the store what nobody waits for: what was used,
// what is given back, what happened. It is bounded, keeps the order of each
// owner, and loses nothing without saying so.
package outbox

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hookhost/hookhost/store"
)

// Entry is one write. It carries an id of its own, so that doing it again does
// it once.
type Entry struct {
	Kind  string // what is lost with it, for those who count
	Line  Line
	Write func(context.Context) error
}

// Line is where an entry stands: behind the earlier ones of its owner. An owner whose writes need no order may have several lines, so that
// they do not wait for each other.
type Line struct {
	Owner store.Owner
	Lane  int
}

// Options of an outbox.
type Options struct {
	Capacity int           // in entries; 0 is 10,000
	Workers  int           // of Run; 0 is 8
	Timeout  time.Duration // of one write; 0 is 50 ms
	Log      *slog.Logger
	// Away reports whether the store is known to be away. While it is, an entry
	// waits as long as that takes; while it is not, one that is stuck is given up.
	// nil is not known: nothing counts as stuck.
	Away func() bool
	// Lost is told of each entry that was given up: the oldest when there was no
	// room, one that the store refused, one that was stuck, all that were left at
	// the end.
	Lost func(Entry)
}

// The pauses between two attempts while the store is away.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 2 * time.Second
)

// An entry is stuck when it failed in so many attempts over so much time in
// which the store was not away: there is something in its own way, such as a
// key of another type. Those behind it are not kept waiting any longer: until
// its line is empty one failed attempt is enough for each.
const (
	stuckTries = 20
	stuckTime  = time.Minute
)

// closePatience is how long Close goes on where its context has no deadline.
const closePatience = 2 * time.Second

var errClosed = errors.New("outbox is closed")

// Outbox keeps entries until the store has taken them.
type Outbox struct {
	options Options
	work    chan struct{} // one token for each worker that may have something to do

	mu     sync.Mutex
	lines  map[Line]*line // those with entries
	turns  []*line        // lines that nobody writes, the next one in front; some may be done already
	ages   *list.List     // of all entries, the oldest in front
	closed bool

	pause time.Duration // since the store went away; 0 while it answers
	until time.Time     // the end of the pause
	full  bool          // entries were given up since all was last written
}

// line is what one owner has to be written.
type line struct {
	Line
	waiting []*list.Element // of ages
	queued  bool            // in turns
	writing *writing        // by somebody; nil if nobody does

	// Of the failures in a row while the store was not away.
	tries   int
	failing time.Duration // between them
	last    time.Time     // of them; zero if the store was away since

	pause time.Duration // between two attempts while the store takes what others write
	until time.Time     // the end of the pause
}

// writing is one go at a line.
type writing struct {
	over chan struct{}
	err  error // with over: what it ended with before the line was empty
}

func (l *line) stuck() bool { return l.tries >= stuckTries && l.failing >= stuckTime }

type item struct {
	Entry
	begun bool // being written, so that it is too late to give it up
}

func entryOf(e *list.Element) *item { return e.Value.(*item) }

// New makes an empty outbox.
func New(o Options) *Outbox {
	if o.Capacity <= 0 {
		o.Capacity = 10_000
	}
	if o.Workers <= 0 {
		o.Workers = 8
	}
	if o.Timeout <= 0 {
		o.Timeout = 50 * time.Millisecond
	}
	return &Outbox{options: o, work: make(chan struct{}, o.Workers), lines: map[Line]*line{}, ages: list.New()}
}

// Put accepts an entry and never waits. If there is no room the oldest one is
// given up for it.
func (o *Outbox) Put(e Entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		o.lose(e, errClosed)
		return
	}
	if o.ages.Len() >= o.options.Capacity {
		o.giveUpOldest()
	}
	l := o.lines[e.Line]
	if l == nil {
		l = &line{Line: e.Line}
		o.lines[e.Line] = l
	}
	l.waiting = append(l.waiting, o.ages.PushBack(&item{Entry: e}))
	o.queue(l)
}

// Pending counts the entries that are not written yet.
func (o *Outbox) Pending() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ages.Len()
}

// Away reports whether the last write found the store away.
func (o *Outbox) Away() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pause > 0
}

// Run writes entries as they come until ctx is done.
func (o *Outbox) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for range o.options.Workers {
		workers.Go(func() { o.run(ctx) })
	}
	workers.Wait()
}

func (o *Outbox) run(ctx context.Context) {
	for ctx.Err() == nil {
		l, pause := o.next()
		if l != nil {
			_ = o.write(ctx, l) // what failed stays in line
			continue
		}
		var over <-chan time.Time
		if pause > 0 {
			over = time.After(pause)
		}
		select {
		case <-ctx.Done():
		case <-o.work:
		case <-over:
		}
	}
}

// Flush writes what stands in a line. It waits for nothing else, and fails with
// the first attempt that finds the store away, whoever makes that.
func (o *Outbox) Flush(ctx context.Context, of Line) error {
	for {
		o.mu.Lock()
		l := o.lines[of]
		switch {
		case l == nil:
			o.mu.Unlock()
			return nil
		case l.writing == nil:
			l.writing = begun()
			o.mu.Unlock()
			return o.write(ctx, l)
		}
		other := l.writing
		o.mu.Unlock()
		if err := wait(ctx, other.over); err != nil {
			return err
		}
		if other.err != nil {
			return other.err
		}
	}
}

// Drain writes all that is pending. It stops when the store is away, and says
// how many entries are left.
func (o *Outbox) Drain(ctx context.Context) error {
	for {
		l, other := o.any()
		var err error
		switch {
		case l != nil:
			err = o.write(ctx, l)
		case other != nil:
			err = wait(ctx, other.over)
		default:
			return nil
		}
		if err != nil {
			return fmt.Errorf("outbox: %d writes wait: %w", o.Pending(), err)
		}
	}
}

// Close drains again and again within the time of its context, or 2 s if that
// has no end, and gives up what is left. What is put in later is lost. Run has
// to be over.
func (o *Outbox) Close(ctx context.Context) error {
	if _, ends := ctx.Deadline(); !ends {
		bounded, cancel := context.WithTimeout(ctx, closePatience)
		defer cancel()
		ctx = bounded
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := o.Drain(ctx)
		if err == nil {
			o.giveUpAll()
			return nil
		}
		if wait(ctx, time.After(pause)) != nil {
			return fmt.Errorf("outbox: gave up %d writes: %w", o.giveUpAll(), errors.Unwrap(err))
		}
	}
}

func wait[T any](ctx context.Context, c <-chan T) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
	}
}

// queue lets a line have its turn. The lock is held.
func (o *Outbox) queue(l *line) {
	if l.queued || l.writing != nil {
		return
	}
	l.queued = true
	o.turns = append(o.turns, l)
	select {
	case o.work <- struct{}{}:
	default:
	}
}

// next gives the line whose turn it is to who may write it, or says how long
// the pause is.
func (o *Outbox) next() (l *line, pause time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if pause := time.Until(o.until); o.pause > 0 && pause > 0 {
		return nil, pause
	}
	return o.claim(time.Now())
}

// any gives a line to be written whether or not it is time, or else what to
// wait for.
func (o *Outbox) any() (l *line, other *writing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l, _ := o.claim(endOfTime); l != nil {
		return l, nil
	}
	for _, l := range o.lines {
		return nil, l.writing // who is not in turns is being written
	}
	return nil, nil
}

// endOfTime is when all pauses are over.
var endOfTime = time.Unix(1<<40, 0)

// claim takes the next line that is in no pause at a time, or says when the
// first pause ends. The lock is held.
func (o *Outbox) claim(at time.Time) (l *line, pause time.Duration) {
	for range len(o.turns) {
		l := o.turns[0]
		o.turns = o.turns[1:]
		wait := l.until.Sub(at)
		switch {
		case l.writing != nil || len(l.waiting) == 0:
			l.queued = false
		case wait > 0:
			o.turns = append(o.turns, l)
			if pause == 0 || wait < pause {
				pause = wait
			}
		default:
			l.queued = false
			l.writing = begun()
			return l, 0
		}
	}
	return nil, pause
}

// write writes the entries of a line in their order, until it is empty or the
// store is away.
func (o *Outbox) write(ctx context.Context, l *line) error {
	for {
		e := o.begin(l)
		if e == nil {
			return nil
		}
		err := o.try(ctx, e)
		switch {
		case !store.IsAway(err):
			o.done(l, err)
		case ctx.Err() == nil && o.giveUpStuck(l, err):
		default:
			o.putBack(l, err, ctx.Err() == nil)
			return err
		}
	}
}

// begin takes the first entry of a line in hand, or lets the line go.
func (o *Outbox) begin(l *line) *item {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(l.waiting) == 0 {
		delete(o.lines, l.Line)
		o.release(l, nil)
		return nil
	}
	first := entryOf(l.waiting[0])
	first.begun = true
	return first
}

func begun() *writing { return &writing{over: make(chan struct{})} }

func (o *Outbox) release(l *line, err error) {
	l.writing.err = err
	close(l.writing.over)
	l.writing = nil
}

func (o *Outbox) try(ctx context.Context, e *item) error {
	ctx, cancel := context.WithTimeout(ctx, o.options.Timeout)
	defer cancel()
	return e.Write(ctx)
}

// putBack lets a line wait for another turn. That the store is away is not to
// be told from an attempt that was broken off.
func (o *Outbox) putBack(l *line, err error, away bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	entryOf(l.waiting[0]).begun = false
	if !away {
		err = nil // it says nothing to those who wait: they try themselves
	}
	o.release(l, err)
	o.queue(l)
	if !away {
		return
	}
	writtenSince := l.pause > 0 && o.pause == 0 // others, since it failed
	if writtenSince || errors.Is(err, store.ErrOnlyThis) {
		l.pause = longer(l.pause)
		l.until = time.Now().Add(l.pause)
		return
	}
	if o.pause == 0 {
		o.options.Log.Warn("writes wait for the store", "error", err)
	}
	l.pause = firstPause
	o.pause = longer(o.pause)
	o.until = time.Now().Add(o.pause)
}

func longer(pause time.Duration) time.Duration { return min(max(2*pause, firstPause), lastPause) }

// giveUpStuck counts a failure, and takes the entry out if it is stuck.
func (o *Outbox) giveUpStuck(l *line, err error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.options.Away == nil || o.options.Away() {
		l.last = time.Time{}
		return false
	}
	now := time.Now()
	l.tries++
	if !l.last.IsZero() {
		l.failing += now.Sub(l.last)
	}
	l.last = now
	if !l.stuck() {
		return false
	}
	o.lose(o.takeOut(l), fmt.Errorf("failed %d times over %s while the store was not away: %w", l.tries, l.failing.Round(time.Second), err))
	return true
}

// takeOut takes the entry that was begun out of its line. The lock is held.
func (o *Outbox) takeOut(l *line) Entry {
	first := l.waiting[0]
	o.ages.Remove(first)
	l.waiting = l.waiting[1:]
	o.full = o.full && o.ages.Len() > 0
	return entryOf(first).Entry
}

// done takes an entry out that the store answered to.
func (o *Outbox) done(l *line, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.takeOut(l); err != nil {
		o.lose(e, err)
	}
	l.pause, l.until = 0, time.Time{}
	if !l.stuck() {
		l.tries, l.failing, l.last = 0, 0, time.Time{}
	}
	if o.pause > 0 {
		o.pause = 0
		o.options.Log.Info("the store takes writes again", "pending", o.ages.Len())
		for range o.options.Workers { // they are in their pauses
			select {
			case o.work <- struct{}{}:
			default:
			}
		}
	}
}

// giveUpOldest is called with the lock held.
func (o *Outbox) giveUpOldest() {
	for at := o.ages.Front(); at != nil; at = at.Next() {
		e := entryOf(at)
		if e.begun {
			continue
		}
		l := o.lines[e.Line]
		for i := range l.waiting { // the first, or the one behind it
			if l.waiting[i] == at {
				l.waiting = append(l.waiting[:i:i], l.waiting[i+1:]...)
				break
			}
		}
		o.ages.Remove(at)
		if len(l.waiting) == 0 && l.writing == nil {
			delete(o.lines, l.Line)
		}
		if !o.full {
			o.full = true
			o.options.Log.Error("no room for more writes: the oldest are given up", "capacity", o.options.Capacity)
		}
		o.options.Lost(e.Entry)
		return
	}
}

// giveUpAll ends the outbox.
func (o *Outbox) giveUpAll() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	n = o.ages.Len()
	for at := o.ages.Front(); at != nil; at = at.Next() {
		o.options.Lost(entryOf(at).Entry)
	}
	o.ages, o.lines, o.turns = list.New(), map[Line]*line{}, nil
	return n
}

// lose tells of an entry that will never be written.
func (o *Outbox) lose(e Entry, err error) {
	o.options.Log.Warn("a write is given up", "kind", e.Kind, "error", err)
	o.options.Lost(e)
}
