#!/usr/bin/env bash
# Installs what the tests need, where it is missing: gcc (race detector),
# redis-server, Node with the official SDKs, Chromium and what builds the console's
# page, Python for the verifier in examples/verify, the Go SDKs. Packages come from the distribution (Debian,
# Ubuntu) and from npm; the newest SDK wants a newer Node than distributions
# have, and npm's own `node` package brings that.
set -euo pipefail
cd "$(dirname "$0")"

missing=()
command -v gcc >/dev/null || missing+=(gcc libc6-dev)
command -v redis-server >/dev/null || missing+=(redis-server)
command -v npm >/dev/null || missing+=(nodejs npm)
command -v chromium >/dev/null || command -v google-chrome >/dev/null || missing+=(chromium)
command -v python3 >/dev/null || missing+=(python3)

if [ ${#missing[@]} -gt 0 ]; then
	if ! command -v apt-get >/dev/null; then
		echo "the tests need: ${missing[*]} (no apt-get here: install them by hand)" >&2
		exit 1
	fi
	sudo=""
	[ "$(id -u)" -eq 0 ] || sudo="sudo"
	$sudo apt-get update -qq
	DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

# npm ci is repeated only when the lock file changed. What the console's page is built
# and tested with needs no script of its packages.
for folder in . ../console/page; do
	(
		cd "$folder"
		cmp -s package-lock.json node_modules/.lock-installed && exit
		scripts=()
		[ "$folder" = . ] || scripts=(--ignore-scripts)
		npm ci --no-audit --no-fund --loglevel=error "${scripts[@]}"
		cp package-lock.json node_modules/.lock-installed
	)
done

# The Go SDKs, Prometheus' query engine and the guard in the process are modules of their
# own.
(cd gosdk && go list -deps . >/dev/null)
(cd promql && go list -deps . >/dev/null)
(cd ../guards/onnx && go list -deps -test ./... >/dev/null)
