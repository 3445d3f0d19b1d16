"""The script that asks an engine for its version and flags, and remembers the answer on the host.

`--help` of SGLang imports torch, 10 to 20 seconds. What it answers depends on the program, its interpreter, the
package's source files, the plugins beside it and the environment, so that is the key under which it is kept:
`STATE/cache/help-KEY`. Where a wrapper hides what it starts, no key can be honest, and nothing is kept.
"""

from __future__ import annotations

from typing import Final

from ddconsole.engines.launch.scripts import PLAIN, PRELUDE
from ddconsole.engines.sglang.preflight.sections import SECTION

HELP_S: Final = 120
"""Seconds that `--help` may take; a cold page cache and a slow disk make it far more than the usual 20."""

CACHED_ANSWERS: Final = 8
"""Answers kept on a host, about 100 KB each."""

PROBE: Final = r"""
import hashlib, importlib.metadata as metadata, importlib.util as util, os, re, sys
package = sys.argv[1]
print("python", sys.executable, sys.version.split()[0], sep="\t")
try:
    spec = util.find_spec(package)
except (ImportError, ValueError):
    spec = None
if spec is None:
    print("no-package", package, sep="\t")
    sys.exit()
places = list(spec.submodule_search_locations or []) or [spec.origin]
digest, count = hashlib.sha256(), 0
for place in places:
    for folder, folders, files in os.walk(place):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            if name.endswith((".py", ".so")):
                about = os.stat(os.path.join(folder, name))
                said = "%s %d %d\n" % (os.path.join(folder, name), about.st_size, about.st_mtime_ns)
                digest.update(said.encode("utf-8", "surrogateescape"))
                count += 1
print("package", places[0], sep="\t")
print("tree", count, digest.hexdigest()[:32], sep="\t")
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
owner = package
if version(owner) is None and hasattr(metadata, "packages_distributions"):
    owner = metadata.packages_distributions().get(package, [package])[0]
print("distribution", owner, version(owner) or "", sep="\t")
known = ["torch", "triton", "transformers", "flashinfer-python", "sglang-kernel", "sgl-kernel", "nvidia-nccl-cu12",
         "nvidia-nccl-cu13", "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime", "sgl-deep-gemm", "xgrammar"]
for name in known:
    if version(name):
        print("version", name, version(name), sep="\t")
try:
    needs = metadata.requires(owner) or []
except metadata.PackageNotFoundError:
    needs = []
for need in needs:
    exact = re.match(r"(flashinfer[-_]python|sglang-kernel|sgl-kernel)(?:\[.*\])? *== *([^ ;,]+) *(;.*)?$", need)
    if exact and "extra" not in (exact[3] or ""):
        print("needs", exact[1].replace("_", "-"), exact[2], version(exact[1]) or "", sep="\t")
points, group = metadata.entry_points(), "sglang.srt.plugins"
plugins = points.select(group=group) if hasattr(points, "select") else points.get(group, [])
for plugin in sorted(plugins, key=lambda point: point.name):
    print("plugin", plugin.name, plugin.value, sep="\t")
"""
"""Python of the engine: where its package is and what its source files are, by names, sizes and times; no import."""

_BODY: Final = r"""
state=$(expand "$1") environment=$2 probe=$3; shift 3
cd "$HOME" || exit 1
COLUMNS=400; export COLUMNS
program=$(command -v "$1" 2>/dev/null)
if [ -z "$program" ]; then section missing; section end; exit; fi
real=$(readlink -f "$program" 2>/dev/null || echo "$program")
python= package=
# PYTHON ... -m PACKAGE.MODULE, or a console script that names its interpreter and imports PACKAGE
module_of() { while [ $# -gt 1 ]; do if [ "$1" = -m ]; then echo "${2%%.*}"; return; fi; shift; done; }
case ${1##*/} in
  python*) python=$program package=$(module_of "$@") ;;
  *)
    if [ "$(head -c 2 "$real" 2>/dev/null | tr -d '\0')" = '#!' ]; then
      read -r first <"$real"
      case $first in
        "#!/usr/bin/env python"*) python=${first#"#!/usr/bin/env "} ;;
        "#!"*python*) python=${first#"#!"} ;;
      esac
      if [ -n "$python" ]; then
        package=$(sed -n 's/^from \([A-Za-z_][A-Za-z0-9_]*\)[A-Za-z0-9_.]* import .*/\1/p' "$real" | head -n 1)
      fi
    fi ;;
esac
identity() {
  printf 'program\t%s\t%s\n' "$program" "$real"
  printf 'file\t%s\n' "$(stat -Lc '%s %Y' "$real" 2>/dev/null || ls -lL "$real")"
  printf 'command\t%s\n' "$(printf '%s\n' "$@" | cksum)"
  printf 'environment\t%s\n' "$environment"
  if [ -n "$python" ] && [ -n "$package" ]; then
    within 30 "$python" -c "$probe" "$package" 2>/dev/null
  fi
}
known=$(identity "$@")
section identity; printf '%s\n' "$known" | say
case $known in *"
no-package$tab"*) section end; exit ;; esac
file=
case $known in *"
tree$tab"*) file=$state/cache/help-$(printf '%s\n' "$known" | cksum | tr -dc 0-9) ;; esac
# the whole identity stands in the file too: two keys may have one checksum
if [ -n "$file" ] && [ -f "$file" ] && [ -f "$file.key" ] && [ "$known" = "$(cat "$file.key")" ]; then
  section read; printf 'remembered\t%s\n' "$(stat -c %Y "$file" 2>/dev/null)" | say
  section help; say <"$file"
  section end; exit
fi
began=$(date +%s)
answer=$(within @HELP@ "$@" --help 2>&1 </dev/null)
status=$?
case $status$answer in 0*"  --version"*) answer="$answer
= $(within 30 "$@" --version 2>/dev/null </dev/null | head -n 1)" ;; esac
section read; printf 'now\t%s\t%s\n' "$status" "$(($(date +%s) - began))" | say
section help; printf '%s\n' "$answer" | say
section end
if [ "$status" = 0 ] && [ -n "$file" ]; then
  umask 077
  {
    mkdir -p "$state/cache" && printf '%s\n' "$answer" >"$file.$$" && printf '%s\n' "$known" >"$file.key.$$" &&
      mv "$file.$$" "$file" && mv "$file.key.$$" "$file.key"
    ls -t "$state/cache/"help-*[0-9] | tail -n +@KEPT@ | while IFS= read -r old; do rm -f "$old" "$old.key"; done
  } 2>/dev/null # a full disk costs the memory, not the answer
fi
exit 0
"""

ENGINE_ANSWERS: Final = (
    PLAIN + SECTION + PRELUDE + _BODY.replace("@HELP@", str(HELP_S)).replace("@KEPT@", str(CACHED_ANSWERS + 1))
)
"""Arguments: state folder, a digest of the environment, the probe, then the engine's command.

In the environment: the engine's own variables.
"""
