#!/bin/sh
# Runs in new network and mount namespaces, which become the machine that pen runs on. The outside is a second
# namespace that answers at every address, so that it receives everything that leaves the machine.
# Arguments: the directory of the world, the bun to use. Everything ends with stdin, or after ten minutes, and the
# directory is removed: a test process that dies cannot clean up.
set -e
dir=$1 bun=$2
here=${0%/*}
pids=
trap 'kill $pids 2>/dev/null; wait; rm -rf -- "$dir"' EXIT
trap 'exit 0' TERM INT HUP

mount --bind "$dir/hosts" /etc/hosts
mount --bind "$dir/resolv.conf" /etc/resolv.conf
mount --bind "$dir/ca-certificates.crt" /etc/ssl/certs/ca-certificates.crt
# A daemon outside would not see that bundle: this machine has no added authorities.
[ ! -d /usr/local/share/ca-certificates ] || mount -t tmpfs none /usr/local/share/ca-certificates
ip link set lo up

mkfifo "$dir/outside.in"
unshare --net timeout 600 "$bun" "$here/servers.ts" outside "$dir" <"$dir/outside.in" &
outside=$!
pids="$pids $outside"
exec 4>"$dir/outside.in"
until [ "$(readlink /proc/$outside/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done

ip link add h0 type veth peer name o0 netns "$outside"
ip addr add 192.0.2.1/24 dev h0
ip -6 addr add 2600:cafe::1/64 dev h0 nodad
ip link set h0 up
nsenter -t "$outside" -n ip -batch - <<BATCH
link set lo up
addr add 192.0.2.2/24 dev o0
addr add 2600:cafe::2/64 dev o0 nodad
link set o0 up
route add local default dev lo
route add local ::/0 dev lo table main
BATCH
ip route add default via 192.0.2.2
ip -6 route add default via 2600:cafe::2

nsenter -t "$outside" -n timeout 600 /usr/bin/python3 "$here/packets.py" o0 "$dir/left.log" <"/dev/null" &
pids="$pids $!"
timeout 600 /usr/bin/python3 "$here/packets.py" lo "$dir/loopback.log" </dev/null &
pids="$pids $!"
timeout 600 "$bun" "$here/servers.ts" host "$dir" </dev/null &
pids="$pids $!"
echo go >&4
for log in left.log loopback.log outside.ready host.ready; do
  tries=0
  until [ -e "$dir/$log" ] || [ $((tries += 1)) -gt 500 ]; do sleep 0.01; done
  [ -e "$dir/$log" ]
done
echo "$$ $outside"
# Until the parent closes stdin.
cat >/dev/null
