#!/bin/sh
# npm run bench: every bench/*.ts in turn, or those named as arguments (`npm run bench -- decide`).
case $0 in */*) cd -- "${0%/*}/.." || exit 1 ;; *) cd .. || exit 1 ;; esac
sh scripts/prepare.sh test && sh scripts/prepare.sh run || exit 1
failed=0
[ $# = 0 ] && for file in bench/*.ts; do set -- "$@" "$(basename "$file" .ts)"; done
for name; do
  echo "== $name"
  node_modules/bun/bin/bun.exe "bench/$name.ts" || failed=1
done
exit $failed
