/* Socket families, types and protocols. Sockets are opened and closed, never connected. */
static long make_socket(unsigned long family, unsigned long type, unsigned long protocol) {
  return syscall(SYS_socket, family, type, protocol);
}

#define NO_SOCKET CLOSED " EAFNOSUPPORT EPROTONOSUPPORT"

static void probe_families(void) {
  static const struct { const char *name; int family, type; } families[] = {
    {"unspec", 0, 1}, {"ax25", 3, 2}, {"ipx", 4, 2}, {"appletalk", 5, 2}, {"netrom", 6, 5}, {"atmpvc", 8, 2},
    {"x25", 9, 5}, {"rose", 11, 5}, {"decnet", 12, 5}, {"key", 15, 3}, {"packet", 17, 3}, {"packet-dgram", 17, 2},
    {"econet", 19, 2}, {"atmsvc", 20, 2}, {"rds", 21, 5}, {"irda", 23, 1}, {"pppox", 24, 1}, {"llc", 26, 1},
    {"ib", 27, 1}, {"mpls", 28, 1}, {"can", 29, 3}, {"tipc", 30, 5}, {"bluetooth", 31, 3}, {"iucv", 32, 1},
    {"rxrpc", 33, 2}, {"isdn", 34, 3}, {"phonet", 35, 2}, {"ieee802154", 36, 2}, {"caif", 37, 5}, {"alg", 38, 5},
    {"nfc", 39, 5}, {"vsock", 40, 1}, {"vsock-dgram", 40, 2}, {"kcm", 41, 2}, {"qipcrtr", 42, 2}, {"smc", 43, 1},
    {"xdp", 44, 3}, {"mctp", 45, 2}, {"beyond", 46, 1}, {"negative", -1, 1}};
  char id[64], what[96];
  for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
    snprintf(id, sizeof id, "C30-family-%s", families[i].name);
    snprintf(what, sizeof what, "socket of family %d", families[i].family);
    PROBE(id, what, NO_SOCKET, FILTER, make_socket(families[i].family, families[i].type, 0));
  }
  PROBE("C30-vsock-high", "vsock with dirt in the high half", NO_SOCKET, FILTER, make_socket(HIGH | 40, HIGH | 1, 0));
  PROBE("C30-alg-high", "kernel crypto with dirt in the high half", NO_SOCKET, FILTER, make_socket(HIGH | 38, HIGH | 5, 0));
  PROBE("C30-unix-raw", "Unix socket of an odd type", NO_SOCKET, FILTER, make_socket(1, 3, 0));
  for (int protocol = 1; protocol <= 22; protocol++) {
    snprintf(id, sizeof id, "C31-netlink-%d", protocol);
    snprintf(what, sizeof what, "netlink protocol %d", protocol);
    PROBE(id, what, NO_SOCKET, FILTER, make_socket(16, 3, protocol));
  }
  PROBE("C31-netlink-high", "netfilter with dirt in the high half", NO_SOCKET, FILTER, make_socket(16, 3, HIGH | 12));
  for (int family = 2; family <= 10; family += 8) {
    static const struct { const char *name; int type, protocol; } kinds[] = {
      {"raw-icmp", 3, 1}, {"raw-tcp", 3, 6}, {"raw-any", 3, 255}, {"packet", 10, 3}, {"rdm", 4, 0}, {"dccp", 6, 33},
      {"seqpacket", 5, 132}, {"sctp", 1, 132}, {"mptcp", 1, 262}, {"udplite", 2, 136}, {"ping", 2, 1}, {"ping6", 2, 58},
      {"smc", 1, 256}, {"l2tp", 2, 115}, {"raw-cloexec", 3 | 02000000, 1}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
      snprintf(id, sizeof id, "C32-inet%d-%s", family == 2 ? 4 : 6, kinds[i].name);
      snprintf(what, sizeof what, "internet socket of type %d, protocol %d", kinds[i].type, kinds[i].protocol);
      PROBE(id, what, NO_SOCKET, FILTER, make_socket(family, kinds[i].type, kinds[i].protocol));
    }
  }
  PROBE("C32-mptcp-high", "MPTCP with dirt in the high half", NO_SOCKET, FILTER, make_socket(2, 1, HIGH | 262));
  PROBE("C33-pair-tipc", "socketpair of TIPC", NO_SOCKET, FILTER, syscall(SYS_socketpair, 30, 1, 0, (int[2]){0}));
  PROBE("C33-pair-inet", "socketpair of TCP", NO_SOCKET, FILTER, syscall(SYS_socketpair, 2, 1, 0, (int[2]){0}));
  PROBE("C34-tcp-ulp", "kernel TLS under a TCP socket", "ENOPROTOOPT", FILTER,
        setsockopt(make_socket(2, 1, 0), 6, 31, "tls", 4));
}
