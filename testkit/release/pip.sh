#!/usr/bin/env bash
# Installs the Python package from the index into an empty environment, and imports it.
# Environment: work, pypi_registry, version of install.sh.
set -euo pipefail
from=$(date +%s%3N)
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-cache-dir --index-url "$pypi_registry/simple/" "swefarm==$version"
cd "$work"
env -i PATH=/usr/bin:/bin "$work/venv/bin/python" - "$version" <<'PY'
import importlib.metadata, sys
import swefarm
assert importlib.metadata.version("swefarm") == sys.argv[1]
assert all(hasattr(swefarm, name) for name in swefarm.__all__)
PY
printf 'pip: installed and imported after %s ms, %s bytes\n' $(($(date +%s%3N) - from)) \
  "$(du -sb "$work"/venv/lib/python*/site-packages/swefarm | cut -f 1)"
