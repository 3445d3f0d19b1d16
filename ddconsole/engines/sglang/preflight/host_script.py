"""The one script that asks a host everything cheap: programs, port, weights, room, caches, kernel.

Its parts are constants; what varies comes as positional parameters, and the engine's own environment as environment.
"""

from __future__ import annotations

from typing import Final

from ddconsole.engines.launch.scripts import LISTENERS, PLAIN, PRELUDE
from ddconsole.engines.sglang.preflight.sections import SECTION

_PORT: Final = (
    r"""
listeners() {
  set -- "$1" -
"""
    + LISTENERS.replace("exit 0", "return 0")
    + r"""
}
hz=$(getconf CLK_TCK 2>/dev/null || echo 100)
born=$(awk '$1 == "btime" { print $2 }' /proc/stat 2>/dev/null)
# since when a process runs, and whether ddconsole started it
history_of() {
  set -- "$1" $(stat_of "$1")
  [ $# -ge 6 ] || return 0
  [ -n "$born" ] && printf 'started\t%s\t%s\n' "$1" "$((born + $6 / hz))"
  grep -q -F DDCONSOLE_ATTEMPT= "/proc/$1/environ" 2>/dev/null && printf 'ours\t%s\n' "$1"
}
port_report() {
  held=$(listeners "$1")
  printf '%s\n' "$held"
  printf '%s\n' "$held" | while IFS="$tab" read -r mark pid rest; do
    if [ "$mark" = listener ] && [ "$pid" != 0 ]; then history_of "$pid"; fi
  done
}
"""
)

_WEIGHTS: Final = r"""
hub=${HF_HUB_CACHE:-${HUGGINGFACE_HUB_CACHE:-${HF_HOME:-$HOME/.cache/huggingface}/hub}}
# the folder of a model: $1 as a path, or $2, its name in the Hugging Face cache, at the revision of refs/main
folder_of() {
  if [ -d "$1" ]; then (cd "$1" && pwd); return; fi
  if [ -f "$hub/$2/refs/main" ] && [ -d "$hub/$2/snapshots/$(cat "$hub/$2/refs/main")" ]; then
    echo "$hub/$2/snapshots/$(cat "$hub/$2/refs/main")"
    return
  fi
  for one in "$hub/$2/snapshots/"*; do if [ -d "$one" ]; then echo "$one"; return; fi; done
}
size_of() { stat -Lc %s "$1" 2>/dev/null || { [ -f "$1" ] && wc -c <"$1" | tr -d ' '; }; }
shards_of() {
  if [ -f "$1/model.safetensors.index.json" ]; then
    grep -o '" *: *"[^"]*\.safetensors"' "$1/model.safetensors.index.json" |
      sed 's/^" *: *"//; s/"$//' | sort -u
  else
    (cd "$1" && for one in *.safetensors *.bin *.pt *.gguf; do if [ -f "$one" ]; then echo "$one"; fi; done)
  fi
}
weights() {
  if [ -f "$1" ]; then printf 'file\t%s\t%s\n' "$(size_of "$1")" "$1"; return; fi
  dir=$(folder_of "$1" "$2")
  if [ -z "$dir" ]; then echo absent; return; fi
  printf 'folder\t%s\n' "$dir"
  if [ -f "$dir/config.json" ]; then
    printf 'config\t%s\n' "$(head -c 200000 "$dir/config.json" | tr '\n\r\t' '   ')"
  fi
  if [ -f "$dir/config.json" ] && command -v sha256sum >/dev/null 2>&1; then
    printf 'hash\t%s\n' "$(sha256sum <"$dir/config.json" | cut -d ' ' -f 1)"
  fi
  index=$dir/model.safetensors.index.json
  if [ -f "$index" ]; then
    printf 'total\t%s\n' "$(grep -o '"total_size" *: *[0-9]*' "$index" | head -n 1 | tr -dc 0-9)"
  fi
  shards_of "$dir" | while read -r one; do
    size=$(size_of "$dir/$one")
    if [ -n "$size" ] && [ ! -r "$dir/$one" ]; then size=unreadable; fi
    printf 'shard\t%s\t%s\n' "${size:--}" "$one"
  done
}
"""

