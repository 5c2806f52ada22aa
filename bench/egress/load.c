/* A small bounded load generator and the server it talks to. Compiled by bench/egress.ts when it runs.
 *
 *   load serve ADDRESS CERTIFICATE KEY                    source on 9001, sink on 9002, echo on 9003, HTTPS on 9004
 *   load get|put HOST SECONDS STREAMS [PROXY_PORT]        bytes down or up through one port
 *   load connections HOST COUNT THREADS [PROXY_PORT]      connect, send and receive four bytes, close; warms up first
 *   load trips HOST COUNT [PROXY_PORT]                    four bytes there and back on one connection
 *   load hold HOST COUNT SECONDS [PROXY_PORT]             many open at once, each asked twice
 *
 * Each prints one line of JSON. PROXY_PORT is an HTTP proxy on 127.0.0.1; without, HOST is dialled.
 * With https://HOST the same is measured by HTTPS requests to port 9004. The client checks no certificate: a proxy that
 * opens TLS shows one of its own.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SOURCE = 9001, SINK = 9002, ECHO = 9003, HTTPS = 9004, MOST_FDS = 65536, BLOCK = 262144 };
static struct sockaddr_in target;
static const char *host;
static int proxy_port;
static char kind[MOST_FDS];
static char block[BLOCK];
/* The TLS of each descriptor that has it. */
static SSL *tls[MOST_FDS];
static SSL_CTX *client_tls, *server_tls;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static void fail(const char *what) {
  fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
  exit(1);
}

static ssize_t put(int fd, const void *bytes, size_t size) {
  return tls[fd] ? SSL_write(tls[fd], bytes, size) : send(fd, bytes, size, 0);
}

static ssize_t take(int fd, void *bytes, size_t size) {
  return tls[fd] ? SSL_read(tls[fd], bytes, size) : recv(fd, bytes, size, 0);
}

static void drop(int fd) {
  if (tls[fd]) SSL_free(tls[fd]);
  tls[fd] = NULL;
  close(fd);
}

/* Reads until a head is complete. Answers how many bytes were read, or -1. */
static int take_head(int fd, char *text, int most) {
  for (int size = 0; size < most - 1;) {
    ssize_t n = take(fd, text + size, most - 1 - size);
    if (n <= 0) return -1;
    text[size += n] = 0;
    if (strstr(text, "\r\n\r\n")) return size;
  }
  return -1;
}

static int listener(const char *address, int port, int flags) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
  int on = 1, fd = socket(AF_INET, SOCK_STREAM | flags, 0);
  inet_pton(AF_INET, address, &at.sin_addr);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 4096)) fail("listen");
  return fd;
}

static void serve_one(int fd, unsigned events) {
  if (kind[fd] == 's' && (events & EPOLLOUT)) {
    for (int i = 0; i < 16; i++) {
      ssize_t n = send(fd, block, sizeof block, 0);
      if (n < 0 && errno == EAGAIN) return;
      if (n < 0) break;
    }
    if (!(events & (EPOLLERR | EPOLLHUP))) return;
  }
  static char got[BLOCK];
  for (int i = 0; i < 16; i++) {
    ssize_t n = recv(fd, got, kind[fd] == 'e' ? 4096 : sizeof got, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0 || (kind[fd] == 'e' && send(fd, got, n, 0) < 0)) {
      close(fd);
      return;
    }
    if (kind[fd] != 'k') return;
  }
}

/* GET /source never ends, PUT /sink is read to its end, everything else gets four bytes. */
static void *serve_https(void *of) {
  int fd = (int)(long)of;
  char head[4096], *at;
  static __thread char got[BLOCK];
  if (SSL_accept(tls[fd]) == 1)
    for (int size; (size = take_head(fd, head, sizeof head)) > 0;) {
      if (!strncmp(head, "GET /source", 11)) {
        char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n";
        put(fd, answer, sizeof answer - 1);
        while (put(fd, block, sizeof block) > 0);
        break;
      }
      if (!strncmp(head, "PUT ", 4)) {
        at = strcasestr(head, "content-length:");
        double left = (at ? atof(at + 15) : 0) - (size - (strstr(head, "\r\n\r\n") + 4 - head));
        for (ssize_t n; left > 0 && (n = take(fd, got, sizeof got)) > 0;) left -= n;
        if (left > 0) break;
      }
      char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour";
      if (put(fd, answer, sizeof answer - 1) <= 0) break;
    }
  drop(fd);
  return NULL;
}

