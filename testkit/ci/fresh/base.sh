# Sourced by fresh.sh: makes the bare root of every step, with this machine's settings for reaching registries.

suite=bookworm

# Environment variables that name registries and the way to them. No other variable is passed on.
reaching='^((https?|ftp|no|all)_proxy|(HTTPS?|FTP|NO|ALL)_PROXY|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|GIT_SSL_CAINFO'
reaching+='|npm_config_(registry|cafile|proxy|https_proxy|noproxy|strict_ssl)|(PIP|UV)_(INDEX|INDEX_URL|DEFAULT_INDEX|EXTRA_INDEX_URL|FIND_LINKS|CERT|TRUSTED_HOST|DEFAULT_TIMEOUT|PROXY))='

settings() { env -0 | grep -zE "$reaching"; }

sources() { # sources ROOT: copies apt's Debian mirrors and its settings for reaching them
  local root=$1 line
  line=$(node testkit/ci/fresh/sources.ts "$suite")
  if [ -n "$line" ]; then echo "$line" >"$root/etc/apt/sources.list"; fi
  # Settings of this machine for proxies, validity dates, certificates and retries; no hooks.
  apt-config dump --format '%F "%v";%n' | grep -E '^Acquire::(http|https|ftp|Check|Retries|ForceIPv[46]|AllowInsecure)' >"$root/etc/apt/apt.conf.d/10machine" || true
  for line in /etc/apt/auth.conf /etc/apt/auth.conf.d; do
    if [ -e "$line" ]; then cp -a "$line" "$root/etc/apt/"; fi
  done
}

authorities() { # authorities ROOT: copies the files that the settings name, and the local certificates that ca-certificates adds
  local root=$1 value
  while IFS= read -r -d '' value; do
    value=${value#*=}
    if [[ $value = /* && -f $value ]]; then cp -L --parents "$value" "$root"; fi
  done < <(settings)
  if [ -d /usr/local/share/ca-certificates ]; then cp -a --parents /usr/local/share/ca-certificates "$root"; fi
}

configurations() { # configurations ROOT: copies the configuration of npm, pip and uv
  local root=$1 file
  mkdir -p "$root/usr/local/etc"
  for file in "$(npm config get userconfig)" "$(npm config get globalconfig)"; do
    # Both files become the global npmrc of the npm inside.
    if [ -f "$file" ]; then cat "$file" >>"$root/usr/local/etc/npmrc"; fi
  done
  file=$(npm config get cafile)
  if [[ $file = /* && -f $file ]]; then cp -L --parents "$file" "$root"; fi
  for file in /etc/pip.conf /etc/uv/uv.toml; do
    if [ -f "$file" ]; then cp -L --parents "$file" "$root"; fi
  done
  for file in .config/pip/pip.conf .pip/pip.conf .config/uv/uv.toml; do
    if [ -f "$HOME/$file" ]; then (cd "$HOME" && cp -L --parents "$file" "$root/root"); fi
  done
}

# Installs Node (default: the oldest that package.json allows) and the npm that came with it, both from the registry.
node_and_npm() { # node_and_npm ROOT SCRATCH [MAJOR]
  local root=$1 scratch=$2 major architecture
  major=${3:-$(node -p 'require("./package.json").engines.node.match(/\d+/)[0]')}
  architecture=$(node -p process.arch)
  mkdir -p "$scratch/node" "$scratch/npm" "$root/usr/local/lib/node_modules/npm"
  (cd "$scratch" && npm pack --silent "node-linux-$architecture@$major" "npm@${npm_of[$major]}" >/dev/null)
  tar -xzf "$scratch"/node-linux-*.tgz -C "$scratch/node" --strip-components=1
  tar -xzf "$scratch"/npm-*.tgz -C "$root/usr/local/lib/node_modules/npm" --strip-components=1
  install -m 755 "$scratch/node/bin/node" "$root/usr/local/bin/node"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
  ln -s ../lib/node_modules/npm/bin/npx-cli.js "$root/usr/local/bin/npx"
  chmod 755 "$root"/usr/local/lib/node_modules/npm/bin/np[mx]-cli.js
}
declare -A npm_of=([20]=10 [22]=10 [24]=11)

base() { # base FOLDER: FOLDER/base
  local folder=$1 root=$1/base mirror
  mkdir -p "$root" "$folder/scratch"
  mirror=$(node testkit/ci/fresh/sources.ts "$suite" --mirror)
  # debootstrap runs in its own namespaces, so that its processes and mounts end with this script. `wait` lets the script handle signals.
  setpriv --pdeathsig KILL -- unshare --mount --pid --fork --kill-child -- \
    debootstrap --variant=minbase "$suite" "$root" ${mirror:+"$mirror"} >"$folder/debootstrap.log" 2>&1 </dev/null &
  running=$!
  wait "$running" || {
    tail -n 20 "$folder/debootstrap.log" >&2
    fail 'NOTHING WAS CHECKED: debootstrap failed'
  }
  running=''
  sources "$root"
  authorities "$root"
  configurations "$root"
  node_and_npm "$root" "$folder/scratch"
  # Packages are not synced to disk: a temporary root need not survive a power failure.
  echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$folder/scratch"
}
