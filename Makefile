# Everything a person or a CI does with this repository.
# On a machine with only Go, git and make: `make run`. Tests: `make test`.

GO        ?= go
BIN       := bin/caddy
XCADDY    := tool -modfile=tools.mod xcaddy
LINT      := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
VULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
FUZZTIME  ?= 30s
LOADTIME  ?= 60s
FUZZED    := ./kernel ./store ./kernel/detect ./kernel/toolcall ./wire ./caddymodule

.PHONY: run test build bench lint fuzz load train eval needs-data deps clean

# run builds and starts the root Caddyfile on :8080. Empty variables count as
# unset, and LEX_REDIS_URL chooses the Redis store.
run:
	$(GO) build -o $(BIN) ./cmd/caddy
	@for v in LEX_UPSTREAM LEX_MODEL LEX_PROVIDER_KEY LEX_STORE LEX_PORT LEX_DEMO_PORT LEX_ADMIN; do \
		eval "[ -n \"\$$$$v\" ]" || unset $$v; done; \
	if [ -n "$$LEX_REDIS_URL" ]; then LEX_STORE="redis $$LEX_REDIS_URL"; export LEX_STORE; fi; \
	exec $(abspath $(BIN)) run --config Caddyfile --adapter caddyfile

# test installs what the tests need (on Debian and Ubuntu) and runs all of them
# with the race detector.
test: deps
	CGO_ENABLED=1 $(GO) test -race -timeout 14m ./...

# deps is separate so that a machine that has everything needs no network.
deps:
	./e2e/deps.sh

# build makes the binary the way users do, with xcaddy, from xcaddy.json.
build:
	$(GO) $(XCADDY) build $$($(GO) run ./cmd/xcaddyargs xcaddy.json) --output $(BIN)

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

# lint fails on what the linters or govulncheck find (its exit status 3); where
# govulncheck or its database cannot be reached it says so.
lint:
	$(GO) run $(LINT) run
	@if GOBIN=$(abspath bin) $(GO) install $(VULNCHECK); then \
		bin/govulncheck ./...; rc=$$?; \
		[ $$rc -ne 3 ] || exit 3; \
		[ $$rc -eq 0 ] || echo "govulncheck did not finish: its database cannot be reached"; \
	else echo "govulncheck was not run: it cannot be fetched"; fi

# load lets 64 clients use every endpoint for LOADTIME, under the race detector.
load:
	LEX_LOAD=$(LOADTIME) CGO_ENABLED=1 $(GO) test -run '^TestLoad$$' -count=1 -v ./e2e

# fuzz gives every fuzz target FUZZTIME, and little of it to making finds smaller.
fuzz:
	@for p in $(FUZZED); do \
		for f in $$($(GO) test -list '^Fuzz' $$p | grep ^Fuzz); do \
			echo "== $$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x $$p || exit 1; \
		done; \
	done

# train makes the detector's model and its card from DATA, a folder of data/ and
# text/ as kernel/detect/MODEL.md tells; eval measures the same figures and
# writes nothing. Both read WordNet, and install Debian's package of it.
train: needs-data
	$(GO) run ./cmd/train -data $(DATA) -out kernel/detect/model.bin

eval: needs-data
	$(GO) run ./cmd/train -data $(DATA)

needs-data:
	@[ -n "$(DATA)" ] || { echo "which data? make train DATA=<folder of data/ and text/>"; exit 2; }
	./cmd/train/deps.sh

clean:
	rm -rf bin e2e/node_modules
