#!/usr/bin/env bash
# Takes the pictures in this folder: a lab with the cluster of the demo, the controller
# at work on it, and Chromium. "make screenshots" builds what it needs and calls it.
set -euo pipefail
cd "$(dirname "$0")/../.."
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
	echo "there is no Chromium (Debian: apt-get install chromium)" >&2
	exit 1
}
dir=$(mktemp -d)
pids=()
stop() {
	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$dir"
}
trap stop EXIT

# waitfor NAME COMMAND... tries for two minutes.
waitfor() {
	local what=$1
	shift
	for _ in $(seq 240); do
		if "$@" >/dev/null 2>&1; then return; fi
		sleep 0.5
	done
	echo "waited for $what" >&2
	exit 1
}

bin/lab up --dir "$dir/lab" >"$dir/lab.log" 2>&1 &
pids+=($!)
waitfor "the control plane" grep -q "Ctrl-C stops everything" "$dir/lab.log"
bin/lab load --like openb --kubeconfig "$dir/lab/kubeconfig"

bin/gpu-summary-controller --kubeconfig "$dir/lab/kubeconfig" --http-address 127.0.0.1:0 2>"$dir/controller.log" &
pids+=($!)
address() { grep -o 'address="http://127[^"]*' "$dir/controller.log" | cut -d'"' -f2; }
waitfor "the controller" address
url=$(address)
waitfor "the numbers" curl -sf "$url/api/v1/snapshot"

# shot FILE PATH SIZE [FLAG...]; virtual time lets the page fetch what it draws.
shot() {
	local file=$1 path=$2 size=$3
	shift 3
	"$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size="$size" --virtual-time-budget=10000 \
		"$@" --screenshot="$PWD/docs/images/$file.png" "$url/$path" >/dev/null 2>&1
	echo "docs/images/$file.png"
}
shot overview "" 1280,1430
shot overview-dark "" 1280,1430 --blink-settings=preferredColorScheme=0
shot pipeline pipeline 1280,600
shot fit "fit?gpus=8&pods=200" 1280,700
shot node "node?name=openb-node-0003" 1280,500