_CACHE: Final = r"""
# how much of at most eight of a model's files the page cache holds; the kernel tells that of one's own files only
page_cache() {
  dir=$(folder_of "$1" "$2")
  if [ -z "$dir" ]; then return; fi
  if ! command -v fincore >/dev/null 2>&1; then echo no-fincore; return; fi
  shards_of "$dir" | awk '{ name[NR] = $0 } END {
      step = NR > 8 ? NR / 8 : 1; for (i = 1; i <= NR; i += step) print name[int(i)] }' |
    while read -r one; do
      file=$dir/$one
      if [ ! -s "$file" ]; then continue; fi
      if [ ! -O "$file" ] && [ ! -w "$file" ]; then echo not-ours; break; fi
      fincore -nbr -o RES,SIZE "$file" 2>/dev/null | while read -r resident size; do
        printf 'file\t%s\t%s\n' "$resident" "$size"
      done
    done
}
jit() {
  if [ ! -d "$2" ]; then state=absent
  elif [ -n "$(ls -A "$2" 2>/dev/null | head -n 1)" ]; then state=filled
  else state=empty; fi
  printf 'cache\t%s\t%s\t%s\n' "$1" "$state" "$2"
}
jit_caches() {
  jit flashinfer "${FLASHINFER_WORKSPACE_BASE:-$HOME}/.cache/flashinfer"
  jit triton "${TRITON_CACHE_DIR:-${TRITON_HOME:-$HOME}/.triton/cache}"
  jit torchinductor "${TORCHINDUCTOR_CACHE_DIR:-/tmp/torchinductor_$(id -un)}"
  jit deep_gemm "${SGLANG_DG_CACHE_DIR:-${DG_JIT_CACHE_DIR:-$HOME/.cache/deep_gemm}}"
}
"""

_ROOM: Final = r"""
room() {
  dir=$2
  while [ ! -d "$dir" ]; do dir=$(dirname "$dir"); done
  df -Pk "$dir" 2>/dev/null | awk -v name="$1" -v dir="$dir" '
    NR == 2 { printf "room\t%s\t%s\t%s\t%s\n", name, $4, $2, dir }'
}
"""

_KERNEL: Final = r"""
kernel_log() {
  if dmesg >/dev/null 2>&1; then
    { dmesg --time-format iso 2>/dev/null || dmesg; } | grep -F 'NVRM: Xid' | tail -n 20
  elif [ -n "$(within 5 journalctl -k -q --no-pager -n 1 2>/dev/null)" ]; then
    within 8 journalctl -k -q --no-pager -o short-iso --since '3 days ago' -n 200000 2>/dev/null |
      grep -F 'NVRM: Xid' | tail -n 20
  else
    echo unreadable
  fi
}
toolkit() {
  for one in "${CUDA_HOME:+$CUDA_HOME/bin/nvcc}" "$(command -v nvcc 2>/dev/null)" /usr/local/cuda/bin/nvcc; do
    if [ -x "$one" ]; then printf 'nvcc\t%s\t%s\n' "$("$one" --version 2>/dev/null |
      sed -n 's/.*release \([0-9.]*\).*/\1/p' | head -n 1)" "$one"; return; fi
  done
}
system() {
  printf 'kernel\t%s\n' "$(uname -srm)"
  printf 'os\t%s\n' "$(sed -n 's/^PRETTY_NAME="*\([^"]*\)"*$/\1/p' /etc/os-release 2>/dev/null)"
  printf 'cpu\t%s\n' "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo 2>/dev/null | head -n 1)"
  printf 'cpus\t%s\n' "$(getconf _NPROCESSORS_ONLN 2>/dev/null)"
  printf 'numa\t%s\n' "$(ls -d /sys/devices/system/node/node[0-9]* 2>/dev/null | wc -l | tr -d ' ')"
  printf 'driver\t%s\n' "$(sed -n 's/.*Kernel Module[^0-9]*\([0-9.]*\).*/\1/p' /proc/driver/nvidia/version 2>/dev/null)"
  cat /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor 2>/dev/null | sort | uniq -c |
    while read -r count name; do printf 'governor\t%s\t%s\n' "$name" "$count"; done
}
"""

HOST: Final = (
    PLAIN
    + SECTION
    + PRELUDE
    + _PORT
    + _WEIGHTS
    + _CACHE
    + _ROOM
    + _KERNEL
    + r"""
state=$(expand "$1") port=$2 model=$3 model_hub=$4 drafter=$5 drafter_hub=$6
cd "$HOME" || exit 1
section clock; date +%s | say
section port; port_report "$port" | say
section system; system | say
section toolkit; toolkit | say
section memory; grep -E '^(MemTotal|MemAvailable|Cached):' /proc/meminfo 2>/dev/null | say
section model; weights "$model" "$model_hub" | say
if [ -n "$drafter" ]; then section drafter; weights "$drafter" "$drafter_hub" | say; fi
section page-cache; page_cache "$model" "$model_hub" | say
section jit; jit_caches | say
section room
{
  room state "$state"; room tmp /tmp; room shm /dev/shm
  room model "$(folder_of "$model" "$model_hub" | grep . || echo "$hub")"
} | say
section kernel-log; kernel_log | say
section end
"""
)
"""Arguments: state folder, port, the model and its name in the cache, the drafter and its name there (or nothing).

In the environment: the engine's own variables, since they move caches and programs.
"""
