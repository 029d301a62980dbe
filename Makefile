# Everything a person or a CI does with this repository.
# On a machine with only Go, git and make: `make run`. Tests: `make test`.

GO        ?= go
BIN       := bin/caddy
XCADDY    := tool -modfile=tools.mod xcaddy
PURE      := ./kernel/... ./wire/...
FUZZTIME  ?= 30s
LOADTIME  ?= 60s

.PHONY: run test build cover bench microbench lint fuzz reproduce load coding-agents train eval languages agents charts console needs-data deps clean

# run builds and starts the root Caddyfile on :8080. Empty variables count as
# unset, and LEX_REDIS_URL chooses the Redis store.
run:
	$(GO) build -o $(BIN) ./cmd/caddy
	@for v in LEX_UPSTREAM LEX_MODEL LEX_PROVIDER_KEY LEX_STORE LEX_PORT LEX_DEMO_PORT LEX_ADMIN; do \
		eval "[ -n \"\$$$$v\" ]" || unset $$v; done; \
	if [ -n "$$LEX_REDIS_URL" ]; then LEX_STORE="redis $$LEX_REDIS_URL"; export LEX_STORE; fi; \
	exec $(abspath $(BIN)) run --config Caddyfile --adapter caddyfile

# test installs what the tests need (on Debian and Ubuntu) and runs all of them
# with the race detector, those of the module guards/onnx too, and those of the pure
# packages once more without: it makes them ten times as slow, so they read less under
# it. The time limit is each
# package's own: the longest takes a few minutes, and many times as long on a busy
# machine. COVER names a folder for the counters of coverage; those of the pure
# packages are taken without the race detector, which would make every counter an
# atomic one in their innermost loops.
test: deps
ifdef COVER
	rm -rf $(COVER) && mkdir -p $(COVER)/pure $(COVER)/rest
	$(GO) test -timeout 60m -cover -covermode set $(PURE) -args -test.gocoverdir=$(abspath $(COVER))/pure
	CGO_ENABLED=1 $(GO) test -race -timeout 60m $(PURE)
	CGO_ENABLED=1 LEX_COVER=$(abspath $(COVER))/rest $(GO) test -race -timeout 60m -cover $$($(GO) list ./... | grep -v -e /kernel -e /wire) -args -test.gocoverdir=$(abspath $(COVER))/rest
else
	$(GO) test -timeout 60m $(PURE)
	CGO_ENABLED=1 $(GO) test -race -timeout 60m ./...
endif
	cd guards/onnx && CGO_ENABLED=1 $(GO) test -race -timeout 60m ./...

# cover runs the tests and prints the total and the ten files least covered, with
# what the end-to-end tests reach in the binary.
cover:
	$(MAKE) test COVER=bin/cover
	./.ci/coverage bin/cover

# deps is separate so that a machine that has everything needs no network.
deps:
	./e2e/deps.sh

# build makes the binary the way users do, with xcaddy, from xcaddy.json.
build:
	$(GO) $(XCADDY) build $$($(GO) run ./cmd/xcaddyargs xcaddy.json) --output $(BIN)

# bench measures governed traffic against bare Caddy on this machine (Linux), which must
# have nothing else to do for half an hour. It prints the figures and writes them into
# docs/performance.md; microbench runs the benchmarks of the packages.
bench: build
	$(GO) run ./cmd/bench -caddy $(BIN)

microbench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

# lint fails on what golangci-lint or govulncheck find, and says so where one of
# them cannot be fetched.
lint:
	./.ci/lint

# reproduce builds the binary twice, in two places, and fails unless both are the same.
reproduce:
	./.ci/reproduce

# load lets 64 clients use every endpoint for LOADTIME, under the race detector.
load:
	LEX_LOAD=$(LOADTIME) CGO_ENABLED=1 $(GO) test -run '^TestLoad$$' -count=1 -v ./e2e

# fuzz gives every fuzz target FUZZTIME.
fuzz:
	FUZZTIME=$(FUZZTIME) ./.ci/fuzz

# coding-agents asks five coding agents, which npm installs, a question and an attack through
# the binary (docs/sdks.md).
coding-agents: deps
	cd e2e/codingagents && npm install --no-package-lock --no-fund --no-audit
	$(GO) test -tags codingagents -count=1 -v -timeout 30m -run '^TestCodingAgents$$' ./e2e

# train makes the detector's model and its card from DATA, a folder of data/ and
# text/ as kernel/detect/MODEL.md tells; eval measures the same figures and
# writes nothing. Both read WordNet, and install Debian's package of it.
train: needs-data
	$(GO) run ./cmd/train -data $(DATA) -out kernel/detect/model.bin

eval: needs-data
	$(GO) run ./cmd/train -data $(DATA)

# languages trains the model's readers of requests for harm and attacks on the assistant anew,
# in a quarter of an hour, and leaves the heads as they are. kernel/detect/LANGUAGES.md is its card.
languages: needs-data
	$(GO) run ./cmd/train -data $(DATA) -languages -out kernel/detect/model.bin

# agents measures what the interceptor blocks of tool calls, recorded ones from
# DATA/tool_calls.jsonl.gz among them, and fits the weights of injected_action anew to
# compare them with those in kernel/toolcall/intention_weights.go. It also says what the resemblance
# of calls makes of authors whom it has not learnt from.
agents: needs-data
	LEX_TOOL_CALLS=$(abspath $(DATA))/tool_calls.jsonl.gz $(GO) test -tags recorded ./kernel/toolcall -run '^Test(Agents|RecordedCalls|Weights|CrossValidation|Resemblance)' -count=1 -v

# charts measures the slow-drip charts and the contrastive signal on DATA, a folder of
# *.jsonl, as docs/kernel.md tells, and draws that page's pictures anew.
charts:
	@[ -n "$(DATA)" ] || { echo "which data? make charts DATA=<folder of *.jsonl>"; exit 2; }
	$(GO) run ./cmd/charts -data $(DATA) -out cmd/plot/arl.json
	$(GO) run ./cmd/plot docs

# console builds the page at /lex/console, which is committed: who builds the binary needs
# no Node. With SHOTS=docs it also draws the pictures in docs/ anew.
console:
	[ -d console/page/node_modules ] || (cd console/page && npm ci --ignore-scripts --no-audit --no-fund)
	node console/page/build.mjs
ifdef SHOTS
	LEX_SHOTS=$(abspath $(SHOTS)) $(GO) test -run '^TestConsole$$' -count=1 -v ./e2e
endif

needs-data:
	@[ -n "$(DATA)" ] || { echo "which data? make train DATA=<folder of data/ and text/>"; exit 2; }
	./cmd/train/deps.sh

clean:
	rm -rf bin e2e/node_modules console/page/node_modules cmd/bench/node_modules
