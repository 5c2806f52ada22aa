/** A failed system call, with its errno as a number and, like errors of node:fs, as a name in `code`. */

const NAMES: Readonly<Record<number, string>> = {
  1: 'EPERM',
  2: 'ENOENT',
  3: 'ESRCH',
  4: 'EINTR',
  5: 'EIO',
  6: 'ENXIO',
  9: 'EBADF',
  11: 'EAGAIN',
  12: 'ENOMEM',
  13: 'EACCES',
  16: 'EBUSY',
  17: 'EEXIST',
  18: 'EXDEV',
  19: 'ENODEV',
  20: 'ENOTDIR',
  21: 'EISDIR',
  22: 'EINVAL',
  23: 'ENFILE',
  24: 'EMFILE',
  28: 'ENOSPC',
  30: 'EROFS',
  31: 'EMLINK',
  32: 'EPIPE',
  36: 'ENAMETOOLONG',
  38: 'ENOSYS',
  39: 'ENOTEMPTY',
  40: 'ELOOP',
  61: 'ENODATA',
  75: 'EOVERFLOW',
  92: 'ENOPROTOOPT',
  93: 'EPROTONOSUPPORT',
  95: 'EOPNOTSUPP',
  97: 'EAFNOSUPPORT',
  98: 'EADDRINUSE',
  99: 'EADDRNOTAVAIL',
  101: 'ENETUNREACH',
  104: 'ECONNRESET',
  110: 'ETIMEDOUT',
  111: 'ECONNREFUSED',
  113: 'EHOSTUNREACH',
}

export class CallFailed extends Error {
  readonly errno: number
  readonly code: string

  constructor(what: string, errno: number) {
    const code = NAMES[errno] ?? `E${errno}`
    super(`${what}: ${code}`)
    this.errno = errno
    this.code = code
  }
}
