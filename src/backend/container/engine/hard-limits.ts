import { readKernelFile } from '../../../base/kernel/kernel-file.ts'

const LINE = { nofile: 'Max open files', nproc: 'Max processes', core: 'Max core file size' } as const

export type Rlimit = keyof typeof LINE

/** Limits are cut to pen's own hard limits. The kernel refuses an engine that asks for more. */
export function hardLimits(text = readKernelFile('/proc/self/limits')): Readonly<Record<Rlimit, number>> {
  const hard = (name: Rlimit): number => {
    const line = text.split('\n').find(words => words.startsWith(`${LINE[name]} `)) ?? ''
    const value = line.slice(LINE[name].length).trim().split(/\s+/)[1]
    return value === 'unlimited' ? Number.POSITIVE_INFINITY : Number(value ?? 0)
  }
  return { nofile: hard('nofile'), nproc: hard('nproc'), core: hard('core') }
}
