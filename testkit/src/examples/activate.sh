# Replaces conda's activate script in images that are made without conda: environments are venvs under envs/.
#   source /opt/miniconda3/bin/activate [NAME] ; conda activate NAME ; conda deactivate
# Like conda, it changes PATH, CONDA_PREFIX and CONDA_DEFAULT_ENV, and sources NAME/etc/conda/activate.d/*.sh.

_conda_path_without_environments() {
  local rest="${PATH:-}:" kept='' part
  while [ -n "$rest" ]; do
    part="${rest%%:*}"
    rest="${rest#*:}"
    case "$part" in
      '' | /opt/miniconda3/*) ;;
      *) kept="${kept:+$kept:}$part" ;;
    esac
  done
  printf '%s' "$kept"
}

_conda_enter() {
  local name="$1" prefix=/opt/miniconda3 hook
  if [ "$name" != base ]; then
    prefix="/opt/miniconda3/envs/$name"
  fi
  if [ ! -d "$prefix" ]; then
    printf 'EnvironmentNameNotFound: no environment "%s" under /opt/miniconda3/envs\n' "$name" >&2
    return 1
  fi
  PATH="$(_conda_path_without_environments)"
  if [ "$name" != base ]; then
    PATH="$prefix/bin:/opt/miniconda3/bin:$PATH"
  else
    PATH="/opt/miniconda3/bin:$PATH"
  fi
  export PATH CONDA_PREFIX="$prefix" CONDA_DEFAULT_ENV="$name"
  for hook in "$prefix"/etc/conda/activate.d/*.sh; do
    if [ -r "$hook" ]; then . "$hook"; fi
  done
  hash -r
}

conda() {
  case "${1:-}" in
    activate) _conda_enter "${2:-base}" ;;
    deactivate) _conda_enter base ;;
    *)
      printf 'conda: only "activate" and "deactivate" are here\n' >&2
      return 2
      ;;
  esac
}

_conda_enter "${1:-base}"