static void *accept_https(void *of) {
  int fd = (int)(long)of, on = 1;
  for (int got; (got = accept(fd, NULL, NULL)) >= 0;) {
    pthread_t id;
    setsockopt(got, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    tls[got] = SSL_new(server_tls);
    SSL_set_fd(tls[got], got);
    pthread_create(&id, NULL, serve_https, (void *)(long)got);
    pthread_detach(id);
  }
  return NULL;
}

static void serve(const char *address, const char *certificate, const char *key) {
  pthread_t id;
  server_tls = SSL_CTX_new(TLS_server_method());
  if (SSL_CTX_use_certificate_chain_file(server_tls, certificate) != 1 ||
      SSL_CTX_use_PrivateKey_file(server_tls, key, SSL_FILETYPE_PEM) != 1)
    fail("certificate");
  int https = listener(address, HTTPS, 0);
  pthread_create(&id, NULL, accept_https, (void *)(long)https);
  int loop = epoll_create1(0), on = 1;
  int ports[] = {listener(address, SOURCE, SOCK_NONBLOCK), listener(address, SINK, SOCK_NONBLOCK),
                 listener(address, ECHO, SOCK_NONBLOCK)};
  for (int i = 0; i < 3; i++)
    epoll_ctl(loop, EPOLL_CTL_ADD, ports[i], &(struct epoll_event){.events = EPOLLIN, .data.fd = ports[i]});
  puts("ready");
  fflush(stdout);
  for (;;) {
    struct epoll_event events[256];
    int count = epoll_wait(loop, events, 256, 30000);
    for (int i = 0; i < count; i++) {
      int fd = events[i].data.fd, which = fd == ports[0] ? 's' : fd == ports[1] ? 'k' : fd == ports[2] ? 'e' : 0;
      if (!which) {
        serve_one(fd, events[i].events);
        continue;
      }
      for (int got; (got = accept4(fd, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        setsockopt(got, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        kind[got] = which;
        struct epoll_event add = {.events = which == 's' ? EPOLLOUT : EPOLLIN, .data.fd = got};
        epoll_ctl(loop, EPOLL_CTL_ADD, got, &add);
      }
    }
  }
}

/* The proxy's complete answer, read byte by byte so that it takes nothing of the tunnel. */
static int ask_proxy(int fd, int port) {
  char text[512];
  int size = snprintf(text, sizeof text, "CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n", host, port, host, port);
  if (send(fd, text, size, 0) != size) return -1;
  for (size = 0; size < 500; size++) {
    if (recv(fd, text + size, 1, 0) != 1) return -1;
    if (size >= 3 && !memcmp(text + size - 3, "\r\n\r\n", 4)) return memcmp(text + 9, "200", 3) ? -1 : 0;
  }
  return -1;
}

static int dial(int port) {
  struct sockaddr_in to = target;
  struct timeval limit = {.tv_sec = 20};
  int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
  if (client_tls) port = HTTPS;
  to.sin_port = htons(proxy_port ? proxy_port : port);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) || (proxy_port && ask_proxy(fd, port))) {
    if (fd >= 0) close(fd);
    return -1;
  }
  if (!client_tls) return fd;
  tls[fd] = SSL_new(client_tls);
  SSL_set_fd(tls[fd], fd);
  SSL_set_tlsext_host_name(tls[fd], host);
  if (SSL_connect(tls[fd]) == 1) return fd;
  drop(fd);
  return -1;
}

static int request(int fd, const char *line, const char *fields) {
  char text[512];
  int size = snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: %s:%d\r\n%s\r\n", line, host, HTTPS, fields);
  return put(fd, text, size) == size ? 0 : -1;
}

/* These bytes begin neither a request nor TLS, so every proxy tunnels them. Four, because some wait for more than one. */
static int trip(int fd) {
  char bytes[4] = {1, 2, 3, 4}, head[2048];
  if (tls[fd]) {
    if (request(fd, "GET /", "")) return -1;
    int size = take_head(fd, head, sizeof head), body = size < 0 ? 0 : size - (strstr(head, "\r\n\r\n") + 4 - head);
    for (ssize_t n; size > 0 && body < 4; body += n)
      if ((n = take(fd, bytes, 4 - body)) <= 0) return -1;
    return size > 0 && !strncmp(head + 9, "200", 3) ? 0 : -1;
  }
  return send(fd, bytes, 4, 0) == 4 && recv(fd, bytes, 4, MSG_WAITALL) == 4 ? 0 : -1;
}

static double seconds;
static int is_put, count, done, failed;
static double *times;

static void *stream(void *bytes) {
  int fd = dial(is_put ? SINK : SOURCE);
  double end = now() + seconds;
  static __thread char got[BLOCK];
  if (fd < 0) fail("stream");
  if (tls[fd] ? request(fd, is_put ? "PUT /sink" : "GET /source", is_put ? "Content-Length: 1000000000000\r\n" : "")
              : send(fd, "\1\2\3\4", 4, 0) != 4)
    fail("stream");
  while (now() < end) {
    ssize_t n = is_put ? put(fd, block, sizeof block) : take(fd, got, sizeof got);
    if (n <= 0) fail("stream ended");
    *(double *)bytes += n;
  }
  drop(fd);
  return NULL;
}

static void *connections(void *unused) {
  for (int i; (i = __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED)) < count;) {
    double begin = now();
    int fd = dial(ECHO);
    if (fd < 0 || trip(fd)) __atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED);
    times[i] = now() - begin;
    if (fd >= 0) drop(fd);
  }
  return unused;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print_times(double took) {
  qsort(times, count, sizeof *times, ascending);
  printf("{\"count\":%d,\"failed\":%d,\"seconds\":%.4f,\"p50\":%.1f,\"p99\":%.1f}\n", count, failed, took,
         times[count / 2] * 1e6, times[(int)(count * 0.99)] * 1e6);
}

static void hold(void) {
  int *fds = calloc(count, sizeof *fds), alive = 0, again = 0;
  for (int i = 0; i < count; i++) alive += (fds[i] = dial(ECHO)) >= 0 && !trip(fds[i]);
  printf("{\"opened\":%d}\n", alive);
  fflush(stdout);
  usleep(seconds * 1e6);
  for (int i = 0; i < count; i++) again += fds[i] >= 0 && !trip(fds[i]);
  printf("{\"held\":%d}\n", again);
}

static void together(int threads, void *(*work)(void *), double *each) {
  pthread_t ids[256];
  for (int i = 0; i < threads; i++) pthread_create(&ids[i], NULL, work, each ? each + i : NULL);
  for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);
  if (argc == 5 && !strcmp(argv[1], "serve")) serve(argv[2], argv[3], argv[4]);
  if (argc < 4) return 2;
  const char *mode = argv[1];
  int last = !strcmp(mode, "trips") ? 4 : 5, number = argc > 4 ? atoi(argv[4]) : 0;
  host = argv[2];
  if (!strncmp(host, "https://", 8)) {
    host += 8;
    client_tls = SSL_CTX_new(TLS_client_method());
  }
  count = atoi(argv[3]);
  proxy_port = argc > last ? atoi(argv[last]) : 0;
  struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
  if (getaddrinfo(proxy_port ? "127.0.0.1" : host, NULL, &hints, &found)) return fputs("load: no address\n", stderr), 1;
  target = *(struct sockaddr_in *)found->ai_addr;
  double begin = now(), bytes[256] = {0}, sum = 0;
  if (!strcmp(mode, "get") || !strcmp(mode, "put")) {
    is_put = mode[0] == 'p';
    seconds = atof(argv[3]);
    together(number, stream, bytes);
    for (int i = 0; i < number; i++) sum += bytes[i];
    printf("{\"bytes\":%.0f,\"seconds\":%.4f}\n", sum, now() - begin);
    return 0;
  }
  times = calloc(count, sizeof *times);
  if (!strcmp(mode, "connections")) {
    together(number, connections, NULL);
    printf("{\"warm\":%d}\n", count);
    fflush(stdout);
    done = failed = 0;
    begin = now();
    together(number, connections, NULL);
    print_times(now() - begin);
  } else if (!strcmp(mode, "hold")) {
    seconds = number;
    hold();
  } else {
    int fd = dial(ECHO);
    if (fd < 0 || trip(fd)) fail("trips");
    for (int i = 0; i < count; i++) {
      double start = now();
      if (trip(fd)) fail("trip");
      times[i] = now() - start;
    }
    print_times(now() - begin);
  }
  return 0;
}
