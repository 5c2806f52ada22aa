#!/bin/sh
# Prepares this clone: `prepare.sh run` for the ./pen shim (and builds), `prepare.sh test` for npm test, `prepare.sh npm`
# for the npm packages alone. Installs only what is missing and prints each step on stderr. PEN_NO_INSTALL=1 forbids it.
#
# The caller's directory may be hostile: everything runs in the clone, and PATH loses relative entries and entries
# below the caller's directory, so that a project cannot bring its own npm.

set -u
unset CDPATH NODE_OPTIONS NODE_PATH BUN_OPTIONS BUN_BE_BUN BUN_INSPECT
what=${1:?run, test or npm}
from=$PWD
case $0 in */*) cd -- "${0%/*}/.." || exit 125 ;; *) cd .. || exit 125 ;; esac
root=$(pwd -P)

say() { printf 'pen: %s\n' "$*" >&2; }
fail() { say "$@"; exit 125; }

trusted_path() {
  rest=$PATH: kept=
  while [ -n "$rest" ]; do
    entry=${rest%%:*} rest=${rest#*:}
    case $entry in /*) ;; *) continue ;; esac
    case $from in
      / | "${HOME-}" | "$root" | "$root"/*) ;;
      *) case $entry/ in "$from"/*) continue ;; esac ;;
    esac
    kept=$kept$entry:
  done
  printf %s "$kept/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/home/linuxbrew/.linuxbrew/bin"
}
PATH=$(trusted_path)
export PATH

has() { command -v "$1" >/dev/null 2>&1; }

package_manager() {
  for name in apt-get dnf pacman apk brew; do
    has "$name" && { printf %s "$name"; return; }
  done
}

install_command() {
  case $1 in
    apt-get) printf 'apt-get install -y --no-install-recommends' ;;
    dnf) printf 'dnf install -y' ;;
    pacman) printf 'pacman -S --needed --noconfirm' ;;
    apk) printf 'apk add' ;;
    brew) printf 'brew install' ;;
  esac
}

# Package lists of a new machine may be absent or old. Retry a failed install once after an update.
install_packages() {
  manager=$1 as=$2
  shift 2
  DEBIAN_FRONTEND=noninteractive
  export DEBIAN_FRONTEND
  $as $(install_command "$manager") "$@" </dev/null >&2 && return
  case $manager in
    apt-get) $as apt-get update </dev/null >&2 ;;
    pacman) $as pacman -Sy --noconfirm </dev/null >&2 ;;
    apk) $as apk update </dev/null >&2 ;;
  esac
  $as $(install_command "$manager") "$@" </dev/null >&2
}

# Arguments: groups. Installs the packages of scripts/system-packages.txt for missing commands.
system_packages() {
  manager=$(package_manager) commands='' packages=''
  while read -r group command apt dnf pacman apk brew; do
    case " $* " in *" $group "*) ;; *) continue ;; esac
    has "$command" && continue
    case $manager in
      apt-get) package=$apt ;; dnf) package=$dnf ;; pacman) package=$pacman ;; apk) package=$apk ;;
      brew) package=$brew ;; *) package=$apt ;;
    esac
    commands="$commands $command"
    [ "$package" = - ] && continue
    packages="$packages $(printf %s "$package" | tr , ' ')"
  done <scripts/system-packages.txt
  [ -z "$commands" ] && return
  packages=$(printf '%s\n' $packages | sort -u | tr '\n' ' ')
  packages=${packages% }

  if [ -z "$manager" ] || [ -z "$packages" ]; then
    fail "missing:$commands. Install these packages by hand (named as on Debian): ${packages:-none known}"
  fi
  line="$(install_command "$manager") $packages"
  if [ "${PEN_NO_INSTALL-}" = 1 ]; then
    fail "missing:$commands. PEN_NO_INSTALL=1 forbids installing; run: $line"
  fi
  as=''
  if [ "$manager" != brew ] && [ "$(id -u)" != 0 ]; then
    has sudo || fail "missing:$commands. Not root and no sudo here; as root run: $line"
    as=sudo
  fi
  say "installing what is missing: ${as:+sudo }$line"
  # shellcheck disable=SC2086
  install_packages "$manager" "$as" $packages || fail "the install failed. fix: ${as:+sudo }$line"
}

# Install scripts of npm packages never run here. Bun's only moves its binary into place: place_bun does that.
# node_modules/.pen-lock is the installed lock file. Without it, a manual npm ci is recognized by its time.
npm_installed() {
  if [ -f "$1/node_modules/.pen-lock" ]; then
    cmp -s "$1/package-lock.json" "$1/node_modules/.pen-lock"
  else
    [ -n "$(find "$1/node_modules/.package-lock.json" -newer "$1/package-lock.json" 2>/dev/null)" ]
  fi
}

# Installs the npm packages of one directory; $2 says what they are.
npm_packages() {
  npm_installed "$1" || npm_install "$1" "$2"
  cmp -s "$1/package-lock.json" "$1/node_modules/.pen-lock" || cp "$1/package-lock.json" "$1/node_modules/.pen-lock"
}

npm_install() {
  if [ "${PEN_NO_INSTALL-}" = 1 ]; then
    fail "$2 are missing. PEN_NO_INSTALL=1 forbids installing; in $root/$1 run: npm ci --ignore-scripts"
  fi
  has node && has npm || fail 'node and npm are missing: install Node.js 20 or newer (packages nodejs and npm; with brew: node)'
  node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' ||
    fail "Node.js is too old ($(node --version)): install version 20 or newer"
  say "installing $2…"
  (cd "$1" && npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error </dev/null >&2) ||
    fail "npm ci failed in $root/$1"
}

# There may be several variants (glibc and musl): use the one that runs.
place_bun() {
  node_modules/bun/bin/bun.exe --version >/dev/null 2>&1 && return
  for candidate in node_modules/@oven/bun-*/bin/bun; do
    "$candidate" --version >/dev/null 2>&1 || continue
    ln -f "$candidate" node_modules/bun/bin/bun.exe 2>/dev/null || cp "$candidate" node_modules/bun/bin/bun.exe
    return
  done
  fail "npm brought no Bun that runs here ($(uname -sm))"
}

