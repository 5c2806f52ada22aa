#!/bin/sh
# pen of the npm package: becomes the program in the package for this platform, which npm installs beside this package
# or inside it. Nothing is looked up in the current directory or in the caller's PATH.
self=$0
while [ -L "$self" ]; do
  link=$(PATH=/usr/bin:/bin:/run/current-system/sw/bin readlink "$self") || exit 125
  case $link in /*) self=$link ;; *) case $self in */*) self=${self%/*}/$link ;; *) self=$link ;; esac ;; esac
done
case $self in /*) home=${self%/*}/.. ;; */*) home=./${self%/*}/.. ;; *) home=.. ;; esac

system=$(PATH=/usr/bin:/bin:/run/current-system/sw/bin uname -sm)
case $system in
  'Linux x86_64') package=pen-sandbox-linux-x64 ;;
  'Linux aarch64') package=pen-sandbox-linux-arm64 ;;
  'Darwin arm64') package=pen-sandbox-darwin-arm64 ;;
  'Darwin x86_64') package=pen-sandbox-darwin-x64 ;;
  *) package= ;;
esac
if [ -n "$package" ]; then
  for program in "$home/node_modules/$package/dist/pen" "$home/../$package/dist/pen"; do
    [ -x "$program" ] && exec "$program" "$@"
  done
fi
echo "pen: MISSING_TOOL: no package with pen's program for $system is installed" >&2
echo '  fix: npm install pen-sandbox, without --omit=optional; there is none for musl (Alpine) and Windows' >&2
exit 125
