#!/bin/sh
# Installs pen for this user: sh install.sh [--to DIR]. The default is ~/.local/bin. It runs in a release directory, where it checks the
# program against SHA256SUMS, or in a clone, where it builds the program. It needs no root and no network.
set -eu
case $0 in */*) here=${0%/*} ;; *) here=. ;; esac
here=$(cd -- "$here" && pwd -P)

fail() {
  printf 'install.sh: %s\n  fix: %s\n' "$1" "$2" >&2
  exit 1
}

to=
while [ $# -gt 0 ]; do
  case $1 in
    --to) [ $# -gt 1 ] || fail '--to needs a directory' 'sh install.sh --to ~/bin'; to=$2; shift 2 ;;
    --to=*) to=${1#--to=}; shift ;;
    -h | --help) echo 'usage: sh install.sh [--to DIR]    installs pen in DIR, by default in ~/.local/bin'; exit ;;
    *) fail "unknown argument: $1" 'sh install.sh [--to DIR]' ;;
  esac
done
[ -n "$to" ] || to=${HOME:?}/.local/bin

sum_of() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum <"$1"; else shasum -a 256 <"$1"; fi | cut -d ' ' -f 1
}

if [ -f "$here/SHA256SUMS" ]; then
  case $(uname -sm) in
    'Linux x86_64') platform=linux-x64 ;;
    'Linux aarch64') platform=linux-arm64 ;;
    'Darwin arm64') platform=darwin-arm64 ;;
    'Darwin x86_64') platform=darwin-x64 ;;
    *) fail "there is no pen for $(uname -sm)" 'use Linux or macOS on x86-64 or arm64' ;;
  esac
  program=$here/pen-$platform
  [ -f "$program" ] || fail "$program is missing" 'get the whole release directory again'
  expected=$(grep " pen-$platform\$" "$here/SHA256SUMS" | cut -d ' ' -f 1)
  actual=$(sum_of "$program")
  [ -n "$expected" ] && [ "$actual" = "$expected" ] ||
    fail "pen-$platform is not the file that SHA256SUMS names: its sum is $actual" 'get the release directory again, and do not run this file'
else
  [ -f "$here/scripts/build.ts" ] || fail "$here has no SHA256SUMS" 'run install.sh in the release directory, or in a clone'
  "$here/pen" version >/dev/null
  program=$here/dist/pen
fi

mkdir -p -- "$to"
new=$to/.pen.$$
trap 'rm -f -- "$new"' EXIT
cp -- "$program" "$new"
chmod 755 "$new"
version=$("$new" version) || fail "$program does not run on this machine" 'pen needs glibc: it does not run on Alpine (musl)'
mv -f -- "$new" "$to/pen"
echo "installed $version: $to/pen"
case :$PATH: in
  *:"$to":*) ;;
  *) echo "  $to is not in your PATH. fix: add this line to the profile of your shell: export PATH=\"$to:\$PATH\"" ;;
esac
echo '  next: pen doctor says what this machine lacks; remove pen with uninstall.sh'
