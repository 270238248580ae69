package chain

import (
	"errors"
	"sync"
)

// workers call the stages that may have their run wait, each on a stack of its
// own. A stage needs a deep one, and a goroutine keeps what it once needed: ten
// thousand runs that wait would hold ten thousand of them.
type workers struct {
	mu   sync.Mutex
	idle []chan func()
	over bool
}

// maxIdle bounds the goroutines that are kept for the next call.
const maxIdle = 64

var errGoexit = errors.New("a stage ended its goroutine")

// do has a worker call f and waits for it. What f panics with it panics with
// itself, also when f ends the goroutine: nothing goes on as if f had returned.
func (w *workers) do(f func()) {
	done := make(chan any, 1)
	w.take() <- func() {
		var ended any = errGoexit
		defer func() {
			if panicked := recover(); panicked != nil {
				ended = panicked
			}
			done <- ended
		}()
		f()
		ended = nil
	}
	if ended := <-done; ended != nil {
		panic(ended)
	}
}

// take gives an idle worker, or a new one.
func (w *workers) take() chan func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := len(w.idle) - 1; last >= 0 {
		worker := w.idle[last]
		w.idle = w.idle[:last]
		return worker
	}
	worker := make(chan func(), 1)
	go w.work(worker)
	return worker
}

func (w *workers) work(jobs chan func()) {
	for job := range jobs {
		job()
		if !w.rest(jobs) {
			return
		}
	}
}

// rest offers a worker for the next call, unless there are enough.
func (w *workers) rest(worker chan func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || len(w.idle) >= maxIdle {
		return false
	}
	w.idle = append(w.idle, worker)
	return true
}

// close lets the idle workers go. One that works goes when it is done.
func (w *workers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for _, worker := range w.idle {
		close(worker)
	}
	w.idle = nil
}
