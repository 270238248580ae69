# The two commands that matter: `make run` shows the product, `make test`
# tests it. `make check` is the definition of done.

GO      ?= go
GUESTS  := meter ratelimit redact
WASM    := $(foreach g,$(GUESTS),guests/$(g)/$(g).wasm)
BIN     := bin/hookhost
SOURCES := $(shell find abi guests -name '*.go' -not -name '*_test.go')

# Tools of `make check`, pinned; Go downloads them on first use.
GOFUMPT     := mvdan.cc/gofumpt@v0.12.0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

export CGO_ENABLED ?= 0
# Compiled modules, shared by all test packages.
export HOOKHOST_TEST_CACHE ?= $(CURDIR)/bin/cache

.PHONY: help
help: ## what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

.PHONY: run
run: guests $(BIN) ## a conversation through the chain of hooks.toml, without a key or a network
	@./$(BIN) run --dev --trace --stream

.PHONY: guests
guests: $(WASM) ## build the guests that ship

guests/%.wasm: $(SOURCES) go.mod
	@echo "building $@"
	@GOOS=wasip1 GOARCH=wasm $(GO) build -buildmode=c-shared -trimpath -o $@ ./$(dir $@)

$(BIN): FORCE
	@[ -x $@ ] || echo "building $@ (the first time takes a minute or two: ADK is large)"
	@$(GO) build -trimpath -o $@ ./cmd/hookhost

.PHONY: FORCE
FORCE:

.PHONY: test
test: guests bench-guests cache ## all tests, without gcc and without the race detector
	@echo "testing (the first time compiles ADK's packages, which takes a minute or two)"
	$(GO) test ./...
	cd bench && $(GO) test ./...

.PHONY: cache
cache: guests bench-guests $(BIN) ## compile the guests once for all test packages
	@echo "compiling guests into $(HOOKHOST_TEST_CACHE)"
	@./$(BIN) plan --dev --cache-dir $(HOOKHOST_TEST_CACHE) >/dev/null
	@$(GO) test -count=1 -short -run '^(TestWarmCache|TestGoldenCompiled|TestReloadUnderLoad|TestReloadDropsNoCallAndKeepsNothing)$$' ./host ./host/wasm >bin/cache.log 2>&1 || { cat bin/cache.log; exit 1; }
	@cd bench && $(GO) test -count=1 -run '^(TestSandboxItems|TestAProcessStarts)$$' . >../bin/cache.log 2>&1 || { cat ../bin/cache.log; exit 1; }

.PHONY: check
check: gcc guests bench-guests cache lint ## what has to pass before a change is done; needs gcc for the race detector
	CGO_ENABLED=1 $(GO) test -race -shuffle=on -count=1 ./...
	cd bench && CGO_ENABLED=1 $(GO) test -race -shuffle=on -count=1 ./...

.PHONY: gcc
gcc:
	@command -v gcc >/dev/null || { echo "make check needs gcc: the race detector links with it" >&2; exit 1; }

.PHONY: lint
lint: ## format, vet, staticcheck and a tidy go.mod
	@out=$$($(GO) run $(GOFUMPT) -l .) && [ -z "$$out" ] || { echo "gofumpt would change:"; echo "$$out"; exit 1; }
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	$(GO) mod tidy -diff
	cd bench && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && $(GO) mod tidy -diff

FUZZTIME ?= 1m

.PHONY: fuzz
fuzz: guests ## every fuzzer for a while: make fuzz FUZZTIME=10m
	@for package in $$(grep -rl '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u); do \
		for fuzzer in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$package/*_test.go); do \
			echo "fuzzing $$package $$fuzzer for $(FUZZTIME)"; \
			$(GO) test $$package -run '^$$' -fuzz "^$$fuzzer\$$" -fuzztime $(FUZZTIME) || exit 1; \
		done; \
	done

# The guests of the bench that are built from Go. Those in Rust and C are there.
BENCH_WASM    := $(foreach g,go extism knqyf,bench/guests/$(g)/guest.wasm)
BENCH_SOURCES := $(shell find bench/guests bench/work -name '*.go')

bench/guests/%/guest.wasm: $(BENCH_SOURCES) $(SOURCES) bench/go.mod
	@echo "building $@"
	@cd bench && GOOS=wasip1 GOARCH=wasm $(GO) build -buildmode=c-shared -trimpath -o guests/$*/guest.wasm ./guests/$*

.PHONY: bench-guests
bench-guests: $(BENCH_WASM) ## build the guests of the bench

.PHONY: bench
bench: guests bench-guests ## what limits and sandbox cost, beside peers, into bench/RESULTS.md; fails when a goal is missed
	@cd bench && $(GO) run . -results RESULTS.md $(BENCH)

.PHONY: clean
clean: ## remove what was built
	rm -rf bin $(WASM) $(BENCH_WASM)
