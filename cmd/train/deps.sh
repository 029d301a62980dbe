#!/usr/bin/env bash
# Installs what training reads besides DATA, where it is missing: WordNet 3.0,
# from the distribution (Debian, Ubuntu).
set -euo pipefail

[ -e /usr/share/wordnet/data.noun ] && exit 0
if ! command -v apt-get >/dev/null; then
	echo "training reads WordNet 3.0 in /usr/share/wordnet (no apt-get here: put its dict folder there)" >&2
	exit 1
fi
sudo=""
[ "$(id -u)" -eq 0 ] || sudo="sudo"
$sudo apt-get update -qq
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends wordnet-base
