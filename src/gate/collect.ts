/** What a program says, up to a bound. The rest is read and forgotten: a program that cannot write would hang. */

export interface Collecting {
  /** After its end. Whoever got away with the pipe does not keep us waiting. */
  finish(): Promise<{ readonly stdout: Uint8Array; readonly stderr: Uint8Array; readonly truncated: boolean }>
}

const LINGER_MS = 200

export function collect(
  child: Bun.Subprocess,
  most: number,
  stdin: Uint8Array | string | undefined,
): Collecting {
  let size = 0
  const kept = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] }
  const readers: { cancel(): Promise<void> }[] = []
  const read = async (stream: 'stdout' | 'stderr'): Promise<void> => {
    const reader = (child[stream] as ReadableStream<Uint8Array>).getReader()
    readers.push(reader)
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const room = most - size
      size += value.length
      if (room > 0) kept[stream].push(value.subarray(0, room))
    }
  }
  const all = Promise.all([read('stdout'), read('stderr')]).catch(() => undefined)
  if (stdin !== undefined) feed(child, stdin)
  return {
    finish: async () => {
      await Promise.race([all, Bun.sleep(LINGER_MS)])
      for (const reader of readers) void reader.cancel().catch(() => undefined)
      const { stdout, stderr } = kept
      return { stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr), truncated: size > most }
    },
  }
}

/** A program that does not read its input closes the pipe: its exit code tells what it thinks of that. */
function feed(child: Bun.Subprocess, stdin: Uint8Array | string): void {
  const sink = child.stdin as Bun.FileSink
  try {
    sink.write(stdin)
    void Promise.resolve(sink.end()).catch(() => undefined)
  } catch {
    // Closed already.
  }
}
