package adk

import (
	"runtime"
	"sync"
	"weak"

	"google.golang.org/adk/v2/model"
)

// finals remembers final responses as the model gave them. An amended one is
// swapped in ADK's hands, so that later plugins and the agent's callbacks go
// on with it; but the struct is the model's, and one that keeps its responses,
// as a cache does, hands it out again. Then it has to be what it was.
type finals struct {
	mu        sync.Mutex
	originals map[weak.Pointer[model.LLMResponse]]model.LLMResponse
}

// swap puts the amended response in place.
func (f *finals) swap(resp, amended *model.LLMResponse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := weak.Make(resp)
	if _, known := f.originals[key]; !known {
		if f.originals == nil {
			f.originals = make(map[weak.Pointer[model.LLMResponse]]model.LLMResponse)
		}
		f.originals[key] = *resp
		runtime.AddCleanup(resp, f.forget, key)
	}
	*resp = *amended
}

func (f *finals) forget(key weak.Pointer[model.LLMResponse]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.originals, key)
}

// restore makes a response that comes again what it was when it came first.
func (f *finals) restore(resp *model.LLMResponse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if original, known := f.originals[weak.Make(resp)]; known {
		*resp = original
	}
}
