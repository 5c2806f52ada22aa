#!/bin/sh
# npm test: prepares what the tests need, then runs scripts/test.ts. With suite names as arguments, only those.
case $0 in */*) cd -- "${0%/*}/.." || exit 1 ;; *) cd .. || exit 1 ;; esac
needs=npm
[ $# = 0 ] && needs=test
for suite; do
  case $suite in types | lint | build | unit | fuzz) ;; *) needs=test ;; esac
done
if ! sh scripts/prepare.sh "$needs"; then
  echo '0 passed, 1 failed'
  exit 1
fi
exec node_modules/bun/bin/bun.exe scripts/test.ts "$@"