stale() {
  [ -x dist/pen ] && [ -f dist/.built ] || return 0
  changed=$(find src image scripts package.json package-lock.json tsconfig.json \( -newer dist/.built -o -cnewer dist/.built \) 2>/dev/null) ||
    changed=$(find src image scripts package.json package-lock.json tsconfig.json -newer dist/.built)
  [ -n "$changed" ]
}

build() {
  stale || return 0
  say 'building…'
  node_modules/bun/bin/bun.exe scripts/build.ts </dev/null >&2 || fail 'the build failed'
}

# An unprivileged user, for tests that run as root and must show the same for every user.
test_user() {
  [ "$(id -u)" = 0 ] && [ "$(uname -s)" = Linux ] || return 0
  id pentest >/dev/null 2>&1 || { say 'creating the test user pentest'; useradd -m -s /bin/sh pentest || fail 'useradd failed'; }
  for map in /etc/subuid /etc/subgid; do
    grep -q '^pentest:' "$map" 2>/dev/null || printf 'pentest:%s:65536\n' "$(next_range "$map")" >>"$map"
  done
}
next_range() { awk -F: 'BEGIN { n = 100000 } $2 + $3 > n { n = $2 + $3 } END { print n }' "$1" 2>/dev/null || echo 100000; }

# A lock: a symlink is made atomically and contains the owner's pid. A dead owner's lock is taken over. If two
# take over at once both build, which is safe because each build is renamed into place when complete.
lock() {
  mkdir -p dist 2>/dev/null && [ -w dist ] || fail "cannot write $root, where pen must be built. fix: run ./pen once as its owner"
  said=
  until ln -s "$$" dist/.lock 2>/dev/null; do
    owner=$(readlink dist/.lock) || { sleep 0.2; continue; }
    if ! kill -0 "$owner" 2>/dev/null && [ ! -d "/proc/$owner" ]; then
      rm -f dist/.lock
      continue
    fi
    [ -n "$said" ] || { say "waiting for process $owner, which is preparing this clone"; said=1; }
    sleep 0.2
  done
  trap 'rm -f dist/.lock' EXIT
  trap 'exit 125' HUP INT TERM
}

# bubblewrap exists only on Linux. Elsewhere the default backend is another one with its own tools.
case $(uname -s) in Linux) backend=run ;; *) backend= ;; esac
case $what in
  run) [ -z "$backend" ] || system_packages "$backend" ;;
  test) system_packages $backend test && test_user ;;
  npm) ;;
  *) fail "prepare.sh: run, test or npm, not $what" ;;
esac
[ "$what" = run ] && ! stale && exit 0
lock
npm_packages . 'npm packages'
place_bun
[ "$what" = test ] && npm_packages test/agents 'the agents that tests drive'
[ "$what" = test ] && npm_packages test/library 'the frameworks that tests use the library with'
[ "$what" = run ] && build
exit 0
