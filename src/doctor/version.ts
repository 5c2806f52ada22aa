/** Finds and compares the versions that tools print. */
import { capture } from '../base/spawn.ts'

/** The first version in a text such as `podman version 4.3.1`, `nftables v1.0.6 (Lester Gooch #5)` or `1.1.5+ds1`. */
export function findVersion(text: string): string | undefined {
  return /(?:^|[^0-9.])(\d+(?:\.\d+)+)/.exec(text)?.[1]
}

/** Negative if `a` is older. Missing numbers are 0. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a.split('.'), b.split('.')]
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const difference = Number(left[i] ?? 0) - Number(right[i] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

const TIME_LIMIT_MS = 3000

/** The version that a host program prints; undefined if it prints none in time. */
export async function askVersion(program: string, home = '/nonexistent'): Promise<string | undefined> {
  try {
    const { stdout, stderr, ended } = await capture([program, '--version'], {
      // Some tools create files in HOME, or in the current directory if HOME is not set.
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C', HOME: home },
      timeoutMs: TIME_LIMIT_MS,
      maxOutput: 64 * 1024,
      cwd: '/',
    })
    return ended === 'exit' ? findVersion(stdout || stderr) : undefined
  } catch {
    return undefined
  }
}
