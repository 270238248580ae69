package memory

import "container/heap"

// table is a map whose entries expire. An entry is gone at its expiry, whether
// or not it was swept yet.
type table[K comparable, V any] struct {
	max     int // entries kept, those that expire first are dropped; 0 keeps all
	entries map[K]*entry[K, V]
	queue   queue[K, V]
}

type entry[K comparable, V any] struct {
	key     K
	value   V
	expires int64 // ms
	index   int   // in the queue
}

func newTable[K comparable, V any](max int) *table[K, V] {
	return &table[K, V]{max: max, entries: map[K]*entry[K, V]{}}
}

// get finds what has not expired. It forgets what has, so that what was gone
// once stays gone when the clock steps back.
func (t *table[K, V]) get(key K, now int64) (value V, found bool) {
	e := t.entries[key]
	if e == nil {
		return value, false
	}
	if e.expires <= now {
		t.drop(key)
		return value, false
	}
	return e.value, true
}

func (t *table[K, V]) put(key K, value V, expires int64) {
	if e := t.entries[key]; e != nil {
		e.value, e.expires = value, expires
		heap.Fix(&t.queue, e.index)
		return
	}
	e := &entry[K, V]{key: key, value: value, expires: expires}
	t.entries[key] = e
	heap.Push(&t.queue, e)
	if t.max > 0 && len(t.queue) > t.max {
		t.drop(t.queue[0].key)
	}
}

func (t *table[K, V]) drop(key K) {
	if e := t.entries[key]; e != nil {
		delete(t.entries, key)
		heap.Remove(&t.queue, e.index)
	}
}

// sweep drops what has expired, at most n entries so that no call pays for a
// long silence.
func (t *table[K, V]) sweep(now int64, n int) {
	for ; n > 0 && len(t.queue) > 0 && t.queue[0].expires <= now; n-- {
		t.drop(t.queue[0].key)
	}
}

func (t *table[K, V]) len() int { return len(t.entries) }

// queue is a heap.Interface, the first to expire in front.
type queue[K comparable, V any] []*entry[K, V]

func (q queue[K, V]) Len() int           { return len(q) }
func (q queue[K, V]) Less(i, j int) bool { return q[i].expires < q[j].expires }

func (q queue[K, V]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *queue[K, V]) Push(x any) {
	e := x.(*entry[K, V])
	e.index = len(*q)
	*q = append(*q, e)
}

func (q *queue[K, V]) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}
