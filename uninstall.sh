#!/bin/sh
# Removes what install.sh installed: sh uninstall.sh [--to DIR] [--yes]. First pen removes its sandboxes and everything in ~/.pen, after
# a question. The projects stay as they are.
set -eu

fail() {
  printf 'uninstall.sh: %s\n  fix: %s\n' "$1" "$2" >&2
  exit 1
}

to= yes=
while [ $# -gt 0 ]; do
  case $1 in
    --to) [ $# -gt 1 ] || fail '--to needs a directory' 'sh uninstall.sh --to ~/bin'; to=$2; shift 2 ;;
    --to=*) to=${1#--to=}; shift ;;
    --yes) yes=--yes; shift ;;
    -h | --help) echo 'usage: sh uninstall.sh [--to DIR] [--yes]    removes pen, its sandboxes and ~/.pen; projects stay'; exit ;;
    *) fail "unknown argument: $1" 'sh uninstall.sh [--to DIR] [--yes]' ;;
  esac
done
[ -n "$to" ] || to=${HOME:?}/.local/bin

[ -x "$to/pen" ] || fail "$to/pen is not there" 'name the directory that install.sh used: sh uninstall.sh --to DIR'
"$to/pen" uninstall $yes || fail 'pen did not remove everything, and stays' 'do what it says, and run uninstall.sh again'
rm -- "$to/pen"
# Those that install.sh made, if nothing else is in them.
rmdir -- "$to" 2>/dev/null && rmdir -- "${to%/*}" 2>/dev/null || true
echo "removed $to/pen"
